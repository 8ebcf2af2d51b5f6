#include "fullbore/train/settled_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "fullbore/base/error.h"
#include "fullbore/train/config_schema.h"
#include "fullbore/train/run_config.h"
#include "fullbore/train/run_directory.h"
#include "fullbore/train/stored_config.h"

namespace fullbore {
namespace {

constexpr const char* kParallel = "engine.parallel_microbatches";
// Whatever is decided at the start of a run; parts last, for they depend on the batch.
constexpr std::array kDecided = {"train.batch_size", "engine.recompute", "engine.accumulate",
                                 kParallel};

bool counts_parts(std::string_view key) { return key == "engine.accumulate" || key == kParallel; }

const ConfigField& field_of(const char* key) { return *find_config_field(key); }

std::string value_of(const char* key, const Config& config) {
  return value_yaml(field_of(key), config);
}

Config with_value_of(const char* key, Config config, const Config& other) {
  assign(field_of(key), config, {value_of(key, other), false, false, {}});
  return config;
}

// Do settings that come from two places go together?
bool is_valid(const Config& config) {
  try {
    parse_config(config_yaml(config), "");
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

}  // namespace

std::optional<SettledConfig> read_settled(const std::string& run) {
  namespace fs = std::filesystem;
  const std::string resolved = run + '/' + RunDirectory::kConfig;
  const std::string given = run + '/' + RunDirectory::kGivenConfig;
  if (!fs::exists(resolved)) return std::nullopt;
  std::vector<std::string> notes;
  Config config;
  try {
    config = load_run_config(run, {}, notes);
  } catch (const Error&) {
    const std::optional<Config> saved = checkpoint_config(run);
    if (!saved) throw;
    config = *saved;
    notes = {
        fmt::format("{} is damaged or not the run's: what the run had settled is taken from its "
                    "last checkpoint",
                    resolved)};
  }
  // A run from before there were microbatches, which made its steps without.
  if (config.engine.parallel_microbatches == 0) config.engine.parallel_microbatches = 1;
  SettledConfig settled{config, config, notes};
  if (!fs::exists(given)) return settled;
  try {
    settled.given = load_stored_config(given).config;
  } catch (const Error& error) {
    settled.notes.push_back(
        fmt::format("{} What memory changed of the settings is not known any more.", error.what()));
  }
  return settled;
}

ResumedConfig keep_settled(const Config& config, const SettledConfig& run) {
  ResumedConfig result{config, config, {}};
  for (const char* key : kDecided) {
    const std::string now = value_of(key, config);
    const std::string settled = value_of(key, run.resolved);
    const bool open = field_of(key).automatic && now == "auto";
    if (now != settled && !open && now != value_of(key, run.given)) continue;
    const Config changed = with_value_of(key, result.config, run.resolved);
    if (counts_parts(key) && now != settled && !is_valid(changed)) continue;
    result.config = changed;
    result.given = with_value_of(key, result.given, run.given);
    // Microbatches are decided in every run: nobody needs to be told that they stay.
    if (now != settled && !(open && key == kParallel))
      result.decisions.push_back(
          fmt::format("{}={}: as the run has been so far, not {}", key, settled, now));
  }
  if (!is_valid(result.config))
    throw UsageError(fmt::format(
        "resume: train.batch_size={}, which the run has been made with, does not go with {}: undo "
        "that, or set train.batch_size to a number",
        result.config.train.batch_size,
        result.config.optim.noise_scale
            ? "optim.noise_scale=true"
            : fmt::format("engine.accumulate={}", result.config.engine.accumulate)));
  if (!is_valid(result.given)) result.given = config;
  return result;
}

bool differs_in_settled(const Config& a, const Config& b) {
  return std::any_of(kDecided.begin(), kDecided.end(), [&](const char* key) {
    return key != kParallel && value_of(key, a) != value_of(key, b);
  });
}

}  // namespace fullbore
