#include "fullbore/train/run_checkpoints.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "fullbore/base/error.h"
#include "fullbore/ckpt/latest.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;

void save(const std::string& path, const State& state, const RunRecord& record,
          const RunIdentity& identity) {
  std::vector<NamedTensor> tensors;
  for (size_t i = 0; i < state.entries().size(); ++i)
    tensors.push_back(
        {state.entries()[i].name, state.entries()[i].type, state.data(static_cast<int>(i))});
  Metadata metadata = to_metadata(record);
  for (const auto& [name, text] : identity) metadata["identity." + name] = text;
  write_checkpoint(path, tensors, metadata).take_or_throw();
}

std::vector<TensorSlot> slots_of(const State& state) {
  std::vector<TensorSlot> slots;
  for (size_t i = 0; i < state.entries().size(); ++i)
    slots.push_back(
        {state.entries()[i].name, state.entries()[i].type, state.data(static_cast<int>(i))});
  return slots;
}

/// Checkpoints of the form step-<N>.safetensors.
std::vector<fs::path> previous_checkpoints(const RunDirectory& run) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(run.checkpoints(), error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step-") && name.ends_with(".safetensors")) paths.push_back(entry.path());
  }
  return paths;
}

}  // namespace

void save_last(const RunDirectory& run, const State& state, const RunRecord& record,
               const RunIdentity& identity) {
  // The old file gets its second name before the new one takes the first: at every moment one of
  // them is whole. A file system without hard links keeps only the last one.
  std::string kept;
  if (const Result<Checkpoint> old = read_checkpoint(run.last_checkpoint(), Verify::kHeader)) {
    const Result<RunRecord> old_record = read_run_record(old.value());
    if (old_record && old_record.value().step != record.step) {
      kept = run.checkpoints() + "/" + step_checkpoint_name(old_record.value().step);
      (void)::link(run.last_checkpoint().c_str(), kept.c_str());
    }
  }
  save(run.last_checkpoint(), state, record, identity);
  if (kept.empty()) return;  // first save, or saved again at the same step
  std::error_code error;
  for (const fs::path& path : previous_checkpoints(run))
    if (path != fs::path(kept)) fs::remove(path, error);
}

void save_best(const RunDirectory& run, const State& state, const RunRecord& record,
               const RunIdentity& identity) {
  save(run.best_checkpoint(), state, record, identity);
}

std::optional<RunRecord> load_last(const RunDirectory& run, const std::string& tokenizer,
                                   const RunIdentity& identity, State& state,
                                   std::vector<std::string>& passed_over) {
  LatestCheckpoint latest = find_latest(run.checkpoints()).take_or_throw();
  passed_over = latest.rejected;
  if (!latest.found) {
    if (latest.rejected.empty()) return std::nullopt;
    throw DataError(fmt::format("no checkpoint of {} is sound: {}", run.path(),
                                fmt::join(latest.rejected, "; ")));
  }
  const auto& [checkpoint, record] = *latest.found;
  restore(checkpoint, slots_of(state)).take_or_throw();
  if (record.tokenizer != tokenizer)
    throw DataError(fmt::format(
        "{}: the run was trained with another tokenizer than data.path gives", checkpoint.path()));
  for (const auto& [name, text] : identity) {
    const auto stored = checkpoint.metadata().find("identity." + name);
    if (stored == checkpoint.metadata().end() || stored->second != text)
      throw DataError(fmt::format("{}: the run's {} was '{}', here it is '{}'", checkpoint.path(),
                                  name, stored == checkpoint.metadata().end() ? "" : stored->second,
                                  text));
  }
  return record;
}

std::string checkpoint_of(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    if (fs::exists(path, error)) return path;
    throw DataError(fmt::format("there is no run or checkpoint {}", path));
  }
  for (const char* name : {"best", "last"}) {
    std::string file = fmt::format("{}/checkpoints/{}.safetensors", path, name);
    if (fs::exists(file, error)) return file;
  }
  throw DataError(
      fmt::format("{} holds no checkpoint: no checkpoints/best.safetensors or "
                  "last.safetensors",
                  path));
}

void load_parameters(const Checkpoint& checkpoint, State& state) {
  restore(checkpoint, slots_of(state), UnknownTensors::kIgnore).take_or_throw();
}

}  // namespace fullbore
