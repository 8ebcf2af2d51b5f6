#pragma once
#include <cstdint>

namespace fullbore {

/// How fast steps go: since the start or resume, and recently (an average whose weights halve every
/// few seconds, so that the display neither flickers nor lags).
class StepMeter {
 public:
  /// One step took `step_seconds`, after `wait_seconds` of waiting for its batch.
  void add(double step_seconds, double wait_seconds);

  int64_t steps() const { return steps_; }
  double seconds() const { return seconds_; }  ///< of all steps, waiting included
  double wait_share() const { return seconds_ > 0 ? wait_seconds_ / seconds_ : 0; }
  double steps_per_second() const {
    return seconds_ > 0 ? static_cast<double>(steps_) / seconds_ : 0;
  }
  double recent_steps_per_second() const {
    return recent_seconds_ > 0 ? recent_steps_ / recent_seconds_ : 0;
  }
  double recent_wait_share() const {
    return recent_seconds_ > 0 ? recent_wait_seconds_ / recent_seconds_ : 0;
  }

 private:
  int64_t steps_ = 0;
  double seconds_ = 0;
  double wait_seconds_ = 0;
  double recent_steps_ = 0;
  double recent_seconds_ = 0;
  double recent_wait_seconds_ = 0;
};

}  // namespace fullbore
