#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/train/config.h"

namespace fullbore {

/// Is `path` named as runs name their own settings (RunDirectory::kConfig, kGivenConfig)? These carry a checksum.
bool is_run_config(const std::string& path);

/// DataError where a text of such a name is not as it was written. Texts of older versions have no checksum and pass.
void check_run_config(std::string_view yaml, const std::string& path);

/// The settings of the run's last checkpoint, whose files are checksummed; none where it has none that can be read.
std::optional<Config> checkpoint_config(const std::string& run);

/// "train.steps is 2000, not 24", for each setting that differs; where the run lies is none.
std::vector<std::string> differing_settings(const Config& found, const Config& expected);

/// The settings that a run goes on with: its own, and what overrides them. Where they have lost their checksum, they
/// must be those of the last checkpoint. DataError: they are not, and which differ, or there is no checkpoint to tell.
/// `notes` receives what was found, for people. With `foreign`, a run of another program's model is read too, whose own
/// settings go there (StoredConfig::foreign); without, it is a UsageError.
Config load_run_config(const std::string& run, std::span<const std::string> overrides,
                       std::vector<std::string>& notes,
                       std::map<std::string, std::string>* foreign = nullptr);

}  // namespace fullbore
