#include "workloads/language/gpt_keys.h"

#include "fullbore/text/text_keys.h"
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
      {FB_KEY(activation), {}, {"gelu", "gelu_tanh"}, "of the blocks; GPT-2's is gelu_tanh"},
      {FB_KEY(norm), {}, {"layer", "rms"}, "of the blocks: layer norms or RMS norms"},
      {FB_KEY(positions),
       {},
       {"learned", "rotary"},
       "a table of positions that is added, or queries and keys turned by theirs"}};
  for (ConfigField& field : fields) field.models = {"gpt"};
  fields[1].models.emplace_back("llama");
  for (ConfigField& field : llama_fields()) fields.push_back(std::move(field));
  return fields;
}

#undef FB_KEY

void check_keys(const ConfigCheck& check) {
  check_llama_keys(check);
  const Config& config = check.config();
  if (config.model.name != "gpt" || gpt_keys(config).positions != "rotary") return;
  const TextKeys::Model& model = text_keys(config).model;
  check.together((model.width / model.heads) % 2 == 0, "model.positions",
                 "needs heads of an even width, model.width by", "model.heads");
}

Workload language() {
  Workload workload = text_workload("language", {gpt_text_model(), llama_text_model()});
  workload.keys.is_default = true;
  workload.keys.check = check_keys;
  workload.keys.fields = fields;
  return workload;
}

const WorkloadRegistrar kLanguage{language()};

}  // namespace
}  // namespace fullbore
