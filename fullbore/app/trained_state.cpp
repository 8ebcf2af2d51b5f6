#include "fullbore/app/trained_state.h"

#include "fullbore/app/job_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "fullbore/base/dtype.h"
#include "fullbore/base/error.h"
#include "fullbore/base/text.h"
#include "fullbore/optim/optimizer.h"
#include "fullbore/passes/gemm/quantize_linears.h"
#include "fullbore/train/frozen_weights.h"
#include "fullbore/train/stored_weights.h"
#include "fullbore/train/weight_source.h"

namespace fullbore {
namespace {

[[noreturn]] void refuse_unread(const CheckpointFolder& folder, const std::string& weights) {
  throw DataError(
      fmt::format("{} has '{}', which no matmul of the model that its config.json describes reads",
                  folder.path(), weights));
}

/// The graph's parameters that the checkpoint has in 8 bits. DataError names weights that are of none of them.
std::set<std::string> parameters_in_8_bits(const CheckpointFolder& folder, const Graph& graph) {
  std::set<std::string> parameters;
  if (!folder.has_group("weights")) return parameters;
  std::map<std::string, std::string> by_weights;
  for (const Graph::Input& input : graph.inputs())
    by_weights.emplace(int8_weight_name(input.name), input.name);
  const Checkpoint file = folder.group("weights").take_or_throw();
  for (const StoredTensor& tensor : file.tensors()) {
    const auto found = by_weights.find(tensor.name);
    if (found != by_weights.end())
      parameters.insert(found->second);
    else if (tensor.type.dtype == DType::i8)
      refuse_unread(folder, tensor.name);
  }
  return parameters;
}

// The graph of a program that trains nothing knows no train.freeze.
bool is_frozen(const Config& config, const std::string& parameter) {
  return std::ranges::any_of(config.train.freeze, [&](const std::string& pattern) {
    return pattern_distance(pattern, parameter) == 0;
  });
}

void check_fits(const Config& config, const std::vector<StateEntry>& entries) {
  double weights = 0, others = 0;
  for (const StateEntry& entry : entries)
    (entry.role == Role::parameter || entry.role == Role::frozen ? weights : others) +=
        static_cast<double>(entry.type.bytes());
  const auto allowed = static_cast<double>(trained_memory_bytes(config));
  if (weights + others <= allowed) return;
  throw MemoryError(
      fmt::format("memory: weights take {}, what texts leave behind {}; {} are allowed beside the "
                  "process (engine.memory_budget)",
                  bytes_text(weights), bytes_text(others), bytes_text(allowed)));
}

// Those that lie outside of the checkpoint, in the files that the user names.
void fill_frozen(const OpenedCheckpoint& checkpoint, const std::string& path, State& state) {
  const std::map<std::string, FrozenTensor>& recorded = checkpoint.record.frozen;
  if (recorded.empty()) return;
  if (path.empty()) check_frozen(recorded, {}, checkpoint.folder.path());
  const FrozenWeights weights(MappedTensors::open(path));
  check_frozen(recorded, weights.record(recorded), checkpoint.folder.path());
  for (size_t i = 0; i < state.entries().size(); ++i) {
    const StateEntry& entry = state.entries()[i];
    if (!recorded.contains(entry.name)) continue;
    const MappedTensor& tensor = *weights.find(entry.name);
    if (tensor.type.shape != entry.type.shape || !is_floating(tensor.type.dtype))
      throw DataError(fmt::format("{}: '{}' is {}, the model's is {}", tensor.file->path(),
                                  tensor.name, tensor.type.text(), entry.type.text()));
    std::vector<std::byte> values(static_cast<size_t>(entry.type.bytes()));
    for (int64_t element = 0; element < entry.type.elements(); ++element)
      store_element(values.data(), entry.type.dtype, element,
                    load_element(tensor.bytes.data(), tensor.type.dtype, element));
    state.write(static_cast<int>(i), values);
  }
}

}  // namespace

void add_frozen_option(Command command, std::string& path) {
  command.add_option("--frozen-from", path,
                     "Safetensors file or folder with the frozen weights that the checkpoint knows "
                     "by their hashes (train.frozen_from)");
}

void add_frozen_option(Command command, std::vector<std::string>& paths) {
  command.add_option("--frozen-from", paths,
                     "Safetensors file or folder with the frozen weights that the checkpoint knows "
                     "by their hashes; NAME=FOLDER of each receiver where there are several");
}

Config stored_config(const OpenedCheckpoint& checkpoint, bool tells) {
  StoredConfig stored =
      parse_stored_config(checkpoint.record.config, checkpoint.folder.path() + "/config.json");
  return tells ? told_config(std::move(stored)) : std::move(stored.config);
}

std::vector<StateEntry> trained_entries(const OpenedCheckpoint& checkpoint, const Graph& graph) {
  const std::set<std::string> names = parameters_in_8_bits(checkpoint.folder, graph);
  if (names.empty()) return state_entries(graph);
  const QuantizedLinears quantized = quantize_linears(graph, names);
  for (const std::string& name : names)
    if (!quantized.replaced.contains(name))
      refuse_unread(checkpoint.folder, int8_weight_name(name));
  return state_entries(quantized.graph);
}

namespace {

/// The types of the weights that a checkpoint holds, and of their averages.
std::map<std::string, TensorType> stored_types(const CheckpointFolder& folder) {
  std::map<std::string, TensorType> types;
  for (const char* group : {"weights", "averages", "optimizer"}) {
    if (!folder.has_group(group)) continue;
    const Checkpoint file = folder.group(group).take_or_throw();
    for (const StoredTensor& tensor : file.tensors()) types.emplace(tensor.name, tensor.type);
  }
  return types;
}

// All but those frozen ones that the checkpoint does not hold. Weights that were trained in bf16 alone become what the
// program asks for.
State restored_state(const OpenedCheckpoint& checkpoint, const Config& config,
                     const std::vector<StateEntry>& entries, std::shared_ptr<Device> device,
                     std::span<const LentEntry> lent) {
  const std::map<std::string, TensorType> stored = stored_types(checkpoint.folder);
  std::vector<TensorSlot> slots;
  std::vector<int> filled;
  for (size_t i = 0; i < entries.size(); ++i) {
    const StateEntry& entry = entries[i];
    if (!is_weight(entry)) continue;
    if (checkpoint.record.frozen.contains(entry.name)) continue;
    const bool averaged = entry.role == Role::parameter && config.train.evaluate == "ema" &&
                          !is_frozen(config, entry.name);
    const std::string name = averaged ? ema_name(entry.name) : entry.name;
    const auto known = stored.find(name);
    const bool converts = known != stored.end() && is_convertible_weight(known->second, entry.type);
    slots.push_back({name, converts ? known->second : entry.type});
    filled.push_back(static_cast<int>(i));
  }
  // A configuration may say any sizes: what the checkpoint does not have takes no memory.
  restore(checkpoint.folder, slots, UnknownTensors::kIgnore).take_or_throw();
  check_fits(config, entries);
  State state(entries, std::move(device), lent);
  std::map<int, std::vector<std::byte>> converted;
  for (size_t i = 0; i < slots.size(); ++i) {
    const int entry = filled[i];
    if (slots[i].type == entries[static_cast<size_t>(entry)].type) {
      slots[i] = tensor_slot(state, entry, slots[i].name);
      continue;
    }
    std::vector<std::byte>& values = converted[entry];
    values.resize(static_cast<size_t>(slots[i].type.bytes()));
    slots[i].data = values.data();
  }
  restore(checkpoint.folder, slots, UnknownTensors::kIgnore).take_or_throw();
  for (size_t i = 0; i < slots.size(); ++i) {
    const auto found = converted.find(filled[i]);
    if (found == converted.end()) continue;
    const TensorType& type = entries[static_cast<size_t>(filled[i])].type;
    std::vector<std::byte> values(static_cast<size_t>(type.bytes()));
    convert_elements(found->second, slots[i].type.dtype, values, type.dtype);
    state.write(filled[i], values);
  }
  return state;
}

}  // namespace

State trained_state(const OpenedCheckpoint& checkpoint, const Config& config,
                    const std::vector<StateEntry>& entries, std::shared_ptr<Device> device) {
  State state = restored_state(checkpoint, config, entries, std::move(device), {});
  fill_frozen(checkpoint, config.train.frozen_from, state);
  return state;
}

State trained_state(const OpenedCheckpoint& checkpoint, const Config& config,
                    const std::vector<StateEntry>& entries, std::shared_ptr<Device> device,
                    const FrozenWeights* frozen) {
  const std::map<std::string, FrozenTensor>& recorded = checkpoint.record.frozen;
  const std::map<std::string, FrozenTensor> here =
      frozen == nullptr ? std::map<std::string, FrozenTensor>() : frozen->record(recorded);
  check_frozen(recorded, here, checkpoint.folder.path());
  std::vector<LentEntry> lent;
  if (!recorded.empty()) lent = frozen->lend(entries);
  return restored_state(checkpoint, config, entries, std::move(device), lent);
}

}  // namespace fullbore
