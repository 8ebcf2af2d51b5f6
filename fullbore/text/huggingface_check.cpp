#include <fmt/format.h>

#include "fullbore/base/error.h"
#include "fullbore/text/huggingface_model.h"

namespace fullbore {
namespace {

using nn::DecoderConfig;

/// A setting here and there: key, name in config.json, and how it is written.
struct Setting {
  const char* ours;
  const char* theirs;
  std::string (*text)(const DecoderConfig&);
};

std::string text_of(bool value) { return value ? "true" : "false"; }

std::string scaling_text(const DecoderConfig& model) {
  using Kind = nn::RotaryScaling::Kind;
  const nn::RotaryScaling& scaling = model.scaling;
  if (scaling.kind == Kind::none) return "none";
  if (scaling.kind == Kind::linear) return fmt::format("linear {}", scaling.factor);
  return fmt::format("llama3 {} {} {} {}", scaling.factor, scaling.low, scaling.high,
                     scaling.original);
}

#define FB_NUMBER(expression) \
  [](const DecoderConfig& model) { return fmt::format("{}", expression); }

const Setting kGpt2Settings[] = {
    {"model.layers", "n_layer", FB_NUMBER(model.layers)},
    {"model.heads", "n_head", FB_NUMBER(model.heads)},
    {"model.width", "n_embd", FB_NUMBER(model.width)},
    {"the MLP's width", "n_inner", FB_NUMBER(model.hidden > 0 ? model.hidden : 4 * model.width)},
    {"the vocabulary", "vocab_size", FB_NUMBER(model.vocabulary)},
    {"the norms' epsilon", "layer_norm_epsilon", FB_NUMBER(model.epsilon)},
    {"model.activation", "activation_function",
     FB_NUMBER(model.tanh_gelu ? "gelu_tanh" : "gelu")}};

const Setting kLlamaSettings[] = {
    {"model.layers", "num_hidden_layers", FB_NUMBER(model.layers)},
    {"model.heads", "num_attention_heads", FB_NUMBER(model.heads)},
    {"model.key_value_heads", "num_key_value_heads",
     FB_NUMBER(model.groups > 0 ? model.groups : model.heads)},
    {"model.width", "hidden_size", FB_NUMBER(model.width)},
    {"model.head_width", "head_dim",
     FB_NUMBER(model.head_width > 0 ? model.head_width : model.width / model.heads)},
    {"model.mlp_width", "intermediate_size",
     FB_NUMBER(model.hidden > 0 ? model.hidden : 4 * model.width)},
    {"the vocabulary", "vocab_size", FB_NUMBER(model.vocabulary)},
    {"model.norm_epsilon", "rms_norm_eps", FB_NUMBER(model.epsilon)},
    {"model.rotary_theta", "rope_theta", FB_NUMBER(model.theta)},
    {"model.rotary_scaling", "rope_scaling", scaling_text},
    {"model.attention_bias", "attention_bias",
     FB_NUMBER(model.projection_bias  ? "all"
               : model.attention_bias ? "qkv"
                                      : "none")},
    {"model.mlp_bias", "mlp_bias", FB_NUMBER(text_of(model.mlp_bias))},
    {"model.window", "sliding_window", FB_NUMBER(model.window)},
    {"model.window_layer", "max_window_layers",
     FB_NUMBER(model.window > 0 ? model.window_layer : 0)}};

#undef FB_NUMBER

}  // namespace

void HuggingFaceModel::check(const DecoderConfig& model) const {
  const DecoderConfig& there = config_.decoder;
  const auto refuse = [&](const char* ours, const std::string& here, const char* theirs,
                          const std::string& value) {
    throw DataError(
        fmt::format("{} is {}, {}/config.json has {} {}", ours, here, folder_, theirs, value));
  };
  const bool gpt2 = model.style == DecoderConfig::Style::gpt2;
  if (model.style != there.style)
    refuse("model.name", gpt2 ? "gpt" : "llama", "model_type", config_.family);
  const auto compare = [&](const auto& settings) {
    for (const Setting& setting : settings)
      if (const std::string here = setting.text(model), value = setting.text(there); here != value)
        refuse(setting.ours, here, setting.theirs, value);
  };
  if (gpt2)
    compare(kGpt2Settings);
  else
    compare(kLlamaSettings);
  if (model.context > there.context)
    refuse("model.context", fmt::format("{}", model.context),
           gpt2 ? "n_positions" : "max_position_embeddings", fmt::format("{}", there.context));
}

}  // namespace fullbore
