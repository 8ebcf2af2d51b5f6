#pragma once
#include <string>
#include <vector>

#include "fullbore/ir/graph.h"

namespace fullbore {

/// One change of precision in a graph that has been through the passes, and why it is made.
struct CastUse {
  TensorType from;
  TensorType to;
  std::string what;        ///< the value that is cast: "parameter head.weight", "fused layers.0"
  std::string reason;      ///< "operand of matmul layers.0.mlp.up (model.cpp:33)"
  bool in_memory = false;  ///< a launch of its own; else where a kernel reads or stores
};

/// Every cast between floating dtypes, those of loops' bodies and of kernels included, in order, behind those of
/// parameters that the graph reads as copies and leaves alone.
std::vector<CastUse> casts_of(const Graph& graph);
/// A line for each, and their sum.
std::string casts_text(const Graph& graph);

}  // namespace fullbore
