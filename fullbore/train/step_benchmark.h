#pragma once
#include <functional>
#include <string>
#include <vector>

#include "fullbore/monitor/sample_statistics.h"
#include "fullbore/train/step_runner.h"

namespace fullbore {

struct BenchmarkOptions {
  int warm_up_steps = 10;
  int rounds = 15;
  int steps_per_round = 0;  ///< 0: as many as take a quarter of a second, at least 1
};

/// Times of one contender.
struct BenchmarkTimes {
  double first_loss = 0;  ///< of the first step, made while warming up
  double last_loss = 0;   ///< of the last step
  int64_t steps_per_round = 0;
  std::vector<double> step_seconds;   ///< of every measured step, waiting included
  std::vector<double> round_seconds;  ///< per round: the median of its steps
  double wait_seconds = 0;            ///< of all measured steps
  double tokens = 0;                  ///< likewise
  double tokens_per_step() const { return tokens / static_cast<double>(step_seconds.size()); }
};

/// Runs the contenders in turns, a round of one and then of the next, so that a slow minute of the
/// machine hits them alike; every other round in the opposite order. While one runs the others sleep.
/// `progress`, if set, is told what is going on. Throws NumericalError when a loss is not finite: what
/// computes nothing sensible is not measured.
std::vector<BenchmarkTimes> measure_steps(
    const std::vector<StepRunner*>& contenders, const BenchmarkOptions& options,
    const std::function<void(const std::string& doing)>& progress = {});

/// How many times the throughput of `a` that of `b` is, in units of `per_step` (tokens, samples).
struct ThroughputRatio {
  double median = 1;            ///< over rounds, b against a in the same round
  ConfidenceInterval interval;  ///< 95 %, by bootstrap_median over the rounds' ratios
};
ThroughputRatio compare_throughput(const BenchmarkTimes& a, double a_per_step,
                                   const BenchmarkTimes& b, double b_per_step);

}  // namespace fullbore
