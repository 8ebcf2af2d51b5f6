#include "fullbore/train/config_schema.h"

namespace fullbore {
namespace {

#define FB_KEY(section, member) \
#section "." #member, [](Config & config) -> ConfigPlace { return &config.section.member; }

}  // namespace

std::vector<ConfigField> recall_config_fields() {
  std::vector<ConfigField> fields = {
      {FB_KEY(data, mqar_sizes),
       {},
       {},
       "of mqar: TOKENS:PAIRS of its batches, drawn alike; []: 64:4"},
      {FB_KEY(data, mqar_vocabulary),
       {0, 16777216},
       {},
       "of mqar: half of them keys, half values; 0: 256"},
      {FB_KEY(data, passkey_lengths),
       {1, 1048576},
       {},
       "of passkey: characters of a text, from and to; []: 64, 512"}};
  for (ConfigField& field : fields) field.models = {"gpt", "hybrid"};
  return fields;
}

#undef FB_KEY

}  // namespace fullbore
