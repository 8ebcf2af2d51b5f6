#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fullbore/lab/ablation/switches.h"

namespace fullbore {

/// Something that is tuned: other values of a key, of which one can be, or passes, of which each may be left out.
struct Coordinate {
  std::string name;             ///< "engine.precision", "passes"
  std::vector<Switch> choices;  ///< a chosen pass is one that is not run
};

/// What a choice does to the numbers that a run computes.
enum class Numbers : uint8_t {
  kept,           ///< equal but for the order of sums
  changed,        ///< rounded otherwise, or learnt otherwise: quality has the last word
  another_batch,  ///< another batch size: what is learnt in a step is another thing
};
Numbers numbers_of(const Switch& choice);

struct TuningScope {
  std::vector<std::string> switches =
      {};                        ///< as parse_switch() reads them; empty: all that follows
  std::string batch_sizes = {};  ///< that may be chosen: "8,16"
  int processors = 1;            ///< of the machine
};

/// Batch sizes that are allowed; every choice of the section `engine` that the registries have, but for promises and how programs are compiled; threads and
/// microbatches in powers of two; and passes last. UsageError: as parse_switch() has it.
std::vector<Coordinate> tuning_space(const Config& config, const TuningScope& scope);

/// What is chosen in place of the configuration; of a key once.
using TuningPoint = std::vector<Switch>;
TuningPoint with(TuningPoint point, const Switch& choice);
/// Those of the point that leave numbers as they are.
TuningPoint that_keep_numbers(const TuningPoint& point);

/// The settings that make the job the point's: a setting for each key, and engine.disabled_passes with those of the
/// configuration.
std::vector<std::string> point_settings(const TuningPoint& point, const Config& config);

/// "engine.precision=bf16", "without fuse".
std::string choice_name(const Switch& choice);

}  // namespace fullbore
