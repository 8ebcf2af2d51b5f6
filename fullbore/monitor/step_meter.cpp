#include "fullbore/monitor/step_meter.h"

#include <cmath>

namespace fullbore {
namespace {
constexpr double kHalfLifeSeconds = 3;
}  // namespace

void StepMeter::add(double step_seconds, double wait_seconds) {
  const double seconds = step_seconds + wait_seconds;
  ++steps_;
  seconds_ += seconds;
  wait_seconds_ += wait_seconds;
  const double keep = std::exp2(-seconds / kHalfLifeSeconds);
  recent_steps_ = recent_steps_ * keep + 1;
  recent_seconds_ = recent_seconds_ * keep + seconds;
  recent_wait_seconds_ = recent_wait_seconds_ * keep + wait_seconds;
}

}  // namespace fullbore
