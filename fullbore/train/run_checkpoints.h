#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/ckpt/run_record.h"
#include "fullbore/runtime/state.h"
#include "fullbore/train/run_directory.h"

namespace fullbore {

/// What makes a run what it is beside its tensors, as short texts by name: "data", "model". A run is
/// resumed with the same identity only. Kept in the checkpoint's metadata as "identity.<name>".
using RunIdentity = std::map<std::string, std::string>;

/// Saves State and record as last.safetensors. The checkpoint that stood there stays beside it as
/// step-<N>.safetensors until the next save, so that damage to one file never costs the run.
/// Throws DataError; then the files are as they were.
void save_last(const RunDirectory& run, const State& state, const RunRecord& record,
               const RunIdentity& identity);
/// Saves as best.safetensors.
void save_best(const RunDirectory& run, const State& state, const RunRecord& record,
               const RunIdentity& identity);

/// Fills State from the newest sound checkpoint of the run and returns its record; none if the run
/// has not saved any. `passed_over` receives a sentence per damaged file that was skipped. Throws
/// DataError when the checkpoint is of another model (the first tensor that differs is named), of
/// another tokenizer or identity than given, or when all are damaged.
std::optional<RunRecord> load_last(const RunDirectory& run, const std::string& tokenizer,
                                   const RunIdentity& identity, State& state,
                                   std::vector<std::string>& passed_over);

/// The file that `path` means to readers: itself, or of a run directory best.safetensors, or
/// last.safetensors where there is no best. DataError if there is none.
std::string checkpoint_of(const std::string& path);

/// Fills State, which may ask for less than the checkpoint holds.
void load_parameters(const Checkpoint& checkpoint, State& state);

}  // namespace fullbore
