#include "fullbore/train/storage_keys.h"

#include "fullbore/optim/stored_moment.h"
#include "fullbore/train/config_keys.h"

namespace fullbore {
namespace {

#define FB_KEY(name) \
  "engine." #name, [](Config& config) -> ConfigPlace { return &config.get<StorageKeys>().name; }

std::vector<ConfigField> fields() {
  std::vector<ConfigField> fields = {
      {FB_KEY(moments),
       {},
       moment_storages(),
       "how the optimiser's moments are stored; int8: a byte each, in blocks with a scale"},
      {FB_KEY(master_weights),
       {},
       {},
       "matrices and tables are stored in fp32; false: in bf16 alone, of precision bf16"},
      {FB_KEY(rounding),
       {},
       {"stochastic", "nearest"},
       "of weights and moments that are stored in bf16; stochastic: right on average"},
      {FB_KEY(offload),
       {},
       {"none", "optimizer"},
       "optimizer: on a card, moments are in the host's memory and copied beside the step"}};
  for (ConfigField& field : fields) field.is_taken = true;
  return fields;
}

#undef FB_KEY

void check(const ConfigCheck& check) {
  const Config& config = check.config();
  check.together(has_master_weights(config) || config.engine.precision == "bf16",
                 "engine.master_weights", "needs precision bf16, and", "engine.precision");
}

const bool kRegistered = [] {
  register_config_keys({.name = "storage", .is_common = true, .fields = fields, .check = check});
  return true;
}();

}  // namespace

StorageOptions storage_options(const Config& config) {
  const auto& keys = config.get<StorageKeys>();
  return {.moments = keys.moments,
          .master_weights = keys.master_weights,
          .stochastic = keys.rounding == "stochastic"};
}

bool has_master_weights(const Config& config) { return config.get<StorageKeys>().master_weights; }

bool has_moments_in_host(const Config& config) {
  return config.get<StorageKeys>().offload == "optimizer";
}

}  // namespace fullbore
