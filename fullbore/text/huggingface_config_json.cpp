#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fullbore/base/error.h"
#include "fullbore/text/huggingface_config.h"

namespace fullbore {
namespace {

using nlohmann::ordered_json;
using nn::DecoderConfig;
using nn::RotaryScaling;

ordered_json gpt2_json(const DecoderConfig& decoder) {
  const bool usual = decoder.hidden == 0 || decoder.hidden == 4 * decoder.width;
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"vocab_size", decoder.vocabulary},
          {"n_positions", decoder.context},
          {"n_ctx", decoder.context},
          {"n_embd", decoder.width},
          {"n_layer", decoder.layers},
          {"n_head", decoder.heads},
          {"n_inner", usual ? ordered_json() : ordered_json(decoder.hidden)},
          {"activation_function", decoder.tanh_gelu ? "gelu_new" : "gelu"},
          {"embd_pdrop", decoder.dropout},
          {"attn_pdrop", decoder.dropout},
          {"resid_pdrop", decoder.dropout},
          {"layer_norm_epsilon", decoder.epsilon},
          {"initializer_range", 0.02},
          {"scale_attn_weights", true},
          {"tie_word_embeddings", decoder.tie_head},
          {"torch_dtype", "float32"}};
}

ordered_json scaling_json(const RotaryScaling& scaling) {
  switch (scaling.kind) {
    case RotaryScaling::Kind::none: return {};
    case RotaryScaling::Kind::linear: return {{"rope_type", "linear"}, {"factor", scaling.factor}};
    case RotaryScaling::Kind::llama3: break;
  }
  return {{"rope_type", "llama3"},
          {"factor", scaling.factor},
          {"low_freq_factor", scaling.low},
          {"high_freq_factor", scaling.high},
          {"original_max_position_embeddings", scaling.original}};
}

ordered_json llama_json(const DecoderConfig& decoder, const std::string& family) {
  const int64_t groups = decoder.groups > 0 ? decoder.groups : decoder.heads;
  ordered_json config = {
      {"architectures", {family == "qwen2" ? "Qwen2ForCausalLM" : "LlamaForCausalLM"}},
      {"model_type", family},
      {"vocab_size", decoder.vocabulary},
      {"max_position_embeddings", decoder.context},
      {"hidden_size", decoder.width},
      {"intermediate_size", decoder.hidden > 0 ? decoder.hidden : 4 * decoder.width},
      {"num_hidden_layers", decoder.layers},
      {"num_attention_heads", decoder.heads},
      {"num_key_value_heads", groups},
      {"head_dim", decoder.head_width > 0 ? decoder.head_width : decoder.width / decoder.heads},
      {"hidden_act", "silu"},
      {"rms_norm_eps", decoder.epsilon},
      {"rope_theta", decoder.theta},
      {"rope_scaling", scaling_json(decoder.scaling)},
      {"attention_dropout", decoder.dropout},
      {"initializer_range", 0.02},
      {"tie_word_embeddings", decoder.tie_head},
      {"torch_dtype", "float32"}};
  if (family == "llama") {
    config["attention_bias"] = decoder.attention_bias;
    config["mlp_bias"] = decoder.mlp_bias;
  } else {
    config["use_sliding_window"] = decoder.window > 0;
    config["sliding_window"] = decoder.window > 0 ? ordered_json(decoder.window) : ordered_json();
    config["max_window_layers"] = decoder.window > 0 ? decoder.window_layer : decoder.layers;
  }
  return config;
}

}  // namespace

std::string huggingface_family(const DecoderConfig& decoder) {
  if (decoder.style == DecoderConfig::Style::gpt2) return "gpt2";
  const auto refuse = [](const std::string& what) {
    throw UsageError(fmt::format(
        "transformers has no class with {}: its Llama has biases in all of attention or "
        "none, its Qwen2 those of queries, keys and values, and windows",
        what));
  };
  const bool qwen2 = decoder.attention_bias && !decoder.projection_bias;
  if (!decoder.attention_bias && decoder.projection_bias) refuse("a bias of the projection alone");
  if (qwen2 && decoder.mlp_bias) refuse("biases of the MLP but none of the projection");
  if (!qwen2 && decoder.window > 0) refuse("a window and other biases");
  return qwen2 ? "qwen2" : "llama";
}

std::string huggingface_config_json(const HuggingFaceConfig& config) {
  const std::string family = huggingface_family(config.decoder);
  ordered_json json =
      family == "gpt2" ? gpt2_json(config.decoder) : llama_json(config.decoder, family);
  // The defaults of the format would lie outside of a small vocabulary.
  json["bos_token_id"] = nullptr;
  json["eos_token_id"] = nullptr;
  if (config.end_tokens.size() == 1) json["eos_token_id"] = config.end_tokens.front();
  if (config.end_tokens.size() > 1) json["eos_token_id"] = config.end_tokens;
  // GPT-2's texts begin with the token that ends them.
  if (family == "gpt2") json["bos_token_id"] = json["eos_token_id"];
  return json.dump(2) + "\n";
}

}  // namespace fullbore
