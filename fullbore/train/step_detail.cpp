#include "fullbore/train/step_detail.h"

#include <fmt/format.h>

#include <utility>

namespace fullbore {
namespace {

constexpr double kMostShare = 0.05;
// Of one shape of batch, recorded and not, before their times are compared.
constexpr int64_t kFewestSteps = 5;

}  // namespace

StepRecorder::StepRecorder(RunPrograms& programs) : programs_(programs) {
  for (size_t shape = 0; shape < programs.shapes(); ++shape)
    shapes_.emplace_back(programs.step(shape).plan());
}

void StepRecorder::begin(size_t shape, bool recorded) {
  times_.clear();
  shape_ = shape;
  records_ = recorded && !given_up_;
  if (records_) programs_.step(shape).program().set_profiling(true);
}

void StepRecorder::end(double step_seconds) {
  ShapeTimes& shape = shapes_[shape_];
  Sum& sum = records_ ? shape.recorded : shape.others;
  sum.seconds += step_seconds;
  ++sum.steps;
  if (!records_) return;
  Program& program = programs_.step(shape_).program();
  times_ = shape.components.of(program.events(), step_seconds);
  program.set_profiling(false);
  judge();
}

void StepRecorder::judge() {
  double excess = 0;
  double all = 0;
  for (const ShapeTimes& shape : shapes_) {
    if (shape.recorded.steps < kFewestSteps || shape.others.steps < kFewestSteps) continue;
    excess +=
        shape.recorded.seconds - shape.others.mean() * static_cast<double>(shape.recorded.steps);
    all += shape.recorded.seconds + shape.others.seconds;
  }
  if (all == 0 || excess <= kMostShare * all) return;
  given_up_ = true;
  notice_ = fmt::format(
      "log.detail: recording launches takes {:.1f} % of the time, more than {:.0f} %; the times of "
      "components are told no more. A larger log.interval takes less.",
      100 * excess / all, 100 * kMostShare);
}

std::string StepRecorder::take_notice() { return std::exchange(notice_, {}); }

}  // namespace fullbore
