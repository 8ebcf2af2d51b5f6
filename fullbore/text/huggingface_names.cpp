#include "fullbore/text/huggingface_names.h"

#include <fmt/format.h>

namespace fullbore {
namespace {

using nn::DecoderConfig;
using Names = std::vector<HuggingFaceName>;

int64_t hidden_of(const DecoderConfig& model) {
  return model.hidden > 0 ? model.hidden : 4 * model.width;
}

void add_gpt2_layer(Names& names, const DecoderConfig& model, const std::string& ours,
                    const std::string& theirs) {
  const auto norm = [&](const char* our, const char* their) {
    for (const char* part : {".weight", ".bias"})
      names.push_back({ours + our + part, theirs + their + part, {model.width}});
  };
  const auto gemm = [&](const char* our, const char* their, int64_t inputs, int64_t outputs) {
    names.push_back({fmt::format("{}{}.weight", ours, our),
                     fmt::format("{}{}.weight", theirs, their),
                     {inputs, outputs},
                     true});
    names.push_back(
        {fmt::format("{}{}.bias", ours, our), fmt::format("{}{}.bias", theirs, their), {outputs}});
  };
  const int64_t width = model.width, hidden = hidden_of(model);
  norm("attention_norm", "ln_1");
  gemm("attention.qkv", "attn.c_attn", width, 3 * width);
  gemm("attention.projection", "attn.c_proj", width, width);
  norm("mlp_norm", "ln_2");
  gemm("mlp.up", "mlp.c_fc", width, hidden);
  gemm("mlp.down", "mlp.c_proj", hidden, width);
}

void add_llama_layer(Names& names, const DecoderConfig& model, const std::string& ours,
                     const std::string& theirs) {
  const auto gemm = [&](const char* our, const char* their, int64_t inputs, int64_t outputs,
                        bool bias) {
    names.push_back({fmt::format("{}{}.weight", ours, our),
                     fmt::format("{}{}.weight", theirs, their),
                     {outputs, inputs}});
    if (bias)
      names.push_back({fmt::format("{}{}.bias", ours, our),
                       fmt::format("{}{}.bias", theirs, their),
                       {outputs}});
  };
  const int64_t width = model.width, hidden = hidden_of(model);
  const int64_t head = model.head_width > 0 ? model.head_width : width / model.heads;
  const int64_t queries = model.heads * head;
  const int64_t keys = (model.groups > 0 ? model.groups : model.heads) * head;
  names.push_back({ours + "attention_norm.weight", theirs + "input_layernorm.weight", {width}});
  gemm("attention.query", "self_attn.q_proj", width, queries, model.attention_bias);
  gemm("attention.key", "self_attn.k_proj", width, keys, model.attention_bias);
  gemm("attention.value", "self_attn.v_proj", width, keys, model.attention_bias);
  gemm("attention.projection", "self_attn.o_proj", queries, width, model.projection_bias);
  names.push_back({ours + "mlp_norm.weight", theirs + "post_attention_layernorm.weight", {width}});
  gemm("mlp.gate", "mlp.gate_proj", width, hidden, model.mlp_bias);
  gemm("mlp.up", "mlp.up_proj", width, hidden, model.mlp_bias);
  gemm("mlp.down", "mlp.down_proj", hidden, width, model.mlp_bias);
}

}  // namespace

Names huggingface_names(const DecoderConfig& model, const std::string& prefix) {
  const bool gpt2 = model.style == DecoderConfig::Style::gpt2;
  Names names = {{"token_embedding.weight",
                  prefix + huggingface_table(model),
                  {model.vocabulary, model.width}}};
  if (gpt2)
    names.push_back(
        {"position_embedding.weight", prefix + "wpe.weight", {model.context, model.width}});
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    const std::string ours = fmt::format("layers.{}.", layer);
    if (gpt2)
      add_gpt2_layer(names, model, ours, fmt::format("{}h.{}.", prefix, layer));
    else
      add_llama_layer(names, model, ours, fmt::format("{}layers.{}.", prefix, layer));
  }
  names.push_back(
      {"final_norm.weight", prefix + (gpt2 ? "ln_f.weight" : "norm.weight"), {model.width}});
  if (gpt2) names.push_back({"final_norm.bias", prefix + "ln_f.bias", {model.width}});
  if (!model.tie_head)
    names.push_back(
        {"head.weight", std::string(kHuggingFaceHead), {model.vocabulary, model.width}});
  return names;
}

std::string huggingface_prefix(const DecoderConfig& model) {
  return model.style == DecoderConfig::Style::gpt2 ? "transformer." : "model.";
}

std::string huggingface_table(const DecoderConfig& model) {
  return model.style == DecoderConfig::Style::gpt2 ? "wte.weight" : "embed_tokens.weight";
}

bool is_huggingface_buffer(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with(".rotary_emb.inv_freq");
}

}  // namespace fullbore
