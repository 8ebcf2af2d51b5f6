#include "fullbore/train/stored_config.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "fullbore/train/run_directory.h"

namespace fullbore {
namespace {

/// In all sections but these, those that workloads add among them, numbers, truth values and choices from a list do
/// nothing but decide what is computed.
constexpr std::array<std::string_view, 3> kJudgedByKey = {"run", "engine", "log"};

/// All else that is taken, key by key.
constexpr std::array<std::string_view, 29> kTaken = {
    "run.name",
    "run.seed",
    "optim.groups",
    "train.freeze",
    "engine.device",
    "engine.precision",
    "engine.fp32_modules",
    "engine.accumulate",
    "engine.parallel_microbatches",
    "engine.loss_scale",
    "engine.loss_scale_growth",
    "engine.loss_scale_backoff",
    "engine.loss_scale_interval",
    "engine.threads",
    "engine.processor",
    "engine.attention",
    "engine.row_invariant",
    "engine.cublaslt",  // which library is the machine's to say
    "engine.compile",
    "engine.recompute",
    "engine.memory_budget",
    "engine.degrade",
    "engine.disabled_passes",
    "engine.cache",  // may switch it off
    "log.interval",
    "log.detail",
    "log.level",
    "log.metrics",
    "log.tensorboard",  // in the run's own folder
};

constexpr std::array<std::string_view, 2> kPaths = {"data.path", "model.initialize_from"};

bool contains(const auto& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// Can its value be anything but a number, a truth value or one of a few words?
bool is_free_text(const ConfigField& field) {
  Config config;
  const ConfigPlace place = field.place(config);
  return field.choices.empty() && (std::holds_alternative<std::string*>(place) ||
                                   std::holds_alternative<std::vector<std::string>*>(place));
}

}  // namespace

StoredKey stored_key(const ConfigField& field) {
  if (field.names_file || contains(kPaths, field.key)) return StoredKey::path;
  const bool taken = field.is_taken || contains(kTaken, field.key) ||
                     (!contains(kJudgedByKey, field.section()) && !is_free_text(field));
  return taken ? StoredKey::taken : StoredKey::ignored;
}

bool is_stored_config(std::string_view path) {
  const std::string name = std::filesystem::path(path).filename().string();
  return name == RunDirectory::kConfig || name == RunDirectory::kGivenConfig ||
         name == "config.json";
}

StoredConfig load_named_config(const std::string& path, std::span<const std::string> overrides) {
  if (is_stored_config(path)) return load_stored_config(path, overrides);
  return {load_config(path, overrides), {}};
}

}  // namespace fullbore
