#include "workloads/language/gpt_keys.h"

#include "workloads/language/gpt_job.h"

namespace fullbore {
namespace {

#define FB_KEY(member) \
  "model." #member, [](Config& config) -> ConfigPlace { return &gpt_keys(config).member; }

std::vector<ConfigField> fields() {
  std::vector<ConfigField> fields = {
      {FB_KEY(bias), {}, {}, "biases in linear layers and layer norms"},
      {FB_KEY(tie_head), {}, {}, "the output head is the token table"},
      {FB_KEY(activation), {}, {"gelu", "gelu_tanh"}, "of the blocks; GPT-2's is gelu_tanh"}};
  for (ConfigField& field : fields) field.models = {"gpt"};
  return fields;
}

#undef FB_KEY

Workload language() {
  Workload workload = text_workload("language", gpt_text_model());
  workload.keys.is_default = true;
  workload.keys.fields = fields;
  return workload;
}

const WorkloadRegistrar kLanguage{language()};

}  // namespace
}  // namespace fullbore
