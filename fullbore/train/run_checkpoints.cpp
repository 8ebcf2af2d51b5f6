#include "fullbore/train/run_checkpoints.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <string_view>

#include "fullbore/base/dtype.h"
#include "fullbore/base/error.h"
#include "fullbore/base/file_system.h"
#include "fullbore/train/fp8_matmuls.h"
#include "fullbore/train/frozen_weights.h"
#include "fullbore/train/retired_names.h"
#include "fullbore/train/run_position.h"
#include "fullbore/train/tensor_groups.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;

// How tensors of that type are called by the keys that say how State is stored.
std::string_view storage_of(const TensorType& type) {
  return is_integer(type.dtype) ? "int8" : dtype_name(type.dtype);
}

// Before sizes and names are compared: moments or weights that are stored in another way are no other model.
void check_storage(const CheckpointFolder& checkpoint, const State& state) {
  std::map<std::string, TensorType, std::less<>> stored;
  for (const std::string& group : checkpoint.groups()) {
    const Checkpoint file = checkpoint.group(group).take_or_throw();
    for (const StoredTensor& tensor : file.tensors()) stored.emplace(tensor.name, tensor.type);
  }
  const bool was_fp8 = stored.contains(kFp8Amax), is_fp8 = state.find(kFp8Amax) >= 0;
  if (was_fp8 != is_fp8)
    throw UsageError(fmt::format("{}: the run was started with engine.fp8={}, not {}",
                                 checkpoint.path(), was_fp8, is_fp8));
  for (const StateEntry& entry : state.entries()) {
    const auto found = stored.find(entry.name);
    if (found == stored.end() || found->second.shape != entry.type.shape) continue;
    const std::string_view was = storage_of(found->second), is = storage_of(entry.type);
    if (was == is) continue;
    if (entry.role == Role::moment)
      throw UsageError(fmt::format(
          "{}: the run stores its moments as engine.moments={}, not {}: '{}' is {} in it",
          checkpoint.path(), was, is, entry.name, found->second.text()));
    if (entry.role == Role::parameter)
      throw UsageError(fmt::format(
          "{}: the run was started with engine.master_weights={}: '{}' is {} in it, {} here",
          checkpoint.path(), was == "f32" ? "true" : "false", entry.name, found->second.text(),
          entry.type.text()));
  }
}

bool is_checkpoint(const fs::path& path) {
  std::error_code error;
  return fs::exists(path / kManifestName, error);
}

}  // namespace

TensorSlot tensor_slot(State& state, int entry, const std::string& name) {
  return {name, state.entries()[static_cast<size_t>(entry)].type, nullptr,
          [&state, entry](const TensorSlot::Fill& fill) {
            state.produce(entry, Pieces::in_order, fill);
          }};
}

std::vector<TensorSlot> tensor_slots(State& state) {
  std::vector<TensorSlot> slots;
  for (size_t i = 0; i < state.entries().size(); ++i)
    if (is_saved(state, static_cast<int>(i)))
      slots.push_back(tensor_slot(state, static_cast<int>(i), state.entries()[i].name));
  return slots;
}

std::optional<RunRecord> load_last(const RunDirectory& run, CheckpointStore& store,
                                   const std::string& tokenizer, const RunIdentity& identity,
                                   State& state, std::vector<std::string>& passed_over,
                                   const std::map<std::string, FrozenTensor>& frozen) {
  LatestCheckpoint latest = find_latest(store).take_or_throw();
  passed_over = latest.rejected;
  if (!latest.found) {
    if (latest.rejected.empty()) return std::nullopt;
    throw DataError(fmt::format("no checkpoint of {} is sound: {}", run.path(),
                                fmt::join(latest.rejected, "; ")));
  }
  const auto& [checkpoint, record] = *latest.found;
  check_frozen(record.frozen, frozen, checkpoint.path());
  check_storage(checkpoint, state);
  restore(checkpoint, tensor_slots(state)).take_or_throw();
  if (record.tokenizer != tokenizer)
    throw DataError(fmt::format(
        "{}: the run was trained with another tokenizer than data.path gives", checkpoint.path()));
  for (const auto& [name, text] : identity) {
    const auto stored = record.identity.find(name);
    const std::string was = stored == record.identity.end() ? "" : renamed_identity(stored->second);
    if (was != text)
      throw DataError(fmt::format("{}: the run's {} was '{}', here it is '{}'", checkpoint.path(),
                                  name, was, text));
  }
  const bool best = to_position(record).best_step == record.step;
  if (const Status adopted = store.adopt(checkpoint.path(), best); !adopted.ok())
    passed_over.push_back(adopted.error());  // the next save will say so too
  return record;
}

std::string checkpoint_of(const std::string& path) {
  std::error_code error;
  if (is_checkpoint(path)) return path;
  for (const char* name : {"best", "last"}) {
    const fs::path folder = fs::path(path) / "checkpoints" / name;
    if (!fs::exists(folder, error)) continue;
    // A name beside the link, as CheckpointStore makes them: a stranger's may lead anywhere.
    const std::string target = system_files().link_target(folder.string());
    const std::string inner = target.empty() ? "" : (folder.parent_path() / target).string();
    if (target.find('/') != target.npos || target == ".." || target == "." ||
        (!inner.empty() && !system_files().link_target(inner).empty()))
      throw DataError(
          fmt::format("{} is a link that leads out of {}, to {}: the name of a checkpoint beside "
                      "it was expected",
                      folder.string(), folder.parent_path().string(), target));
    return folder.string();
  }
  // weights.safetensors and its like: what is meant is the checkpoint around it.
  const fs::path around = fs::path(path).parent_path();
  if (!fs::is_directory(path, error) && fs::exists(path, error) && is_checkpoint(around))
    return around.string();
  if (!fs::exists(path, error))
    throw DataError(fmt::format("there is no run or checkpoint {}", path));
  throw DataError(
      fmt::format("{} holds no checkpoint: neither {} nor checkpoints/best or checkpoints/last",
                  path, kManifestName));
}

OpenedCheckpoint open_checkpoint(const std::string& run_or_checkpoint) {
  CheckpointFolder folder =
      open_checkpoint_folder(checkpoint_of(run_or_checkpoint)).take_or_throw();
  folder.verify().take_or_throw();
  RunRecord record = read_run_record(folder).take_or_throw();
  return {std::move(folder), std::move(record)};
}

}  // namespace fullbore
