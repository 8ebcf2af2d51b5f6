#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fullbore/train/config_schema.h"
#include "fullbore/train/least_memory.h"
#include "fullbore/train/retired_names.h"

namespace fullbore {

/// A configuration whose keys are all read, for checks of values that must go together. It knows where each was set.
class ConfigCheck {
 public:
  ConfigCheck(const Config& config, const std::map<std::string, std::string>& origins)
      : config_(config), origins_(origins) {}

  const Config& config() const { return config_; }
  /// "model.width 65 (configs/x.yaml:7)"
  std::string with_origin(const std::string& key) const;
  /// Where a key was set: "configs/x.yaml:7", or "default".
  std::string origin(const std::string& key) const;
  /// UsageError "config: model.width 65 (x.yaml:7) is not a multiple of model.heads 4 (default)" unless it holds.
  void together(bool holds, const std::string& a, const char* relation, const std::string& b) const;

 private:
  const Config& config_;
  const std::map<std::string, std::string>& origins_;
};

/// A configuration with one setting changed, and that setting as it is written.
struct LighterConfig {
  std::string setting;
  Config config;
};

/// What a room or a workload adds to configurations.
struct ConfigKeys {
  std::string name = {};                 ///< of who adds it
  bool is_common = false;                ///< comes before those of workloads
  std::vector<std::string> models = {};  ///< values of model.name that it brings
  bool is_default = false;               ///< is the first of them what model.name is, left out?
  /// Its keys, of sections that there are or of new ones. Values stand in a struct of Config::get().
  std::function<std::vector<ConfigField>()> fields = {};
  /// Further values of texts that others have as keys: {"data.batching", {"mine"}}.
  std::map<std::string, std::vector<std::string>> choices = {};
  /// Values of its keys that have another name today.
  std::vector<RetiredWord> retired_words = {};
  /// Is called once all keys are read, before it is checked what goes together: for keys that stand for settings of
  /// others. What it leaves must be what it makes of that again. May be empty.
  std::function<void(Config&)> settle = {};
  /// Is called once all keys are read, whatever model.name is.
  std::function<void(const ConfigCheck&)> check = {};
  /// Of its models: what their sizes ask for at least, but for what is kept ready.
  std::function<LeastMemory(const Config&)> least_memory = {};
  /// Settings of its own that take less memory, to be offered where a run does not fit: "engine.fused_head=on".
  std::function<std::vector<LighterConfig>(const Config&)> lighter = {};
  /// Do its keys settle the rows of a batch, so that train.batch_size is not to be solved?
  std::function<bool(const Config&)> settles_rows = {};
};

/// Before the first configuration is read: main() begins, or app() is called.
void register_config_keys(ConfigKeys keys);
/// All that were registered, by name.
const std::vector<ConfigKeys>& registered_config_keys();
/// default_model() where these are registered: of those that claim it the first, or the only model that there is, or "".
std::string default_model_of(const std::vector<ConfigKeys>& all);
/// Who brings config.model.name; null for a name that nobody brings.
const ConfigKeys* keys_of_model(const Config& config);

}  // namespace fullbore
