#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fullbore/ops/ops.h"

namespace fullbore {

/// A learning rate as a function of the number of updates made, part of the graph.
struct ScheduleOptions {
  std::string schedule = "cosine";  ///< one of schedule_names()
  double learning_rate = 1e-3;
  double minimum_learning_rate = 1e-4;  ///< the floor, reached at total_steps and kept after
  int64_t warmup_steps = 0;
  int64_t total_steps = 1;
  double decay_fraction = 0.2;    ///< warmup_stable_decay: share of total_steps that decays
  bool warmup_from_zero = false;  ///< step 0 has the rate 0, as many recipes have it
};

/// Learning rate f64[] of the update `step` i64[] (0-based). All but one_cycle rise linearly at
/// first, rate * (step + 1) / (warmup + 1) while step < warmup, from zero rate * step / warmup. Then
///
///   constant              rate
///   linear                a line from rate at warmup to the floor at total_steps
///   cosine                half a cosine between the same points (Loshchilov, Hutter 2017,
///                         arXiv:1608.03983, one cycle)
///   warmup_stable_decay   rate, then a line to the floor over the last decay_fraction of the steps
///                         (Hu et al. 2024, arXiv:2404.06395; Haegele et al. 2024, arXiv:2405.18392)
///   one_cycle             half a cosine from rate / 25 at step 0 to rate at step warmup - 1, half a
///                         cosine to the floor at step total_steps - 1 (Smith, Topin 2018,
///                         arXiv:1708.07120; the form of PyTorch's OneCycleLR)
///   plateau               rate; optimize() multiplies it by what plateau.h makes of the loss, down to the floor
///
/// In f64, for bias corrections and cosines of late steps lose digits in f32. UsageError for a name
/// that is none of these.
Tensor scheduled_learning_rate(Tensor step, const ScheduleOptions& options);

const std::vector<std::string>& schedule_names();

}  // namespace fullbore
