#include "fullbore/app/initial_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>

#include "fullbore/train/config_schema.h"
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

}  // namespace

InitialWeights initial_weights(const Config& config, const OpenedWorkload& workload) {
  const std::string& path = config.model.initialize_from;
  if (path.empty()) return {};
  std::error_code error;
  // What is no folder of ours may be one of others; who reads none gets our own error.
  if (workload.foreign_weights && (fs::is_directory(path, error) || path.ends_with(".gguf")) &&
      !is_ours(path))
    return workload.foreign_weights(config);
  const auto source = std::make_shared<const WeightSource>(WeightSource::open(path));
  const std::vector<std::string> settings = differing_settings(config, source->config(), workload);
  const std::vector<StateEntry> entries =
      state_entries(trace_evaluation(workload.loss(config), workload.shapes(config).front()).graph);
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
    source->fill(source->plan(state.entries(), tables), state);
  };
  return weights;
}

}  // namespace fullbore
