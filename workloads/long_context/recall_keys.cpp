#include "workloads/long_context/recall_keys.h"

#include "fullbore/text/text_keys.h"
#include "fullbore/text/text_model.h"
#include "workloads/long_context/example_task.h"
#include "workloads/long_context/longcontext_command.h"

namespace fullbore {
namespace {

#define FB_KEY(member) \
  "data." #member, [](Config& config) -> ConfigPlace { return &recall_keys(config).member; }

std::vector<ConfigField> fields() {
  std::vector<ConfigField> fields = {
      {FB_KEY(mqar_sizes), {}, {}, "of mqar: TOKENS:PAIRS of its batches, drawn alike; []: 64:4"},
      {FB_KEY(mqar_vocabulary),
       {0, 16777216},
       {},
       "of mqar: half of them keys, half values; 0: 256"},
      {FB_KEY(passkey_lengths),
       {1, 1048576},
       {},
       "of passkey: characters of a text, from and to; []: 64, 512"}};
  for (ConfigField& field : fields) field.models = text_model_names();
  mark(fields, &ConfigField::is_taken, {"data.mqar_sizes"});
  return fields;
}

#undef FB_KEY

void check(const ConfigCheck& check) {
  if (!is_text_model(check.config())) return;
  const RecallKeys& keys = recall_keys(check.config());
  const std::string& batching = text_keys(check.config()).data.batching;
  check.together(batching == "mqar" || keys.mqar_sizes.empty(), "data.mqar_sizes",
                 "means nothing with", "data.batching");
  check.together(batching == "mqar" || keys.mqar_vocabulary == 0, "data.mqar_vocabulary",
                 "means nothing with", "data.batching");
  check.together(batching == "passkey" || keys.passkey_lengths.empty(), "data.passkey_lengths",
                 "means nothing with", "data.batching");
}

const WorkloadRegistrar kLongContext{{.name = "long_context",
                                      .keys = {.fields = fields,
                                               .choices = {{"data.batching", {"mqar", "passkey"}}},
                                               .check = check},
                                      .add_commands = add_longcontext_command,
                                      .registers = [] {
                                        for (const char* const name : {"mqar", "passkey"})
                                          register_text_task(example_task(name));
                                      }}};

}  // namespace
}  // namespace fullbore
