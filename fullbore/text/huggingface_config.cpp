#include "fullbore/text/huggingface_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/base/error.h"
#include "fullbore/base/json.h"
#include "fullbore/text/huggingface_fields.h"

namespace fullbore {
namespace {

using nlohmann::json;
using nn::DecoderConfig;
using nn::RotaryScaling;

// Lists of names are made of these sizes before the file is looked at.
constexpr int64_t kMostTokens = 1'000'000'000;
constexpr int64_t kMostLayers = 1000;
constexpr int64_t kMostHeads = 1024;
constexpr int64_t kMostWidth = 65536;
constexpr int64_t kMostHidden = 1048576;
constexpr int64_t kMostContext = int64_t{1} << 30;

/// What all have: bookkeeping, choices of output, and how the model was trained.
void read_common(HuggingFaceFields& fields, HuggingFaceConfig& config) {
  fields.require("is_encoder_decoder", false);
  fields.require("is_decoder", false);
  fields.require("add_cross_attention", false);
  fields.require("chunk_size_feed_forward", 0);
  fields.require("pruned_heads", json::object());
  fields.require("torchscript", false);
  config.end_tokens = fields.numbers("eos_token_id");
  fields.ignore_bookkeeping();
}

void read_gpt2(HuggingFaceFields& fields, DecoderConfig& decoder) {
  decoder.style = DecoderConfig::Style::gpt2;
  decoder.layers = fields.whole("n_layer", 1, kMostLayers);
  decoder.heads = fields.whole("n_head", 1, kMostHeads);
  decoder.width = fields.whole("n_embd", 1, kMostWidth);
  if (decoder.width % decoder.heads != 0)
    fields.refuse("n_embd", "a multiple of n_head was expected");
  decoder.context = fields.whole("n_positions", 1, kMostContext);
  fields.require("n_ctx", decoder.context);
  decoder.hidden = fields.whole("n_inner", 1, kMostHidden, 4 * decoder.width);
  const std::string activation = fields.word("activation_function", "gelu_new");
  decoder.tanh_gelu = activation == "gelu_new" || activation == "gelu_pytorch_tanh";
  if (!decoder.tanh_gelu && activation != "gelu")
    fields.refuse("activation_function", "gelu_new or gelu was expected");
  decoder.epsilon = fields.not_negative("layer_norm_epsilon", 1e-5);
  decoder.tie_head = fields.flag("tie_word_embeddings", true);
  fields.require("scale_attn_weights", true);
  fields.require("scale_attn_by_inverse_layer_idx", false);
  fields.ignore({"reorder_and_upcast_attn", "embd_pdrop", "attn_pdrop", "resid_pdrop",
                 "predict_special_tokens", "output_past", "gradient_checkpointing", "summary_type",
                 "summary_use_proj", "summary_activation", "summary_proj_to_labels",
                 "summary_first_dropout"});
}

RotaryScaling read_scaling(HuggingFaceFields fields, int64_t context) {
  RotaryScaling scaling;
  const char* const name = fields.has("rope_type") ? "rope_type" : "type";
  const std::string kind = fields.word(name, "default");
  fields.ignore({"type"});  // rope_type goes before it
  if (kind == "linear" || kind == "llama3") {
    scaling.kind = kind == "linear" ? RotaryScaling::Kind::linear : RotaryScaling::Kind::llama3;
    if (!fields.has("factor")) fields.refuse("factor", "");
    scaling.factor = fields.positive("factor", 1);
  } else if (kind != "default") {
    fields.refuse(name, "default, linear or llama3 was expected");
  }
  if (kind == "llama3") {
    scaling.low = fields.positive("low_freq_factor", 1);
    scaling.high = fields.positive("high_freq_factor", 4);
    if (scaling.high <= scaling.low)
      fields.refuse("high_freq_factor", "more than low_freq_factor was expected");
    scaling.original = fields.whole("original_max_position_embeddings", 1, kMostContext, context);
  } else {
    fields.ignore({"original_max_position_embeddings"});
  }
  fields.ignore({"rope_theta"});
  fields.finish();
  return scaling;
}

/// Frequencies are given in one of two ways: rope_theta and rope_scaling, or since version 5 rope_parameters.
void read_rotary(HuggingFaceFields& fields, DecoderConfig& decoder) {
  decoder.theta = fields.positive("rope_theta", 10000);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!fields.has(key)) continue;
    HuggingFaceFields rotary = fields.object(key);
    decoder.theta = rotary.positive("rope_theta", decoder.theta);
    decoder.scaling = read_scaling(rotary, decoder.context);
  }
  fields.require("partial_rotary_factor", 1.0);
  fields.require("rope_interleaved", false);
}

