#include "tests/support/configs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/train/config_keys.h"
#include "fullbore/train/config_schema.h"
#include "tests/support/paths.h"

namespace fullbore::testing {

std::string config_refusal(std::string_view yaml, const std::vector<std::string>& overrides) {
  try {
    parse_config(yaml, "configs/x.yaml", overrides);
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

namespace {

/// Keys that another workload adds to this one's models: a file of this one cannot count on them.
std::set<std::string> keys_of_others(const Config& config) {
  std::set<std::string> keys;
  for (const ConfigKeys& each : registered_config_keys())
    if (!each.is_common && &each != keys_of_model(config) && each.fields)
      for (const ConfigField& field : each.fields()) keys.insert(field.key);
  return keys;
}

}  // namespace

void expect_shows_its_keys(const std::string& name) {
  const std::string path = fmt::format("{}/configs/{}.yaml", source_folder(), name);
  const std::string yaml = read_file(path).take_or_throw();
  const Config config = load_config(path);
  const std::set<std::string> others = keys_of_others(config);
  for (const ConfigField& field : config_fields())
    if (field.is_for(config) && !others.contains(field.key)) {
      EXPECT_THAT(yaml, ::testing::HasSubstr(fmt::format("\n  {}:", field.name())))
          << path << field.key;
    }
}

}  // namespace fullbore::testing
