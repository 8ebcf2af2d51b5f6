#pragma once
#include <memory>
#include <string>
#include <vector>

#include "fullbore/app/command.h"
#include "fullbore/runtime/state.h"
#include "fullbore/train/config.h"
#include "fullbore/train/frozen_weights.h"
#include "fullbore/train/run_checkpoints.h"

namespace fullbore {

/// The configuration that a checkpoint was made with, as far as a stored one is taken (stored_config.h); what is
/// ignored is told on stderr if it `tells`.
Config stored_config(const OpenedCheckpoint& checkpoint, bool tells = true);

/// The State that a graph of the model needs to run on this checkpoint: where that has a parameter in 8 bits, as
/// `export --int8` writes them, its weights and scales instead. DataError names one that no matmul of the model reads.
std::vector<StateEntry> trained_entries(const OpenedCheckpoint& checkpoint, const Graph& graph);

/// --frozen-from: `path` becomes what train.frozen_from is for trained_state().
void add_frozen_option(Command command, std::string& path);
/// The same for what has frozen weights of several origins.
void add_frozen_option(Command command, std::vector<std::string>& paths);

/// State with these entries whose weights (is_weight()) are those of the checkpoint: parameters raw or as their exponential
/// moving averages, as train.evaluate of the run says, and running statistics. Frozen ones that the checkpoint knows by their hashes are read from train.frozen_from, which a stored
/// configuration never sets. DataError if it lacks any of them, or those files hold others.
State trained_state(const OpenedCheckpoint& checkpoint, const Config& config,
                    const std::vector<StateEntry>& entries, std::shared_ptr<Device> device);
/// The same, with those frozen ones lent by `frozen`; null: none is named, and the error for one that is needed says so.
State trained_state(const OpenedCheckpoint& checkpoint, const Config& config,
                    const std::vector<StateEntry>& entries, std::shared_ptr<Device> device,
                    const FrozenWeights* frozen);

}  // namespace fullbore
