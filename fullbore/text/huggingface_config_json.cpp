#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fullbore/base/error.h"
#include "fullbore/text/huggingface_config.h"

namespace fullbore {
namespace {

using nlohmann::ordered_json;
using nn::DecoderConfig;
using nn::RotaryScaling;

ordered_json gpt2_json(const DecoderConfig& model) {
  const bool usual = model.hidden == 0 || model.hidden == 4 * model.width;
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"vocab_size", model.vocabulary},
          {"n_positions", model.context},
          {"n_ctx", model.context},
          {"n_embd", model.width},
          {"n_layer", model.layers},
          {"n_head", model.heads},
          {"n_inner", usual ? ordered_json() : ordered_json(model.hidden)},
          {"activation_function", model.tanh_gelu ? "gelu_new" : "gelu"},
          {"embd_pdrop", model.dropout},
          {"attn_pdrop", model.dropout},
          {"resid_pdrop", model.dropout},
          {"layer_norm_epsilon", model.epsilon},
          {"initializer_range", 0.02},
          {"scale_attn_weights", true},
          {"tie_word_embeddings", model.tie_head},
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

ordered_json llama_json(const DecoderConfig& model, const std::string& family) {
  const int64_t groups = model.groups > 0 ? model.groups : model.heads;
  ordered_json config = {
      {"architectures", {family == "qwen2" ? "Qwen2ForCausalLM" : "LlamaForCausalLM"}},
      {"model_type", family},
      {"vocab_size", model.vocabulary},
      {"max_position_embeddings", model.context},
      {"hidden_size", model.width},
      {"intermediate_size", model.hidden > 0 ? model.hidden : 4 * model.width},
      {"num_hidden_layers", model.layers},
      {"num_attention_heads", model.heads},
      {"num_key_value_heads", groups},
      {"head_dim", model.head_width > 0 ? model.head_width : model.width / model.heads},
      {"hidden_act", "silu"},
      {"rms_norm_eps", model.epsilon},
      {"rope_theta", model.theta},
      {"rope_scaling", scaling_json(model.scaling)},
      {"attention_dropout", model.dropout},
      {"initializer_range", 0.02},
      {"tie_word_embeddings", model.tie_head},
      {"torch_dtype", "float32"}};
  if (family == "llama") {
    config["attention_bias"] = model.attention_bias;
    config["mlp_bias"] = model.mlp_bias;
  } else {
    config["use_sliding_window"] = model.window > 0;
    config["sliding_window"] = model.window > 0 ? ordered_json(model.window) : ordered_json();
    config["max_window_layers"] = model.window > 0 ? model.window_layer : model.layers;
  }
  return config;
}

}  // namespace

std::string huggingface_family(const DecoderConfig& model) {
  if (model.style == DecoderConfig::Style::gpt2) return "gpt2";
  const auto refuse = [](const std::string& what) {
    throw UsageError(fmt::format(
        "transformers has no class with {}: its Llama has biases in all of attention or "
        "none, its Qwen2 those of queries, keys and values, and windows",
        what));
  };
  const bool qwen2 = model.attention_bias && !model.projection_bias;
  if (!model.attention_bias && model.projection_bias) refuse("a bias of the projection alone");
  if (qwen2 && model.mlp_bias) refuse("biases of the MLP but none of the projection");
  if (!qwen2 && model.window > 0) refuse("a window and other biases");
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
