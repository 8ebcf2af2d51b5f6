#pragma once
#include <set>
#include <string>

#include "fullbore/ir/graph.h"

namespace fullbore {

/// What State that stands for a parameter [N,K] in 8 bits is called, i8 [N,K] and f32 [N] (ops/quantized_linear.h), in
/// checkpoints too. Inputs and State say by DerivedWeight what they are: no name is taken apart.
std::string int8_weight_name(const std::string& parameter);
std::string int8_scale_name(const std::string& parameter);

struct QuantizedLinears {
  Graph graph;
  std::set<std::string> replaced;  ///< parameters that matmuls now read in 8 bits
  std::set<std::string> kept;      ///< of these, those that something else reads as they were
};

/// Lets matmuls x W^T read W in 8 bits, where W is one of `parameters`. Whatever else reads one (the lookup in
/// a table that is the output head too) goes on reading it as it is; what nobody reads any more is no input.
///
/// before  a graph as traced, without gradients: 8-bit weights are not trained
/// after   each matmul by the transpose of such a parameter [N,K], in loops too, is a quantized_linear, which
///         reads State in 8 bits instead; composites that read one have been expanded
/// here    ahead of all passes, when State is known and it has such entries (runtime/program.h): a device without
///         the kernel then gets the op's decomposition, and precision leaves its operands alone
QuantizedLinears quantize_linears(const Graph& graph, const std::set<std::string>& parameters);

}  // namespace fullbore
