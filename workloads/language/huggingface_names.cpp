#include "workloads/language/huggingface_names.h"

#include <fmt/format.h>

namespace fullbore {

std::vector<HuggingFaceName> huggingface_gpt2_names(const LanguageModelConfig& model,
                                                    const std::string& prefix) {
  const int64_t width = model.width;
  std::vector<HuggingFaceName> names = {
      {"token_embedding.weight", prefix + "wte.weight", {model.vocabulary, width}},
      {"position_embedding.weight", prefix + "wpe.weight", {model.context, width}}};
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    const std::string ours = fmt::format("layers.{}.", layer);
    const std::string theirs = fmt::format("{}h.{}.", prefix, layer);
    const auto norm = [&](const char* our, const char* their) {
      for (const char* part : {".weight", ".bias"})
        names.push_back({ours + our + part, theirs + their + part, {width}});
    };
    const auto gemm = [&](const char* our, const char* their, int64_t inputs, int64_t outputs) {
      names.push_back({fmt::format("{}{}.weight", ours, our),
                       fmt::format("{}{}.weight", theirs, their),
                       {inputs, outputs},
                       true});
      names.push_back({fmt::format("{}{}.bias", ours, our),
                       fmt::format("{}{}.bias", theirs, their),
                       {outputs}});
    };
    norm("attention_norm", "ln_1");
    gemm("attention.qkv", "attn.c_attn", width, 3 * width);
    gemm("attention.projection", "attn.c_proj", width, width);
    norm("mlp_norm", "ln_2");
    gemm("mlp.up", "mlp.c_fc", width, 4 * width);
    gemm("mlp.down", "mlp.c_proj", 4 * width, width);
  }
  for (const std::string part : {"weight", "bias"})
    names.push_back({"final_norm." + part, prefix + "ln_f." + part, {width}});
  if (!model.tie_head)
    names.push_back({"head.weight", std::string(kHuggingFaceHead), {model.vocabulary, width}});
  return names;
}

bool is_huggingface_buffer(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

}  // namespace fullbore
