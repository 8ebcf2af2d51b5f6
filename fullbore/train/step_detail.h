#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/monitor/component_times.h"
#include "fullbore/train/run_programs.h"

namespace fullbore {

/// Where the time of the steps that are logged goes (Detail::debug_performance). Launches of these steps alone are
/// recorded; if that takes more than a twentieth of all steps' time, it is given up.
class StepRecorder {
 public:
  /// The programs must outlive it.
  explicit StepRecorder(RunPrograms& programs);

  /// Before a step on this shape of batch: `recorded` if it will be logged.
  void begin(size_t shape, bool recorded);
  /// After it. What was recorded goes to times().
  void end(double step_seconds);

  /// Of the step just made; empty if it was not recorded.
  const std::vector<ComponentTime>& times() const { return times_; }
  /// Once, why nothing is recorded any more; else empty.
  std::string take_notice();

 private:
  struct Sum {
    double seconds = 0;
    int64_t steps = 0;
    double mean() const { return seconds / static_cast<double>(steps); }
  };
  /// Steps on one shape of batch.
  struct ShapeTimes {
    explicit ShapeTimes(const Plan& plan) : components(plan) {}
    ComponentTimes components;
    Sum recorded, others;
  };
  void judge();

  RunPrograms& programs_;
  std::vector<ShapeTimes> shapes_;
  std::vector<ComponentTime> times_;
  size_t shape_ = 0;
  bool records_ = false;  ///< this step
  bool given_up_ = false;
  std::string notice_;
};

}  // namespace fullbore
