#pragma once
#include <spdlog/logger.h>

#include <map>
#include <optional>
#include <string>

#include "fullbore/train/run_position.h"
#include "fullbore/train/trainer.h"

namespace fullbore {

/// Fills State from the run's last checkpoint that is whole, and tells where that stands; none if the
/// run has no checkpoint yet. UsageError: the run has another seed, or is past the job's last step.
/// DataError: it is of another model, text or tokenizer, of other tensors than are lent (`frozen`), or damaged.
std::optional<RunPosition> restore_last(const TrainingJob& job, const RunDirectory& run,
                                        CheckpointStore& store, State& state,
                                        const std::map<std::string, FrozenTensor>& frozen,
                                        spdlog::logger& log);

}  // namespace fullbore
