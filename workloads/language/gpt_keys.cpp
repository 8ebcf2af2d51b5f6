#include "workloads/language/gpt_keys.h"

#include "workloads/language/gpt_job.h"
#include "workloads/language/llama_job.h"
#include "workloads/language/llama_keys.h"

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
  fields[1].models.emplace_back("llama");
  for (ConfigField& field : llama_fields()) fields.push_back(std::move(field));
  return fields;
}

#undef FB_KEY

Workload language() {
  Workload workload = text_workload("language", gpt_text_model());
  workload.keys.is_default = true;
  workload.keys.models.emplace_back("llama");
  workload.registers = [] {
    register_text_model(gpt_text_model());
    register_text_model(llama_text_model());
  };
  workload.keys.check = check_llama_keys;
  workload.keys.fields = fields;
  return workload;
}

const WorkloadRegistrar kLanguage{language()};

}  // namespace
}  // namespace fullbore
