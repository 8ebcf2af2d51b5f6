#pragma once
#include <optional>
#include <string>
#include <vector>

#include "fullbore/ckpt/checkpoint_store.h"
#include "fullbore/runtime/state.h"
#include "fullbore/train/run_directory.h"

namespace fullbore {

/// Fills State from the newest sound checkpoint of the run and returns its record; none if the run
/// has not saved any. Links of the store that a crash left behind are moved to it. `passed_over`
/// receives a sentence per damaged file that was skipped, and one where links could not be moved.
/// Throws DataError when the checkpoint is of another model (the first tensor that differs is named),
/// of another tokenizer or identity than given, or of other frozen tensors than those lent here (`frozen`), or when all
/// are damaged.
std::optional<RunRecord> load_last(const RunDirectory& run, CheckpointStore& store,
                                   const std::string& tokenizer, const RunIdentity& identity,
                                   State& state, std::vector<std::string>& passed_over,
                                   const std::map<std::string, FrozenTensor>& frozen = {});

/// The checkpoint that `path` means to readers: itself, or of a run directory checkpoints/best, or
/// checkpoints/last where there is no best. DataError if there is none.
std::string checkpoint_of(const std::string& path);

/// What readers need of a checkpoint: the folder, found wholly in order, and its record.
struct OpenedCheckpoint {
  CheckpointFolder folder;
  RunRecord record;
};
/// `run_or_checkpoint` as checkpoint_of() has it. DataError names what is damaged.
OpenedCheckpoint open_checkpoint(const std::string& run_or_checkpoint);

/// Places in State for restore(), but for what is lent.
std::vector<TensorSlot> tensor_slots(State& state);
/// One of them, to be filled from the tensor `name`.
TensorSlot tensor_slot(State& state, int entry, const std::string& name);

}  // namespace fullbore
