#include "apps/trained_state.h"

#include "apps/job_options.h"

#include <fmt/format.h>

#include <set>
#include <string>

#include "fullbore/base/error.h"
#include "fullbore/optim/optimizer.h"
#include "fullbore/passes/quantize_linears.h"

namespace fullbore {
namespace {

std::set<std::string> parameters_in_8_bits(const CheckpointFolder& folder) {
  const std::string suffix = int8_weight_name("");
  std::set<std::string> names;
  for (const std::string& group : folder.groups()) {
    const Checkpoint file = folder.group(group).take_or_throw();
    for (const StoredTensor& tensor : file.tensors())
      if (tensor.name.ends_with(suffix))
        names.insert(tensor.name.substr(0, tensor.name.size() - suffix.size()));
  }
  return names;
}

}  // namespace

Config stored_config(const OpenedCheckpoint& checkpoint, bool tells) {
  StoredConfig stored =
      parse_stored_config(checkpoint.record.config, checkpoint.folder.path() + "/config.json");
  return tells ? told_config(std::move(stored)) : std::move(stored.config);
}

std::vector<StateEntry> trained_entries(const OpenedCheckpoint& checkpoint, const Graph& graph) {
  const std::set<std::string> names = parameters_in_8_bits(checkpoint.folder);
  if (names.empty()) return state_entries(graph);
  const QuantizedLinears quantized = quantize_linears(graph, names);
  for (const std::string& name : names)
    if (!quantized.replaced.contains(name))
      throw DataError(
          fmt::format("{} has '{}', which no product of the model that its "
                      "config.json describes reads",
                      checkpoint.folder.path(), int8_weight_name(name)));
  return state_entries(quantized.graph);
}

State trained_state(const OpenedCheckpoint& checkpoint, const Config& config,
                    const std::vector<StateEntry>& entries) {
  State state(entries);
  std::vector<TensorSlot> slots;
  for (size_t i = 0; i < entries.size(); ++i) {
    const StateEntry& entry = entries[i];
    if (entry.role != Role::parameter && entry.role != Role::frozen) continue;
    const bool averaged = entry.role == Role::parameter && config.train.evaluate == "ema";
    slots.push_back({averaged ? average_name(entry.name) : entry.name, entry.type,
                     state.mutable_data(static_cast<int>(i))});
  }
  restore(checkpoint.folder, slots, UnknownTensors::kIgnore).take_or_throw();
  return state;
}

}  // namespace fullbore
