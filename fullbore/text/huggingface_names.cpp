#include "fullbore/text/huggingface_names.h"

#include <fmt/format.h>

namespace fullbore {
namespace {

using nn::DecoderConfig;
using Names = std::vector<HuggingFaceName>;

int64_t hidden_of(const DecoderConfig& decoder) {
  return decoder.hidden > 0 ? decoder.hidden : 4 * decoder.width;
}

void add_gpt2_layer(Names& names, const DecoderConfig& decoder, const std::string& ours,
                    const std::string& theirs) {
  const auto norm = [&](const char* our, const char* their) {
    for (const char* part : {".weight", ".bias"})
      names.push_back({ours + our + part, theirs + their + part, {decoder.width}});
  };
  const auto gemm = [&](const char* our, const char* their, int64_t inputs, int64_t outputs) {
    names.push_back({fmt::format("{}{}.weight", ours, our),
                     fmt::format("{}{}.weight", theirs, their),
                     {inputs, outputs},
                     true});
    names.push_back(
        {fmt::format("{}{}.bias", ours, our), fmt::format("{}{}.bias", theirs, their), {outputs}});
  };
  const int64_t width = decoder.width, hidden = hidden_of(decoder);
  norm("attention_norm", "ln_1");
  gemm("attention.qkv", "attn.c_attn", width, 3 * width);
  gemm("attention.projection", "attn.c_proj", width, width);
  norm("mlp_norm", "ln_2");
  gemm("mlp.up", "mlp.c_fc", width, hidden);
  gemm("mlp.down", "mlp.c_proj", hidden, width);
}

void add_llama_layer(Names& names, const DecoderConfig& decoder, const std::string& ours,
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
  const int64_t width = decoder.width, hidden = hidden_of(decoder);
  const int64_t head = decoder.head_width > 0 ? decoder.head_width : width / decoder.heads;
  const int64_t queries = decoder.heads * head;
  const int64_t keys = (decoder.groups > 0 ? decoder.groups : decoder.heads) * head;
  names.push_back({ours + "attention_norm.weight", theirs + "input_layernorm.weight", {width}});
  gemm("attention.query", "self_attn.q_proj", width, queries, decoder.attention_bias);
  gemm("attention.key", "self_attn.k_proj", width, keys, decoder.attention_bias);
  gemm("attention.value", "self_attn.v_proj", width, keys, decoder.attention_bias);
  gemm("attention.projection", "self_attn.o_proj", queries, width, decoder.projection_bias);
  names.push_back({ours + "mlp_norm.weight", theirs + "post_attention_layernorm.weight", {width}});
  gemm("mlp.gate", "mlp.gate_proj", width, hidden, decoder.mlp_bias);
  gemm("mlp.up", "mlp.up_proj", width, hidden, decoder.mlp_bias);
  gemm("mlp.down", "mlp.down_proj", hidden, width, decoder.mlp_bias);
}

}  // namespace

Names huggingface_names(const DecoderConfig& decoder, const std::string& prefix) {
  const bool gpt2 = decoder.style == DecoderConfig::Style::gpt2;
  Names names = {{"token_embedding.weight",
                  prefix + huggingface_table(decoder),
                  {decoder.vocabulary, decoder.width}}};
  if (gpt2)
    names.push_back(
        {"position_embedding.weight", prefix + "wpe.weight", {decoder.context, decoder.width}});
  for (int64_t layer = 0; layer < decoder.layers; ++layer) {
    const std::string ours = fmt::format("layers.{}.", layer);
    if (gpt2)
      add_gpt2_layer(names, decoder, ours, fmt::format("{}h.{}.", prefix, layer));
    else
      add_llama_layer(names, decoder, ours, fmt::format("{}layers.{}.", prefix, layer));
  }
  names.push_back(
      {"final_norm.weight", prefix + (gpt2 ? "ln_f.weight" : "norm.weight"), {decoder.width}});
  if (gpt2) names.push_back({"final_norm.bias", prefix + "ln_f.bias", {decoder.width}});
  if (!decoder.tie_head)
    names.push_back(
        {"head.weight", std::string(kHuggingFaceHead), {decoder.vocabulary, decoder.width}});
  return names;
}

std::string huggingface_prefix(const DecoderConfig& decoder) {
  return decoder.style == DecoderConfig::Style::gpt2 ? "transformer." : "model.";
}

std::string huggingface_table(const DecoderConfig& decoder) {
  return decoder.style == DecoderConfig::Style::gpt2 ? "wte.weight" : "embed_tokens.weight";
}

bool is_huggingface_buffer(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with(".rotary_emb.inv_freq");
}

}  // namespace fullbore
