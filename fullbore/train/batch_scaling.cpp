#include "fullbore/train/batch_scaling.h"

#include <cmath>

#include "fullbore/train/config_keys.h"

namespace fullbore {
namespace {

std::vector<ConfigField> fields() {
  return {
      {"optim.batch_scaling",
       [](Config& config) -> ConfigPlace { return &config.get<BatchScalingKeys>().batch_scaling; },
       {},
       {"none", "linear", "root"},
       "how the rates grow with train.batch_size, from those of base_batch_size"},
      {"optim.base_batch_size",
       [](Config& config) -> ConfigPlace {
         return &config.get<BatchScalingKeys>().base_batch_size;
       },
       {.low = 0, .high = 1e9},
       {},
       "the batch that the rates are given for; 0: batch_scaling is none"}};
}

const bool kRegistered = [] {
  register_config_keys({.name = "batch scaling",
                        .is_common = true,
                        .fields = fields,
                        .check = [](const ConfigCheck& check) {
                          const auto& keys = check.config().get<BatchScalingKeys>();
                          check.together(keys.batch_scaling == "none" || keys.base_batch_size > 0,
                                         "optim.batch_scaling", "needs a batch, not",
                                         "optim.base_batch_size");
                        }});
  return true;
}();

}  // namespace

double learning_rate_scale(const Config& config) {
  const auto& keys = config.get<BatchScalingKeys>();
  if (keys.batch_scaling == "none" || keys.base_batch_size == 0) return 1;
  const double batches =
      static_cast<double>(config.train.batch_size) / static_cast<double>(keys.base_batch_size);
  return keys.batch_scaling == "linear" ? batches : std::sqrt(batches);
}

}  // namespace fullbore
