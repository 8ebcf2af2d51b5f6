#include "workloads/language/huggingface_check.h"

#include <fmt/format.h>

#include "fullbore/base/error.h"

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

std::string scaling_text(const DecoderConfig& decoder) {
  using Kind = nn::RotaryScaling::Kind;
  const nn::RotaryScaling& scaling = decoder.scaling;
  if (scaling.kind == Kind::none) return "none";
  if (scaling.kind == Kind::linear) return fmt::format("linear {}", scaling.factor);
  return fmt::format("llama3 {} {} {} {}", scaling.factor, scaling.low, scaling.high,
                     scaling.original);
}

#define FB_NUMBER(expression) \
  [](const DecoderConfig& decoder) { return fmt::format("{}", expression); }

const Setting kGpt2Settings[] = {
    {"model.layers", "n_layer", FB_NUMBER(decoder.layers)},
    {"model.heads", "n_head", FB_NUMBER(decoder.heads)},
    {"model.width", "n_embd", FB_NUMBER(decoder.width)},
    {"the MLP's width", "n_inner",
     FB_NUMBER(decoder.hidden > 0 ? decoder.hidden : 4 * decoder.width)},
    {"the vocabulary", "vocab_size", FB_NUMBER(decoder.vocabulary)},
    {"the norms' epsilon", "layer_norm_epsilon", FB_NUMBER(decoder.epsilon)},
    {"model.activation", "activation_function",
     FB_NUMBER(decoder.tanh_gelu ? "gelu_tanh" : "gelu")}};

const Setting kLlamaSettings[] = {
    {"model.layers", "num_hidden_layers", FB_NUMBER(decoder.layers)},
    {"model.heads", "num_attention_heads", FB_NUMBER(decoder.heads)},
    {"model.key_value_heads", "num_key_value_heads",
     FB_NUMBER(decoder.groups > 0 ? decoder.groups : decoder.heads)},
    {"model.width", "hidden_size", FB_NUMBER(decoder.width)},
    {"model.head_width", "head_dim",
     FB_NUMBER(decoder.head_width > 0 ? decoder.head_width : decoder.width / decoder.heads)},
    {"model.mlp_width", "intermediate_size",
     FB_NUMBER(decoder.hidden > 0 ? decoder.hidden : 4 * decoder.width)},
    {"the vocabulary", "vocab_size", FB_NUMBER(decoder.vocabulary)},
    {"model.norm_epsilon", "rms_norm_eps", FB_NUMBER(decoder.epsilon)},
    {"model.rotary_theta", "rope_theta", FB_NUMBER(decoder.theta)},
    {"model.rotary_scaling", "rope_scaling", scaling_text},
    {"model.attention_bias", "attention_bias",
     FB_NUMBER(decoder.projection_bias  ? "all"
               : decoder.attention_bias ? "qkv"
                                        : "none")},
    {"model.mlp_bias", "mlp_bias", FB_NUMBER(text_of(decoder.mlp_bias))},
    {"model.window", "sliding_window", FB_NUMBER(decoder.window)},
    {"model.window_layer", "max_window_layers",
     FB_NUMBER(decoder.window > 0 ? decoder.window_layer : 0)}};

#undef FB_NUMBER

}  // namespace

void check_huggingface(const HuggingFaceConfig& source, const std::string& path,
                       const DecoderConfig& decoder) {
  const DecoderConfig& there = source.decoder;
  const auto refuse = [&](const char* ours, const std::string& here, const char* theirs,
                          const std::string& value) {
    throw DataError(fmt::format("{} is {}, {} has {} {}", ours, here, path, theirs, value));
  };
  const bool gpt2 = decoder.style == DecoderConfig::Style::gpt2;
  if (decoder.style != there.style)
    refuse("model.name", gpt2 ? "gpt" : "llama", "model_type", source.family);
  const auto compare = [&](const auto& settings) {
    for (const Setting& setting : settings)
      if (const std::string here = setting.text(decoder), value = setting.text(there);
          here != value)
        refuse(setting.ours, here, setting.theirs, value);
  };
  if (gpt2)
    compare(kGpt2Settings);
  else
    compare(kLlamaSettings);
  if (decoder.context > there.context)
    refuse("model.context", fmt::format("{}", decoder.context),
           gpt2 ? "n_positions" : "max_position_embeddings", fmt::format("{}", there.context));
}

void check_huggingface(const HuggingFaceModel& source, const DecoderConfig& decoder) {
  check_huggingface(source.config(), source.folder() + "/config.json", decoder);
}

}  // namespace fullbore
