#include "fullbore/monitor/phase_clock.h"

#include <numeric>

namespace fullbore {

std::string_view run_phase_name(RunPhase phase) {
  switch (phase) {
    case RunPhase::start: return "start";
    case RunPhase::data: return "data";
    case RunPhase::rollouts: return "rollouts";
    case RunPhase::step: return "step";
    case RunPhase::evaluation: return "evaluation";
    case RunPhase::checkpoint: return "checkpoint";
    case RunPhase::host: return "host";
  }
  return "";
}

double PhaseSeconds::sum() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

void PhaseClock::enter(RunPhase phase, Clock::time_point now) {
  seconds_[phase_] += std::chrono::duration<double>(now - since_).count();
  since_ = now;
  phase_ = phase;
}

PhaseSeconds PhaseClock::seconds(Clock::time_point now) const {
  PhaseClock copy = *this;
  copy.enter(phase_, now);
  return copy.seconds_;
}

}  // namespace fullbore
