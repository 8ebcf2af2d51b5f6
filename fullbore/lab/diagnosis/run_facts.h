#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "fullbore/device/kernel.h"
#include "fullbore/lab/diagnosis/attribution.h"
#include "fullbore/lab/diagnosis/inactive_switches.h"
#include "fullbore/train/config.h"

namespace fullbore {

struct CurvePoint {
  int64_t step = 0;
  double value = 0;
};
using Curve = std::vector<CurvePoint>;  ///< by ascending step

/// What is known of a run, measured for a few steps or finished: all that advice follows from. Not a number, or empty,
/// is what is not known.
struct RunFacts {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  Config config;         ///< as memory allowed it
  Attribution measured;  ///< of the steps that were measured, or of the finished run
  Attribution whole;     ///< of all that the configuration asks for; of a finished run the same
  int64_t steps = 0;     ///< made since step 0
  int64_t skipped_steps = 0;
  int64_t best_step = -1;  ///< of the best evaluation; -1: there was none

  // The machine.
  int processors = 1;  ///< that the process may use
  int threads = 1;     ///< of the step
  bool native_bf16 = false;
  double bf16_speed = 1;  ///< the measured peak of bf16 contractions in units of the fp32 one
  double planned_bytes = kUnknown;
  double resident_bytes = kUnknown;  ///< at most
  double memory_bytes = kUnknown;    ///< that the process may use
  double loader_seconds = kUnknown;  ///< processor time of filling batches, in the measured loop

  // How it learns.
  Curve loss;
  Curve validation_loss;
  Curve loss_scale;  ///< of fp16
  std::vector<std::string> idle_parameters =
      {};  ///< trained ones whose gradient was 0 in every step
  std::vector<InactiveSwitch> inactive = {};
  std::vector<KernelFallback> fallbacks = {};  ///< nodes without a kernel of their own
};

}  // namespace fullbore
