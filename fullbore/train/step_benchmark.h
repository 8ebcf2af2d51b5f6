#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fullbore/monitor/sample_statistics.h"
#include "fullbore/train/step_runner.h"

namespace fullbore {

struct BenchmarkOptions {
  int warm_up_steps = 10;  ///< at least; more where shapes are still to be met
  int rounds = 15;
  int steps_per_round = 0;  ///< 0: as many as take a quarter of a second, at least 1
};

/// What was measured of the batches of one shape.
struct ShapeTimes {
  std::vector<double> step_seconds;  ///< as BenchmarkTimes has them
  double tokens = 0;                 ///< of all these steps
  double samples = 0;                ///< likewise
  LoopIterations iterations = {};    ///< of all these steps together
  bool knows_iterations = true;      ///< did the device tell?

  /// A step's, for report_plan(): empty where nothing was measured or the device did not tell.
  LoopIterations mean_iterations() const;
};

/// Times of one contender.
struct BenchmarkTimes {
  /// Do batches come in several shapes, here or in another contender? Then a step's median says nothing
  /// of the whole, and figures are means: what was done over the time that it took.
  bool mixture = false;
  double first_loss = 0;  ///< of the first step, made while warming up
  double last_loss = 0;   ///< of the last step
  int64_t warm_up_steps = 0;
  int64_t steps_per_round = 0;
  std::vector<double> step_seconds;   ///< of every measured step, waiting included
  std::vector<double> round_seconds;  ///< per round: a step's median; of a mixture, its mean
  std::vector<double> round_tokens;   ///< per round: of all its steps
  std::vector<double> round_samples;  ///< likewise
  std::vector<ShapeTimes> shapes;     ///< as the runner numbers them
  double wait_seconds = 0;            ///< of all measured steps
  double tokens = 0;                  ///< likewise
  double samples = 0;                 ///< likewise

  double seconds() const;           ///< of all measured steps
  double seconds_per_step() const;  ///< the median; of a mixture, the mean
  double tokens_per_step() const { return tokens / static_cast<double>(step_seconds.size()); }
  double samples_per_step() const { return samples / static_cast<double>(step_seconds.size()); }
  /// Tokens per second of each round; of a mixture those that it really held.
  std::vector<double> round_tokens_per_second() const;
  std::vector<double> round_samples_per_second() const;
};

/// Runs the contenders in turns, a round of one and then of the next, so that a slow minute of the
/// machine hits them alike; every other round in the opposite order. While one runs the others sleep.
/// Where batches come in several shapes, every contender's rounds are as many steps, those of who is
/// fastest, so that they meet the same batches; and each shape that is measured was met before.
/// `progress`, if set, is told what is going on. Throws NumericalError when a loss is not finite: what
/// computes nothing sensible is not measured.
std::vector<BenchmarkTimes> measure_steps(
    const std::vector<StepRunner*>& contenders, const BenchmarkOptions& options,
    const std::function<void(const std::string& doing)>& progress = {});

/// How many times one throughput another is.
struct ThroughputRatio {
  double median = 1;            ///< over rounds, b against a in the same round
  ConfidenceInterval interval;  ///< 95 %, by bootstrap_median over the rounds' ratios
};
/// Of b in units of a, from the throughputs of the same rounds.
ThroughputRatio compare_throughput(std::span<const double> a, std::span<const double> b);

}  // namespace fullbore
