#pragma once
#include <vector>

#include "fullbore/ir/graph.h"
#include "fullbore/ir/tensor.h"

namespace fullbore {

/// Part of batch_weight_gradients: sums of matmuls that a loop carries are taken out of it.
///
/// `node`: the loop; `operands`: what its inputs have become in `outer`; `body`: its body, in which
/// nothing is left to gather. Emits another loop, and matmuls behind it.
/// -> the results of the loop as it was; none if nothing is to be gathered, and nothing is emitted then
std::vector<Tensor> gather_iterations(GraphBuilder& outer, const Node& node,
                                      const std::vector<Tensor>& operands, const Graph& body);

}  // namespace fullbore
