#pragma once
#include <vector>

#include "fullbore/autodiff/pull_back.h"

namespace fullbore {

/// Cotangents of a loop's operands, by another loop that makes the same iterations in the opposite order.
///
/// It carries the cotangents of the carried values and one sum per captured operand, reads the rows
/// of the stacked results' cotangents, and stacks the cotangents of the sliced operands' rows. What
/// its body needs of the forward iteration it gets, in this order of preference: captured and sliced
/// operands are handed over again; what is cheap, or does not change from iteration to iteration, is computed
/// again; the rest (residuals) is stacked by the forward loop. For that the forward loop is emitted
/// a second time, with more stacked results; common_subexpression_elimination makes one loop of the two.
///
/// `until` and `counted` loops are pulled back through the executed iterations; that decision is a
/// constant. Sums over iterations of bf16 and f16 values are carried in f32.
///
/// An iteration that is a segment (LoopOptions::segments) is computed again as a whole, from its carried values: the
/// only residuals are these and the decisions that it took (recorded_decisions.h). The sums over its inner iterations
/// begin with what the other segments have added up (continued_sums.h), so no sum has another order than without.
///
/// index       of the loop in the builder's graph
/// cotangents  one per result, invalid where nothing flows
/// wanted      per operand
/// augmented   receives the second emission
/// -> one cotangent per operand, invalid where nothing flows or none is wanted
std::vector<Tensor> loop_gradient(GraphBuilder& builder, int index,
                                  const std::vector<Tensor>& cotangents,
                                  const std::vector<bool>& wanted,
                                  std::vector<AugmentedLoop>& augmented);

}  // namespace fullbore
