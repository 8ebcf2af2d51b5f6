#include "fullbore/train/step_benchmark.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

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
  times.warm_up_steps = static_cast<int64_t>(seconds.size());
  times.steps_per_round = steps_per_round(options, median(seconds));
}

// The same number of steps for all, and so the same batches in the same rounds.
void align(const std::vector<StepRunner*>& contenders, const BenchmarkOptions& options,
           std::vector<BenchmarkTimes>& times) {
  int64_t per_round = 0;
  for (const BenchmarkTimes& each : times) per_round = std::max(per_round, each.steps_per_round);
  int64_t steps = 0;
  for (const StepRunner* contender : contenders) steps = std::max(steps, contender->steps());
  for (int64_t before = -1; before != steps;) {  // one's further steps may show another new shapes
    before = steps;
    for (const StepRunner* contender : contenders)
      steps = contender->steps_to_warm_up(steps, options.rounds * per_round);
  }
  for (size_t i = 0; i < contenders.size(); ++i) {
    times[i].steps_per_round = per_round;
    for (; contenders[i]->steps() < steps; ++times[i].warm_up_steps) run_step(*contenders[i]);
  }
}

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double middle(std::span<const double> seconds, bool mixture) {
  return mixture ? mean(seconds) : median(seconds);
}

void measure_round(StepRunner& contender, BenchmarkTimes& times) {
  const size_t begin = times.step_seconds.size();
  const double tokens = times.tokens;
  const double samples = times.samples;
  for (int64_t i = 0; i < times.steps_per_round; ++i) {
    const StepRunner::Step step = run_step(contender);
    times.step_seconds.push_back(step.seconds());
    times.wait_seconds += step.wait_seconds;
    times.tokens += step.tokens;
    const auto step_samples = static_cast<double>(contender.samples_per_step(step.shape));
    times.samples += step_samples;
    times.last_loss = step.loss;
    ShapeTimes& shape = times.shapes[step.shape];
    shape.step_seconds.push_back(step.seconds());
    shape.tokens += step.tokens;
    shape.samples += step_samples;
    const LoopIterations made = contender.program(step.shape).iterations_made();
    shape.knows_iterations &= !made.empty();
    shape.iterations.resize(std::max(shape.iterations.size(), made.size()), 0);
    for (size_t loop = 0; loop < made.size(); ++loop) shape.iterations[loop] += made[loop];
  }
  times.round_seconds.push_back(
      middle(std::span(times.step_seconds).subspan(begin), times.mixture));
  times.round_tokens.push_back(times.tokens - tokens);
  times.round_samples.push_back(times.samples - samples);
}

// `round_work`: of a round's steps together; `per_step`: of a step, over all rounds.
std::vector<double> throughputs(const BenchmarkTimes& times, const std::vector<double>& round_work,
                                double per_step) {
  std::vector<double> rates;
  for (size_t i = 0; i < times.round_seconds.size(); ++i) {
    const double work =
        times.mixture ? round_work[i] / static_cast<double>(times.steps_per_round) : per_step;
    rates.push_back(work / times.round_seconds[i]);
  }
  return rates;
}

}  // namespace

LoopIterations ShapeTimes::mean_iterations() const {
  if (!knows_iterations || step_seconds.empty()) return {};
  LoopIterations mean = iterations;
  for (double& each : mean) each /= static_cast<double>(step_seconds.size());
  return mean;
}

double BenchmarkTimes::seconds() const {
  return std::accumulate(step_seconds.begin(), step_seconds.end(), 0.0);
}

double BenchmarkTimes::seconds_per_step() const { return middle(step_seconds, mixture); }

std::vector<double> BenchmarkTimes::round_tokens_per_second() const {
  return throughputs(*this, round_tokens, tokens_per_step());
}

std::vector<double> BenchmarkTimes::round_samples_per_second() const {
  return throughputs(*this, round_samples, samples_per_step());
}

std::vector<BenchmarkTimes> measure_steps(const std::vector<StepRunner*>& contenders,
                                          const BenchmarkOptions& options,
                                          const std::function<void(const std::string&)>& progress) {
  std::vector<BenchmarkTimes> times(contenders.size());
  const bool mixture =
      std::ranges::any_of(contenders, [](const StepRunner* each) { return each->shapes() > 1; });
  if (progress) progress("warming up");
  for (size_t i = 0; i < contenders.size(); ++i) {
    times[i].mixture = mixture;
    times[i].shapes.resize(contenders[i]->shapes());
    warm_up(*contenders[i], options, times[i]);
  }
  if (mixture) align(contenders, options, times);
  for (int round = 0; round < options.rounds; ++round) {
    if (progress) progress(fmt::format("measuring round {}/{}", round + 1, options.rounds));
    for (size_t i = 0; i < contenders.size(); ++i) {
      const size_t next = round % 2 == 0 ? i : contenders.size() - 1 - i;
      measure_round(*contenders[next], times[next]);
    }
  }
  return times;
}

ThroughputRatio compare_throughput(std::span<const double> a, std::span<const double> b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) ratios.push_back(b[i] / a[i]);
  return {median(ratios), bootstrap_median(ratios)};
}

}  // namespace fullbore
