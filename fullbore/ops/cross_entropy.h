#pragma once
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/compose.h"

/// What the losses that compare logits with a target share: cross_entropy and linear_cross_entropy.
namespace fullbore {

Attributes cross_entropy_attributes(const CrossEntropyOptions& options);
CrossEntropyOptions cross_entropy_options(const Attributes& attributes);
/// Fails unless the attributes are there and in range.
void require_cross_entropy_attributes(const OpCall& call);

/// bool, of the targets' shape: is a row's target one of its classes? The others are ignored: padding,
/// prompts.
Tensor counted_rows(Tensor targets, int64_t classes, const CrossEntropyOptions& options);

/// Derivative of each row's loss by its logits [..., V], in the dtype that losses are computed in; 0 in
/// ignored rows. With p = softmax(x), Z = sum(exp(x)), smoothing e and factor z it is
/// p (1 + 2 z log Z) - (1 - e) one_hot(target) - e / V.
Tensor cross_entropy_slopes(Tensor logits, Tensor targets, const CrossEntropyOptions& options);

/// One row in plain loops of double, independent of what the op is made of: its loss, and unless null
/// its slopes. 0 if the row is ignored.
double cross_entropy_of_row(const double* logits, int64_t classes, int64_t target,
                            const CrossEntropyOptions& options, double* slopes = nullptr);

}  // namespace fullbore
