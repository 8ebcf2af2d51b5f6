#pragma once
#include <cstdint>
#include <string>

#include "fullbore/ops/ops.h"

namespace fullbore {

/// A learning rate as a function of the step, part of the graph.
struct ScheduleOptions {
  std::string schedule = "cosine";  ///< cosine or constant, both after a linear warm-up
  double learning_rate = 1e-3;
  double minimum_learning_rate = 1e-4;  ///< where cosine ends, at total_steps and after
  int64_t warmup_steps = 0;
  int64_t total_steps = 1;
};

/// Learning rate f64[] of `step` i64[] (0-based): rate * (step + 1) / (warmup + 1) while step <
/// warmup, then constant, or the half cosine down to the minimum (Loshchilov, Hutter 2017,
/// arXiv:1608.03983, with one cycle). In f64, for bias corrections and cosines of late steps lose
/// digits in f32.
Tensor scheduled_learning_rate(Tensor step, const ScheduleOptions& options);

}  // namespace fullbore
