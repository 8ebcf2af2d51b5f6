#include "fullbore/train/least_memory.h"

#include <fmt/format.h>

#include <string>

#include "fullbore/base/error.h"
#include "fullbore/base/text.h"
#include "fullbore/train/config_keys.h"
#include "fullbore/train/config_schema.h"
#include "fullbore/train/memory_fit.h"

namespace fullbore {
namespace {

/// Sizes by which a model grows, as they are set: its own before those of batches.
std::string sizes_text(const Config& config) {
  std::string text;
  for (const std::string_view section : {"model", "train", "data"})
    for (const ConfigField& field : config_fields())
      if (field.is_size && field.section() == section && field.is_for(config))
        text +=
            fmt::format("{}{}={}", text.empty() ? "" : ", ", field.key, value_yaml(field, config));
  return text;
}

}  // namespace

LeastMemory least_memory(const Config& config) {
  const ConfigKeys* const keys = keys_of_model(config);
  LeastMemory least =
      keys != nullptr && keys->least_memory ? keys->least_memory(config) : LeastMemory();
  least.parameter_bytes = 4 * least.parameters;
  least.prefetched_bytes = least.batch_bytes * static_cast<double>(config.data.prefetch);
  return least;
}

void check_least_memory(const Config& config) {
  const LeastMemory least = least_memory(config);
  const auto budget = static_cast<double>(memory_budget_bytes(config));
  if (least.bytes() <= budget) return;
  throw MemoryError(fmt::format(
      "memory: the sizes ({}) ask for {} at least: {} for {} parameters, {} for batches that are "
      "kept ready; {} are allowed (engine.memory_budget).",
      sizes_text(config), bytes_text(least.bytes()), bytes_text(least.parameter_bytes),
      count_text(least.parameters), bytes_text(least.prefetched_bytes), bytes_text(budget)));
}

}  // namespace fullbore
