#include "fullbore/train/fp8_keys.h"

#include "fullbore/train/config_keys.h"

namespace fullbore {
namespace {

std::vector<ConfigField> fields() {
  std::vector<ConfigField> fields = {
      {"engine.fp8",
       [](Config& config) -> ConfigPlace { return &config.get<Fp8Keys>().fp8; },
       {},
       {},
       "of a card: training multiplies weights in 8-bit floats, but for first and last matmuls"}};
  for (ConfigField& field : fields) field.is_taken = true;
  return fields;
}

// Sums of numbers of 8 bits are beyond what f16 has, and rows are alike in f32 alone.
void check(const ConfigCheck& check) {
  const Config& config = check.config();
  if (!has_fp8(config)) return;
  check.together(config.engine.precision != "fp16", "engine.fp8",
                 "needs precision bf16 or fp32, not", "engine.precision");
  check.together(!config.engine.row_invariant, "engine.fp8", "does not go with",
                 "engine.row_invariant");
}

const bool kRegistered = [] {
  register_config_keys({.name = "fp8", .is_common = true, .fields = fields, .check = check});
  return true;
}();

}  // namespace

bool has_fp8(const Config& config) { return config.get<Fp8Keys>().fp8; }

}  // namespace fullbore