/// Which layers have the window: those from one layer on.
void read_window(HuggingFaceFields& fields, DecoderConfig& decoder) {
  const bool has_window = fields.flag("use_sliding_window", false);
  const int64_t window = fields.whole("sliding_window", 1, kMostContext, 0);
  const int64_t first = fields.whole("max_window_layers", 0, INT32_MAX, 28);
  const std::vector<std::string> kinds = fields.words("layer_types");
  decoder.window_layer = first;
  if (!kinds.empty()) {
    if (static_cast<int64_t>(kinds.size()) != decoder.layers)
      fields.refuse("layer_types",
                    fmt::format("one of each of {} layers was expected", decoder.layers));
    decoder.window_layer = 0;
    while (decoder.window_layer < decoder.layers &&
           kinds[static_cast<size_t>(decoder.window_layer)] == "full_attention")
      ++decoder.window_layer;
    for (auto layer = static_cast<size_t>(decoder.window_layer); layer < kinds.size(); ++layer)
      if (kinds[layer] != "sliding_attention")
        fields.refuse("layer_types", "full_attention, and then sliding_attention, was expected");
  }
  decoder.window_layer = std::min(decoder.window_layer, decoder.layers);
  if (has_window && window == 0) fields.refuse("sliding_window", "a number of tokens was expected");
  if (has_window && decoder.window_layer < decoder.layers) {
    decoder.window = window;
  } else if (!has_window && !kinds.empty() && decoder.window_layer < decoder.layers) {
    fields.refuse("layer_types", "sliding_attention needs use_sliding_window");
  }
  if (decoder.window == 0) decoder.window_layer = 0;
}

void read_llama(HuggingFaceFields& fields, DecoderConfig& decoder, bool qwen2) {
  decoder.layers = fields.whole("num_hidden_layers", 1, kMostLayers);
  decoder.heads = fields.whole("num_attention_heads", 1, kMostHeads);
  decoder.groups = fields.whole("num_key_value_heads", 1, kMostHeads, decoder.heads);
  decoder.width = fields.whole("hidden_size", 1, kMostWidth);
  decoder.hidden = fields.whole("intermediate_size", 1, kMostHidden);
  decoder.context = fields.whole("max_position_embeddings", 1, kMostContext);
  decoder.head_width = fields.whole("head_dim", 1, kMostWidth, decoder.width / decoder.heads);
  if (decoder.heads % decoder.groups != 0)
    fields.refuse("num_key_value_heads", "a divisor of num_attention_heads was expected");
  if (decoder.head_width % 2 != 0 || decoder.head_width == 0)
    fields.refuse(fields.has("head_dim") ? "head_dim" : "hidden_size",
                  "heads of an even width were expected");
  if (!fields.has("head_dim") && decoder.width % decoder.heads != 0)
    fields.refuse("hidden_size", "a multiple of num_attention_heads was expected");
  const std::string activation = fields.word("hidden_act", "silu");
  if (activation != "silu" && activation != "swish")
    fields.refuse("hidden_act", "silu was expected");
  decoder.epsilon = fields.not_negative("rms_norm_eps", 1e-6);
  decoder.tie_head = fields.flag("tie_word_embeddings", false);
  read_rotary(fields, decoder);
  if (qwen2) {
    decoder.attention_bias = true;
    fields.require("attention_bias", true);
    fields.require("mlp_bias", false);
    fields.require("use_mrope", false);
    read_window(fields, decoder);
  } else {
    decoder.attention_bias = decoder.projection_bias = fields.flag("attention_bias", false);
    decoder.mlp_bias = fields.flag("mlp_bias", false);
  }
  fields.ignore({"attention_dropout", "pretraining_tp", "is_llama_config", "rope_theta"});
}

}  // namespace

HuggingFaceConfig parse_huggingface_config(std::string_view text, const std::string& path) {
  const Result<json> parsed = parse_json(text);
  if (!parsed.ok()) throw DataError(fmt::format("{}: {}", path, parsed.error()));
  if (!parsed.value().is_object()) throw DataError(fmt::format("{}: not a JSON object", path));
  HuggingFaceFields fields(parsed.value(), path);
  HuggingFaceConfig config;
  config.family = fields.word("model_type", "gpt2");
  const bool qwen2 = config.family == "qwen2";
  config.decoder.vocabulary = fields.whole("vocab_size", 1, kMostTokens);
  if (config.family == "gpt2")
    read_gpt2(fields, config.decoder);
  else if (config.family == "llama" || qwen2)
    read_llama(fields, config.decoder, qwen2);
  else
    fields.refuse("model_type", "gpt2, llama or qwen2 was expected");
  read_common(fields, config);
  fields.finish();
  return config;
}

}  // namespace fullbore
