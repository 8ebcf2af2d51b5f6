#include "workloads/chess/batch_clock.h"

#include <algorithm>

namespace fullbore::chess {

double& BatchClock::seconds_of(const std::string& phase) {
  const auto known =
      std::ranges::find(seconds_, phase, [](const auto& each) { return each.first; });
  if (known != seconds_.end()) return known->second;
  return seconds_.emplace_back(phase, 0.0).second;
}

void BatchClock::settle() {
  const Clock::time_point now = now_();
  seconds_of(phase_) += std::chrono::duration<double>(now - since_).count();
  since_ = now;
}

void BatchClock::start(const char* phase) {
  seconds_.clear();
  phase_ = phase;
  since_ = now_();
}

void BatchClock::enter(const char* phase) {
  settle();
  phase_ = phase;
}

void BatchClock::give(const char* phase, double seconds) {
  seconds_of(phase) += seconds;
  seconds_of(phase_) -= seconds;
}

void BatchClock::stop() { settle(); }

StepResults BatchClock::figures() const {
  StepResults figures;
  for (const auto& [phase, seconds] : seconds_) figures.emplace_back("seconds/" + phase, seconds);
  return figures;
}

}  // namespace fullbore::chess
