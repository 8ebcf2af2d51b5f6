#include "fullbore/app/initial_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "fullbore/train/config_schema.h"
#include "fullbore/train/foreign_weights.h"
#include "fullbore/train/weight_source.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;

bool is_ours(const std::string& path) {
  std::error_code error;
  return fs::exists(fs::path(path) / kManifestName, error) ||
         fs::exists(fs::path(path) / "checkpoints", error);
}

/// "model.heads is 8, there 4": settings by which the same tensors mean something else.
std::vector<std::string> differing_settings(const Config& here, const Config& there,
                                            const OpenedWorkload& workload) {
  std::vector<std::string> keys = {"model.name"};
  keys.insert(keys.end(), workload.weight_keys.begin(), workload.weight_keys.end());
  std::vector<std::string> found;
  for (const std::string& key : keys) {
    const ConfigField& field = *find_config_field(key);
    const std::string ours = value_yaml(field, here), theirs = value_yaml(field, there);
    if (ours != theirs) found.push_back(fmt::format("{} is {}, there {}", key, ours, theirs));
  }
  return found;
}

std::vector<StateEntry> evaluation_entries(const Config& config, const OpenedWorkload& workload) {
  return state_entries(
      trace_evaluation(workload.loss(config), workload.shapes(config).front()).graph);
}

/// Those of a training State that weights fill: what an evaluation does not read may be a scale or a counter.
std::vector<StateEntry> filled_entries(const State& state,
                                       const std::vector<StateEntry>& evaluation) {
  std::vector<StateEntry> entries;
  for (const StateEntry& entry : state.entries())
    if (entry.role != Role::control ||
        std::ranges::find(evaluation, entry.name, &StateEntry::name) != evaluation.end())
      entries.push_back(entry);
  return entries;
}

InitialWeights weights_of_others(const Config& config, const OpenedWorkload& workload) {
  const std::string& path = config.model.initialize_from;
  const auto source = std::make_shared<const ForeignWeights>(ForeignWeights::open(path));
  const std::vector<StateEntry> entries = evaluation_entries(config, workload);
  const WeightTransfer transfer = source->plan(entries);
  if (transfer.taken.empty() || (!config.model.initialize_partial && !transfer.is_whole()))
    throw UsageError(fmt::format(
        "model.initialize_from: {} does not fill this model: {}. A mapping of names and layouts "
        "(docs/guide/own-model.md) makes other files fit; model.initialize_partial=true would take "
        "the {} of {} tensors that do",
        source->path(), transfer_differences(transfer), transfer.taken.size(),
        transfer.taken.size() + transfer.left.size()));
  InitialWeights weights;
  weights.lines = source->lines(transfer);
  weights.fill = [source, entries](State& state) {
    source->fill(source->plan(filled_entries(state, entries)), state);
  };
  return weights;
}

}  // namespace

InitialWeights initial_weights(const Config& config, const OpenedWorkload& workload) {
  const std::string& path = config.model.initialize_from;
  if (path.empty()) return {};
  if (ForeignWeights::is_path(path)) return weights_of_others(config, workload);
  std::error_code error;
  // What is no folder of ours may be one of others; who reads none gets our own error.
  if (workload.foreign_weights && (fs::is_directory(path, error) || path.ends_with(".gguf")) &&
      !is_ours(path))
    return workload.foreign_weights(config);
  const auto source = std::make_shared<const WeightSource>(WeightSource::open(path));
  const std::vector<std::string> settings = differing_settings(config, source->config(), workload);
  const std::vector<StateEntry> entries = evaluation_entries(config, workload);
  const std::vector<TableOrigins> tables = workload.weight_tables
                                               ? workload.weight_tables(config, *source)
                                               : std::vector<TableOrigins>();
  const WeightTransfer transfer = source->plan(entries, tables);
  const bool partial = config.model.initialize_partial;
  if (!partial && !(settings.empty() && transfer.is_whole())) {
    std::vector<std::string> reasons = settings;
    if (!transfer.is_whole()) reasons.push_back(transfer_differences(transfer));
    throw UsageError(fmt::format(
        "model.initialize_from: {} is of another model: {}. model.initialize_partial=true would "
        "take the {} of {} tensors that fit and start the others at random",
        source->path(), fmt::join(reasons, "; "), transfer.taken.size(),
        transfer.taken.size() + transfer.left.size()));
  }
  if (transfer.taken.empty())
    throw UsageError(fmt::format("model.initialize_from: nothing of {} fits this model: {}",
                                 source->path(), transfer_differences(transfer)));
  InitialWeights weights;
  weights.lines = transfer_lines(*source, transfer);
  for (const std::string& setting : settings) weights.lines.push_back("differs  " + setting);
  weights.fill = [source, entries, tables](State& state) {
    source->fill(source->plan(filled_entries(state, entries), tables), state);
  };
  return weights;
}

}  // namespace fullbore
