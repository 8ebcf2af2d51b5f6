#pragma once
#include <optional>
#include <string>
#include <vector>

#include "fullbore/device/kernel_ir/kernel_ir.h"
#include "fullbore/ir/graph.h"

namespace fullbore::jit {

/// A kernel and which of the node's operands and results its buffers are.
struct LoweredPiece {
  KernelIr kernel;
  std::vector<int> buffers;  ///< per buffer of the kernel: index into the node's inputs, outputs
};

/// What a node becomes: kernels that run side by side, each on its own part of the results.
struct LoweredNode {
  std::vector<LoweredPiece> pieces;
  /// Used instead of `pieces` where input `in_place_input` and output 0 are the same bytes: nothing
  /// that is there already is written again. Empty if there is no such short cut.
  std::vector<LoweredPiece> in_place_pieces;
  int in_place_input = -1;
};

/// Writes one node as kernels: elementwise ops, movements, reductions, cumsum, argmax, large
/// sources, and `fused` nodes whose bodies are made of those. Nothing if it cannot, and why.
std::optional<LoweredNode> lower(const Graph& graph, const Node& node, std::string* why_not);

/// What the body of a `fused` node does with its matmul (ir/fused_matmul.h), which it reads from one
/// more buffer behind the node's own; results that are the matmul are left out.
std::optional<LoweredPiece> lower_epilogue(const Graph& graph, const Node& node,
                                           std::string* why_not);

}  // namespace fullbore::jit
