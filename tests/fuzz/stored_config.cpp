// Any bytes as the configuration of a stranger's run: refused, or settings of which none says where files go, that print
// and read back to themselves, and of which every text in them is refused or understood as a job would.
#include "fullbore/train/stored_config.h"

#include <string>
#include <string_view>

#include "fullbore/base/error.h"
#include "fullbore/text/context_curriculum.h"
#include "fullbore/text/text_keys.h"
#include "fullbore/text/text_model.h"
#include "fullbore/train/config_schema.h"
#include "fullbore/train/run_config.h"
#include "tests/fuzz/memory_file.h"

using namespace fullbore;
using fullbore::testing::require;

namespace {

void check_job(const Config& config) {
  if (!is_text_model(config)) return;
  const std::vector<ContextStage> stages = context_stages(config);
  require(!stages.empty() && stages.back().length <= text_keys(config).model.context);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view yaml(reinterpret_cast<const char*>(data), size);
  try {
    const Config config = parse_stored_config(yaml, "run/config.resolved.yaml").config;
    const Config untouched;
    for (const ConfigField& field : config_fields())
      if (stored_key(field) == StoredKey::ignored && field.key != "run.dir")
        require(value_yaml(field, config) == value_yaml(field, untouched));
    require(config.run.name.find('/') == std::string::npos);
    require(differing_settings(config, config).empty());
    require(parse_stored_config(config_yaml(config), "again.yaml").config == config);
    check_job(config);
  } catch (const UsageError& error) {
    require(error.what()[0] != '\0');
  }
  try {
    check_run_config(yaml, "run/config.resolved.yaml");
  } catch (const DataError& error) {
    require(std::string_view(error.what()).starts_with("run/config.resolved.yaml: "));
  }
  return 0;
}
