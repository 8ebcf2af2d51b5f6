#include "fullbore/train/least_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "fullbore/base/error.h"
#include "fullbore/base/text.h"
#include "fullbore/train/config_schema.h"
#include "fullbore/train/memory_fit.h"

namespace fullbore {
namespace {

constexpr double kFloatBytes = 4;

double size(int64_t value) { return static_cast<double>(value); }

/// Of the matrices that every model of these sizes has. Vectors, and what options add, are left out.
double matrix_elements(const Config& config) {
  if (config.model.name == "peptide") {
    const Config::Peptide::Model& model = config.peptide.model;
    const double width = size(model.hidden_dim);
    return size(model.num_encoder_layers + model.num_decoder_layers) * 4 * width * width;
  }
  const double width = size(config.model.width);
  const double tables = size(config.model.vocabulary) * width;
  if (config.model.name == "gpt")
    return tables + size(config.model.context) * width +
           size(config.model.layers) * 12 * width * width;
  const Config::Hybrid::Model& model = config.hybrid.model;
  // Both projections of the Mamba branch, and of the feed-forward layer; the least of the other branch.
  return tables + size(config.model.layers) * (2 * width * width + 3 * width * size(model.inner) +
                                               2 * width * size(model.hidden));
}

/// Sizes by which a model grows, as they are set.
std::string sizes_text(const Config& config) {
  std::string text;
  for (const char* key :
       {"model.layers", "model.width", "model.context", "model.vocabulary", "model.inner",
        "model.hidden", "model.hidden_dim", "model.num_encoder_layers", "model.num_decoder_layers",
        "model.max_peaks", "train.batch_size", "data.tokens_per_batch", "data.prefetch"}) {
    const ConfigField* const field = find_config_field(key);
    if (field == nullptr || !field->is_for(config)) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", key, value_yaml(*field, config));
  }
  return text;
}

}  // namespace

LeastMemory least_memory(const Config& config) {
  LeastMemory least;
  least.parameters = matrix_elements(config);
  least.parameter_bytes = kFloatBytes * least.parameters;
  const double rows = size(std::max<int64_t>(1, config.train.batch_size));
  // Tokens and what follows each; or m/z and intensity of peaks.
  const double row = config.model.name == "peptide" ? 2 * kFloatBytes
                                                    : 2 * kFloatBytes * size(config.model.context);
  const double tokens = size(config.data.tokens_per_batch);
  least.batch_bytes =
      config.model.name != "peptide" && tokens > 0 ? 2 * kFloatBytes * tokens : rows * row;
  least.prefetched_bytes = least.batch_bytes * size(config.data.prefetch);
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
