#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/train/step_outputs.h"

namespace fullbore::chess {

/// What the time of one batch goes to: a stopwatch that is in exactly one phase from start() to stop(), so that the
/// seconds of all phases sum to the time between the two.
class BatchClock {
 public:
  using Clock = std::chrono::steady_clock;

  explicit BatchClock(std::function<Clock::time_point()> now = Clock::now) : now_(std::move(now)) {}

  /// Forgets what was measured and enters a phase.
  void start(const char* phase);
  /// A phase that was entered before goes on.
  void enter(const char* phase);
  /// So many seconds of the phase that is going on are another's, which measured itself. They lie within what has passed.
  void give(const char* phase, double seconds);
  void stop();
  /// Nothing is measured of this batch.
  void clear() { seconds_.clear(); }

  /// "seconds/<phase>" of each, in the order in which they were first entered.
  StepResults figures() const;

 private:
  double& seconds_of(const std::string& phase);
  void settle();

  std::function<Clock::time_point()> now_;
  std::string phase_;
  Clock::time_point since_;
  std::vector<std::pair<std::string, double>> seconds_;
};

}  // namespace fullbore::chess
