#pragma once
#include <optional>
#include <string>
#include <vector>

#include "fullbore/ckpt/run_record.h"

namespace fullbore {

struct LatestCheckpoint {
  struct Found {
    Checkpoint checkpoint;
    RunRecord record;
  };
  std::optional<Found> found;         ///< none: the folder holds no checkpoint that is in order
  std::vector<std::string> rejected;  ///< why newer ones were passed over, one sentence each
};

/// "step-00002000.safetensors"
std::string step_checkpoint_name(int64_t step);
inline constexpr const char* kLastCheckpointName = "last.safetensors";

/// The checkpoint with the most steps among `last.safetensors` and `step-*.safetensors` of a folder
/// that is wholly in order. Only those tried are read whole. Failure: the folder cannot be read.
Result<LatestCheckpoint> find_latest(const std::string& folder);

}  // namespace fullbore
