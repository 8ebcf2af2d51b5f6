#pragma once
#include <span>
#include <vector>

#include "fullbore/ir/tensor.h"

namespace fullbore {

/// Appends to `builder`'s graph the nodes that compute d(sum of outputs . cotangents) / d(wanted).
///
/// Reads the graph backwards from `outputs` and asks each op on the way for its `vjp`; names no op.
/// Composites without a vjp are differentiated through their decomposition; loops by another loop
/// (loop_gradient.h). Only nodes on a path from a wanted tensor are visited, so what is frozen costs
/// nothing. Integer and boolean values carry no cotangents.
///
/// outputs     floating tensors of the builder's graph
/// cotangents  one per output, of its type
/// wanted      tensors to differentiate by: inputs or intermediate values. The gradient at an activation, for a
///             diagnosis, is asked for beside those of parameters, in the same call: the walk is then made once
/// -> one cotangent per wanted tensor, of its type; zeros where nothing flows
std::vector<Tensor> backward(GraphBuilder& builder, std::span<const Tensor> outputs,
                             std::span<const Tensor> cotangents, std::span<const Tensor> wanted);

/// Per output: does it depend on a wanted tensor by way of floating values and ops with a derivative? Where it does not,
/// its gradient is zero and backward() emits nothing for it. A loop counts as one node.
std::vector<bool> depends_on(GraphBuilder& builder, std::span<const Tensor> outputs,
                             std::span<const Tensor> wanted);

/// Gradient of one scalar with respect to each wanted tensor.
std::vector<Tensor> gradient(Tensor loss, std::span<const Tensor> wanted);

}  // namespace fullbore
