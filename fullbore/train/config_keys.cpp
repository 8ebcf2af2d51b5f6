#include "fullbore/train/config_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"

namespace fullbore {
namespace {

std::vector<ConfigKeys>& registry() {
  static std::vector<ConfigKeys> all;
  return all;
}

}  // namespace

std::string ConfigCheck::origin(const std::string& key) const {
  const auto found = origins_.find(key);
  return found == origins_.end() ? "default" : found->second;
}

std::string ConfigCheck::with_origin(const std::string& key) const {
  return fmt::format("{} {} ({})", key, value_yaml(*find_config_field(key), config_), origin(key));
}

void ConfigCheck::together(bool holds, const std::string& a, const char* relation,
                           const std::string& b) const {
  if (!holds)
    throw UsageError(fmt::format("config: {} {} {}", with_origin(a), relation, with_origin(b)));
}

void register_config_keys(ConfigKeys keys) {
  std::vector<ConfigKeys>& all = registry();
  for (const ConfigKeys& other : all) {
    FB_CHECK(other.name != keys.name, "'{}' has registered its keys already", keys.name);
    for (const std::string& model : keys.models)
      FB_CHECK(std::ranges::find(other.models, model) == other.models.end(),
               "'{}' and '{}' both bring model.name={}", other.name, keys.name, model);
  }
  // Sorted, for libraries are loaded in no order that anybody could rely on.
  const auto order = [](const ConfigKeys& each) { return std::tuple(!each.is_common, each.name); };
  const auto place = std::ranges::upper_bound(all, order(keys), {}, order);
  all.insert(place, std::move(keys));
}

const std::vector<ConfigKeys>& registered_config_keys() { return registry(); }

const ConfigKeys* keys_of_model(const Config& config) {
  for (const ConfigKeys& keys : registry())
    if (std::ranges::find(keys.models, config.model.name) != keys.models.end()) return &keys;
  return nullptr;
}

std::string default_model() { return default_model_of(registry()); }

std::string default_model_of(const std::vector<ConfigKeys>& all) {
  std::vector<std::string> models;
  for (const ConfigKeys& keys : all) {
    if (keys.is_default && !keys.models.empty()) return keys.models.front();
    models.insert(models.end(), keys.models.begin(), keys.models.end());
  }
  return models.size() == 1 ? models.front() : "";
}

}  // namespace fullbore
