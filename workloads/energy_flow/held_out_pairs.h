#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "fullbore/monitor/console.h"
#include "fullbore/train/config.h"
#include "workloads/energy_flow/pair_batches.h"

namespace fullbore::energy_flow {

/// Pairs first to first + count of a set.
struct PairRange {
  std::shared_ptr<const EmbeddingPairs> pairs;
  int64_t first = 0;
  int64_t count = 0;
};

/// What a trained model is measured on.
struct HeldOutPairs {
  PairRange examples;
  PairRange training;
  std::string name;   ///< a file, or "the synthetic corpus 42"
  std::string about;  ///< for people: how many there are
};

/// Those of the file `path`; without one what the run held out, or, of the synthetic corpus, pairs from the first on
/// that was not trained on. At most `most` pairs; 0: all. UsageError: nothing was held out. DataError: a file, or the
/// run's own, cannot be read, or has vectors of another width.
HeldOutPairs held_out_pairs(const Config& config, const std::string& path, int64_t most,
                            Console& console);

}  // namespace fullbore::energy_flow
