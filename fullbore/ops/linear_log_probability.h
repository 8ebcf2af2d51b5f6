#pragma once
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/compose.h"
#include "fullbore/ops/row_blocks.h"

namespace fullbore {

/// What a row of logits says of one class and of itself.
struct TokenScores {
  Tensor log_probability;  ///< log softmax(logits)[target]
  Tensor entropy;          ///< of the softmax, in nats
};
/// Logits [..., V], targets [...] integer -> [...] f32 (f64 for f64) both. The first `classes` logits count, the others
/// are padding; 0: all. A target that is none of them gives 0 for both.
TokenScores token_scores(Tensor logits, Tensor targets, int64_t classes = 0);

struct LinearLogProbabilityOptions {
  int64_t classes = 0;  ///< the first rows of the weight, that many, are classes; 0: all
  int64_t rows = 0;     ///< whose logits exist at a time; 0: linear_log_probability_rows(V)
};
/// As many as take 32 MiB of f32, and at least 64: logits and their slopes together take 64 MiB at most of GPT-2's 50,257
/// classes.
int64_t linear_log_probability_rows(int64_t classes);
/// token_scores(linear(hidden, weight), targets): hidden [..., C], weight [V, C] of the same dtype, targets [...]
/// integer. Unlike linear_cross_entropy() it gives each row's result, of which a loss may be any function, so that in
/// the gradient logits are made anew, a block of rows at a time (op `linear_log_probability_gradient`): they never exist
/// whole. Policy gradients are made of these (nn/policy_loss.h).
/// Cost: 2 V C flops per row, 6 V C more with the gradient.
TokenScores linear_log_probability(Tensor hidden, Tensor weight, Tensor targets,
                                   const LinearLogProbabilityOptions& options = {},
                                   SourceLoc loc = SourceLoc::here());

// What linear_log_probability and its gradient share. Both read hidden [N,C], weight [V,C], targets [N]; the gradient
// reads the cotangents of both results [N] besides.

/// `classes`: the first so many rows of the weight are classes, the others padding. `rows` of logits exist at a time.
Attributes linear_log_probability_attributes(int64_t classes, int64_t rows);
/// The checks of both ops.
void require_linear_log_probability(const OpCall& call, bool gradient);

/// By definition, in plain loops.
void linear_log_probability_reference(ReferenceCall& call);
void linear_log_probability_gradient_reference(ReferenceCall& call);

std::vector<Sample> linear_log_probability_samples();
std::vector<Sample> linear_log_probability_gradient_samples();
std::vector<ErrorSample> linear_log_probability_error_samples();
std::vector<ErrorSample> linear_log_probability_gradient_error_samples();

}  // namespace fullbore
