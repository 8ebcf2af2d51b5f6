#include "fullbore/monitor/step_meter.h"

#include <cmath>

namespace fullbore {
namespace {

constexpr double kHalfLifeSeconds = 3;

/// `sums`, fallen to a share of `keep`, and the step.
void accumulate(StepSums& sums, const StepWork& work, double keep) {
  sums.steps = sums.steps * keep + 1;
  sums.seconds = sums.seconds * keep + work.step_seconds + work.wait_seconds;
  sums.wait_seconds = sums.wait_seconds * keep + work.wait_seconds;
  sums.tokens = sums.tokens * keep + work.tokens;
  sums.samples = sums.samples * keep + work.samples;
  sums.flops = sums.flops * keep + work.flops;
}

}  // namespace

void StepMeter::add(const StepWork& work) {
  ++steps_;
  accumulate(whole_, work, 1);
  accumulate(recent_, work, std::exp2(-(work.step_seconds + work.wait_seconds) / kHalfLifeSeconds));
}

}  // namespace fullbore
