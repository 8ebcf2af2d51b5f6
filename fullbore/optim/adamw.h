#pragma once
#include "fullbore/optim/schedule.h"
#include "fullbore/trace/trace.h"

namespace fullbore {

struct AdamWOptions {
  ScheduleOptions schedule = {};
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;  ///< decoupled; of matrices and tables (rank >= 2) only
  double clip_norm = 1.0;      ///< of the global gradient norm; 0: no clipping
};

struct OptimizerResult {
  Tensor learning_rate;  ///< f32[], of this step
  Tensor gradient_norm;  ///< f32[], global, before clipping
};

/// Appends the rest of the training step to the trace: gradients of `loss` by every parameter,
/// global-norm clipping (factor min(1, clip / (norm + 1e-6))), AdamW on each parameter with its
/// moments `<name>.moment1` and `.moment2`, and the step counter. The host reads nothing.
///
///   m' = beta1 m + (1 - beta1) g          v' = beta2 v + (1 - beta2) g^2
///   p' = p (1 - rate decay) - rate / (1 - beta1^t) * m' / (sqrt(v' / (1 - beta2^t)) + epsilon)
///
/// with t = step + 1. Source: Loshchilov, Hutter 2019, arXiv:1711.05101, algorithm 2.
OptimizerResult adamw(Trace& trace, Tensor loss, const AdamWOptions& options);

}  // namespace fullbore
