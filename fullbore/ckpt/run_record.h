#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "fullbore/base/result.h"
#include "fullbore/ckpt/checkpoint_folder.h"

namespace fullbore {

/// What makes a run what it is beside its tensors, as short texts by name: "data", "model". A run is
/// resumed with the same identity only.
using RunIdentity = std::map<std::string, std::string>;

/// A tensor that the run read where it lay, in a file that is no part of the checkpoint.
struct FrozenTensor {
  std::string hash;  ///< of its bytes (tensor_hashes())
  std::string file;  ///< where it lay then: for people, who must name it again
  bool operator==(const FrozenTensor&) const = default;
};

/// What of a run is saved beside its tensors: with them, all that the next step depends on.
struct RunRecord {
  int64_t step = 0;            ///< steps done
  uint64_t data_position = 0;  ///< of the next batch
  uint64_t seed = 0;
  RunIdentity identity;
  std::string config;                               ///< the resolved config, JSON
  std::string tokenizer;                            ///< JSON
  std::map<std::string, FrozenTensor> frozen = {};  ///< by the name of State
  std::map<std::string, double> metrics;  ///< e.g. the best validation loss; any value, NaN too
  bool operator==(const RunRecord&) const = default;
};

/// position.json (step, data_position, seed, identity), config.json, tokenizer.json and metrics.json
/// and, if anything is frozen outside of the checkpoint, frozen.json
/// (an object of numbers; what JSON has no number for is a text: "nan", "inf", "-inf").
std::map<std::string, std::string> to_texts(const RunRecord& record);
/// Failure names the file, the key, and what stands there.
Result<RunRecord> read_run_record(const CheckpointFolder& checkpoint);

}  // namespace fullbore
