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

/// Which pairs are wanted.
struct HeldOutChoice {
  std::string path = {};  ///< all of a file; empty: what the run held out
  int64_t first = 0;      ///< of them
  int64_t most = 0;       ///< so many at most; 0: all
  bool training = true;   ///< those that the run was trained on too
};

/// What a trained model is measured on.
struct HeldOutPairs {
  PairRange examples;  ///< none where there are not as many as `first`
  PairRange training;  ///< at most kMostTrainingPairs, for their mean
  int64_t trained_on = 0;
  std::string name;   ///< a file, or "the synthetic corpus 42"
  std::string about;  ///< for people: how many there are
};

/// A mean over more tells no more, and a stranger's configuration may say any number.
inline constexpr int64_t kMostTrainingPairs = 20000;

/// The synthetic corpus has no end: held out are all pairs behind those that were trained on, and data.validation_pairs of
/// them where `most` is 0. UsageError: nothing was held out. DataError: a file, or the run's own, cannot be read, or has
/// vectors of another width.
HeldOutPairs held_out_pairs(const Config& config, const HeldOutChoice& choice, Console& console);

}  // namespace fullbore::energy_flow
