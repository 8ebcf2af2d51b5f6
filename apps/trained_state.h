#pragma once
#include <vector>

#include "fullbore/runtime/state.h"
#include "fullbore/train/config.h"
#include "fullbore/train/run_checkpoints.h"

namespace fullbore {

/// State with these entries whose parameters are those of the checkpoint: the raw ones or their averages, as
/// train.evaluate of the run says. DataError if it lacks any of them.
State trained_state(const OpenedCheckpoint& checkpoint, const Config& config,
                    const std::vector<StateEntry>& entries);

}  // namespace fullbore
