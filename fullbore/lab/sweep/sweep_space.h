#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fullbore {

/// A setting that a sweep varies.
struct SweepDimension {
  enum class Kind { choice, uniform, log, whole };

  std::string key;  ///< "optim.learning_rate"
  Kind kind = Kind::choice;
  std::vector<std::string> choices = {};  ///< of Kind::choice, as they are written
  double low = 0, high = 0;               ///< of the others, both included
};

/// What a file of a sweep asks for.
struct SweepSpace {
  enum class Method { grid, random, halving };

  std::string config;                      ///< file of the job
  std::vector<std::string> settings = {};  ///< "key=value", of all trials
  Method method = Method::random;
  int64_t samples = 20;         ///< trials that are drawn; of grid all combinations are made
  uint64_t seed = 1;            ///< of what is drawn: the same number draws the same trials
  std::string metric = "loss";  ///< as evaluation lines have it, without "validation_"
  bool higher_is_better = false;
  int64_t reduction =
      3;  ///< of halving: one of so many trials goes on, with so many times the steps
  int64_t least_steps = 50;  ///< of halving: of the first round
  std::vector<SweepDimension> dimensions;
};

/// Trials: a value for each dimension, as text.
using SweepTrials = std::vector<std::vector<std::string>>;

/// Reads YAML of two levels, as configurations have. The section `sweep` says how; every other key is one of the
/// configuration: a list holds the values to choose from, "uniform LOW HIGH", "log LOW HIGH" and "whole LOW HIGH" draw from
/// a range. UsageError with file and line: an unknown key, with the nearest name, a value that the key does not take, an
/// empty range or list, nothing that varies, a grid of ranges.
SweepSpace parse_sweep_space(std::string_view yaml, const std::string& source);

/// In the order in which they are made. UsageError: a grid of more than 100,000.
SweepTrials sweep_trials(const SweepSpace& space);

/// Steps of each round, the last `most_steps`; one round but for halving.
std::vector<int64_t> sweep_rounds(const SweepSpace& space, int64_t most_steps);

/// "key=value" of a trial.
std::vector<std::string> trial_settings(const SweepSpace& space,
                                        const std::vector<std::string>& values);

}  // namespace fullbore
