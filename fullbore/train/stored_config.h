#pragma once
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/train/config_schema.h"

namespace fullbore {

/// Configurations that were found, not written by whoever runs the command: config.resolved.yaml and
/// config.given.yaml of a run folder, config.json of a checkpoint. A stranger may have made them. What they
/// may set is a list of what is allowed; docs/security.md tells it to users.

enum class StoredKey {
  taken,  ///< decides what is computed, and nothing else
  path,   ///< names what is read, as training data are; never a device or a pipe
  ignored  ///< where files go, what others can connect to: for the command line, the environment and the
           ///< user's own configuration
};
StoredKey stored_key(const ConfigField& field);

/// By its name: a file that a run or a checkpoint keeps, whoever names it.
bool is_stored_config(std::string_view path);

/// A run of a program that brings its own model (app/own_model.h), read by one that has not this model.
enum class ForeignModels {
  refused,  ///< UsageError that names the program
  read  ///< its name and the settings that all models have are taken, the others kept as they are written
};

struct StoredConfig {
  Config config;
  std::vector<std::string> notices;  ///< a sentence for each setting that was ignored
  /// Settings that only a foreign model has, as YAML, by their keys.
  std::map<std::string, std::string> foreign = {};
};
/// As parse_config() and load_config(), of a stored configuration; `overrides` are the user's own. Ignored
/// as well: a memory budget above what there is, threads beyond 64 and the processors.
StoredConfig parse_stored_config(std::string_view yaml, const std::string& source,
                                 std::span<const std::string> overrides = {},
                                 ForeignModels foreign = ForeignModels::refused);
StoredConfig load_stored_config(const std::string& path,
                                std::span<const std::string> overrides = {},
                                ForeignModels foreign = ForeignModels::refused);
/// A file that the user names: a stored configuration if its name is one's, else the user's own.
StoredConfig load_named_config(const std::string& path,
                               std::span<const std::string> overrides = {});

}  // namespace fullbore
