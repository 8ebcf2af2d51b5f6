#include "fullbore/train/run_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/base/program_name.h"
#include "fullbore/base/seal.h"
#include "fullbore/ckpt/checkpoint_folder.h"
#include "fullbore/train/config_schema.h"
#include "fullbore/train/run_directory.h"
#include "fullbore/train/stored_config.h"

namespace fullbore {
namespace {

constexpr const char* kSaved = "checkpoints/last/config.json";

/// kBroken too where nothing is left of it.
Seal seal_of(std::string_view yaml) {
  const Seal seal = yaml_seal(yaml);
  return seal == Seal::kNone && yaml.find(':') == std::string_view::npos ? Seal::kBroken : seal;
}

/// What is wrong with settings that have no checksum that holds, beside the checkpoint's; empty: nothing.
std::string disagreement(std::string_view yaml, const std::string& path, const Config& saved) {
  try {
    std::vector<std::string> differing =
        differing_settings(parse_stored_config(yaml, path).config, saved);
    constexpr size_t kMost = 8;
    const size_t more = differing.size() - std::min(differing.size(), kMost);
    differing.resize(differing.size() - more);
    return fmt::format("{}{}", fmt::join(differing, ", "),
                       more > 0 ? fmt::format(" and {} more", more) : "");
  } catch (const UsageError& error) {
    return error.what();
  }
}

}  // namespace

bool is_run_config(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  return name == RunDirectory::kConfig || name == RunDirectory::kGivenConfig;
}

void check_run_config(std::string_view yaml, const std::string& path) {
  if (is_run_config(path) && seal_of(yaml) == Seal::kBroken)
    throw DataError(fmt::format(
        "{}: it is damaged: its last line is not the checksum of the others. A copy under another "
        "name may be edited.",
        path));
}

std::optional<Config> checkpoint_config(const std::string& run) {
  const Result<CheckpointFolder> last = open_checkpoint_folder(run + "/checkpoints/last");
  if (!last.ok()) return std::nullopt;
  const Result<std::string> json = last.value().text("config.json");
  if (!json.ok()) return std::nullopt;
  try {
    return parse_stored_config(json.value(), run + '/' + kSaved).config;
  } catch (const UsageError&) {
    return std::nullopt;  // of a version with other settings
  }
}

std::vector<std::string> differing_settings(const Config& found, const Config& expected) {
  std::vector<std::string> differing;
  for (const ConfigField& field : config_fields()) {
    if (field.key == "run.dir" || (!field.is_for(found) && !field.is_for(expected))) continue;
    const std::string now = value_yaml(field, found);
    const std::string then = value_yaml(field, expected);
    if (now != then) differing.push_back(fmt::format("{} is {}, not {}", field.key, now, then));
  }
  return differing;
}

Config load_run_config(const std::string& run, std::span<const std::string> overrides,
                       std::vector<std::string>& notes,
                       std::map<std::string, std::string>* foreign) {
  const std::string path = run + '/' + RunDirectory::kConfig;
  const Result<std::string> yaml = read_file(path);
  const Seal seal = yaml.ok() ? seal_of(yaml.value()) : Seal::kWhole;
  const auto taken = [&](StoredConfig stored) {
    notes.insert(notes.end(), stored.notices.begin(), stored.notices.end());
    if (foreign != nullptr) *foreign = std::move(stored.foreign);
    return std::move(stored.config);
  };
  const ForeignModels models = foreign == nullptr ? ForeignModels::refused : ForeignModels::read;
  if (seal == Seal::kWhole) return taken(load_stored_config(path, overrides, models));
  const std::optional<Config> saved = checkpoint_config(run);
  if (!saved) {
    check_run_config(yaml.value(), path);
    notes.push_back(fmt::format("{} has no checksum: an older version wrote it", path));
    return taken(load_stored_config(path, overrides));
  }
  const std::string wrong = disagreement(yaml.value(), path, *saved);
  if (!wrong.empty())
    throw DataError(fmt::format(
        "{}: {}, and it is not what {} says: {}. Settings are changed on the command line. To go "
        "on as the checkpoint was made: {} train {}/{} run.dir={} --resume",
        path, seal == Seal::kBroken ? "it is damaged" : "it has no checksum", kSaved, wrong,
        program_name(), run, kSaved, run));
  notes.push_back(fmt::format("{} {}; its settings are those of {}", path,
                              seal == Seal::kBroken ? "is damaged" : "has no checksum", kSaved));
  return taken(parse_stored_config(yaml.value(), path, overrides));
}

}  // namespace fullbore
