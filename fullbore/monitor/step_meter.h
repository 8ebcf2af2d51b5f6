#pragma once
#include <cstdint>

namespace fullbore {

/// What one step did, and how long it took.
struct StepWork {
  double step_seconds = 0;
  double wait_seconds = 0;  ///< for its batch, before that
  double tokens = 0;        ///< learned from, padding left out
  double samples = 0;       ///< rows of the batch
  double flops = 0;         ///< that were made, not those of the plan; not a number: unknown
};

/// Sums over steps.
struct StepSums {
  double steps = 0;
  double seconds = 0;  ///< waiting included
  double wait_seconds = 0;
  double tokens = 0;
  double samples = 0;
  double flops = 0;

  double steps_per_second() const { return per_second(steps); }
  double tokens_per_second() const { return per_second(tokens); }
  double samples_per_second() const { return per_second(samples); }
  double flops_per_second() const { return per_second(flops); }
  double wait_share() const { return per_second(wait_seconds); }

 private:
  double per_second(double sum) const { return seconds > 0 ? sum / seconds : 0; }
};

/// How fast steps go: since the start or resume, and recently (sums whose weights halve every few
/// seconds, so that the display neither flickers nor lags).
class StepMeter {
 public:
  void add(const StepWork& work);

  int64_t steps() const { return steps_; }
  const StepSums& whole() const { return whole_; }
  const StepSums& recent() const { return recent_; }

 private:
  int64_t steps_ = 0;
  StepSums whole_;
  StepSums recent_;
};

}  // namespace fullbore
