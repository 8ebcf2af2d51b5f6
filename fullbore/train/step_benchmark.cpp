#include "fullbore/train/step_benchmark.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fullbore/base/error.h"

namespace fullbore {
namespace {

constexpr double kSecondsPerRound = 0.25;

StepRunner::Step run_step(StepRunner& contender) {
  const StepRunner::Step step = contender.run();
  if (!std::isfinite(step.loss))
    throw NumericalError(fmt::format("the loss of step {} is {}", contender.steps(), step.loss));
  return step;
}

int64_t steps_per_round(const BenchmarkOptions& options, double step_seconds) {
  if (options.steps_per_round > 0) return options.steps_per_round;
  constexpr double kMost = 100'000;
  return std::max<int64_t>(1,
                           static_cast<int64_t>(std::min(kMost, kSecondsPerRound / step_seconds)));
}

void warm_up(StepRunner& contender, const BenchmarkOptions& options, BenchmarkTimes& times) {
  std::vector<double> seconds;
  for (int i = 0; i < std::max(1, options.warm_up_steps); ++i) {
    const StepRunner::Step step = run_step(contender);
    if (i == 0) times.first_loss = step.loss;
    seconds.push_back(step.seconds());
  }
  times.steps_per_round = steps_per_round(options, median(seconds));
}

void measure_round(StepRunner& contender, BenchmarkTimes& times) {
  const size_t begin = times.step_seconds.size();
  for (int64_t i = 0; i < times.steps_per_round; ++i) {
    const StepRunner::Step step = run_step(contender);
    times.step_seconds.push_back(step.seconds());
    times.wait_seconds += step.wait_seconds;
    times.tokens += step.tokens;
    times.last_loss = step.loss;
  }
  times.round_seconds.push_back(median(std::span(times.step_seconds).subspan(begin)));
}

}  // namespace

std::vector<BenchmarkTimes> measure_steps(const std::vector<StepRunner*>& contenders,
                                          const BenchmarkOptions& options,
                                          const std::function<void(const std::string&)>& progress) {
  std::vector<BenchmarkTimes> times(contenders.size());
  if (progress) progress("warming up");
  for (size_t i = 0; i < contenders.size(); ++i) warm_up(*contenders[i], options, times[i]);
  for (int round = 0; round < options.rounds; ++round) {
    if (progress) progress(fmt::format("measuring round {}/{}", round + 1, options.rounds));
    for (size_t i = 0; i < contenders.size(); ++i) {
      const size_t next = round % 2 == 0 ? i : contenders.size() - 1 - i;
      measure_round(*contenders[next], times[next]);
    }
  }
  return times;
}

ThroughputRatio compare_throughput(const BenchmarkTimes& a, double a_per_step,
                                   const BenchmarkTimes& b, double b_per_step) {
  std::vector<double> ratios;
  const double work = b_per_step / a_per_step;
  for (size_t i = 0; i < std::min(a.round_seconds.size(), b.round_seconds.size()); ++i)
    ratios.push_back(work * a.round_seconds[i] / b.round_seconds[i]);
  return {median(ratios), bootstrap_median(ratios)};
}

}  // namespace fullbore
