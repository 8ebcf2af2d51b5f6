#include "workloads/language/llama_keys.h"

#include "fullbore/text/text_keys.h"

namespace fullbore {
namespace {

constexpr ConfigRange kFactor{.low = 0, .high = 1e12, .low_open = true};
constexpr ConfigRange kTokens{.low = 0, .high = int64_t{1} << 30};

}  // namespace

#define FB_KEY(member) \
  "model." #member, [](Config& config) -> ConfigPlace { return &llama_keys(config).member; }

std::vector<ConfigField> llama_fields() {
  std::vector<ConfigField> fields = {
      {FB_KEY(key_value_heads),
       {0, 1024},
       {},
       "heads of keys and values, which divide model.heads; 0: as many"},
      {FB_KEY(head_width),
       {0, 65536},
       {},
       "channels of a head, even; 0: model.width / model.heads"},
      {FB_KEY(mlp_width), {0, 1048576}, {}, "channels within the MLP; 0: 4 model.width"},
      {FB_KEY(norm_epsilon), {0, 1}, {}, "added to the mean square in RMS norms"},
      {FB_KEY(rotary_theta), kFactor, {}, "base of the rotary positions' wavelengths"},
      {FB_KEY(rotary_scaling),
       {},
       {"none", "linear", "llama3"},
       "of rotary frequencies for longer texts: all alike, or low ones alone, as Llama 3.1"},
      {FB_KEY(rotary_factor), kFactor, {}, "by which scaled frequencies are divided"},
      {FB_KEY(rotary_low), kFactor, {}, "of llama3: fewer waves in rotary_original are low"},
      {FB_KEY(rotary_high), kFactor, {}, "of llama3: more waves in rotary_original are high"},
      {FB_KEY(rotary_original),
       {1, int64_t{1} << 30},
       {},
       "of llama3: tokens of the sequences before scaling"},
      {FB_KEY(attention_bias),
       {},
       {"none", "qkv", "all"},
       "biases of queries, keys and values, as Qwen2 has them, or of the output too"},
      {FB_KEY(mlp_bias), {}, {}, "biases in the MLP"},
      {FB_KEY(window), kTokens, {}, "tokens that a token sees, itself too; 0: all before it"},
      {FB_KEY(window_layer), {0, 1000}, {}, "the first block with a window; those before see all"}};
  for (ConfigField& field : fields) field.models = {"llama"};
  return fields;
}

#undef FB_KEY

void set_llama_keys(Config& config, const nn::DecoderConfig& decoder) {
  using Kind = nn::RotaryScaling::Kind;
  const nn::RotaryScaling& scaling = decoder.scaling;
  llama_keys(config) = {.key_value_heads = decoder.groups,
                        .head_width = decoder.head_width,
                        .mlp_width = decoder.hidden,
                        .norm_epsilon = decoder.epsilon,
                        .rotary_theta = decoder.theta,
                        .rotary_scaling = scaling.kind == Kind::none     ? "none"
                                          : scaling.kind == Kind::linear ? "linear"
                                                                         : "llama3",
                        .rotary_factor = scaling.factor,
                        .rotary_low = scaling.low,
                        .rotary_high = scaling.high,
                        .rotary_original = scaling.original,
                        .attention_bias = decoder.projection_bias  ? "all"
                                          : decoder.attention_bias ? "qkv"
                                                                   : "none",
                        .mlp_bias = decoder.mlp_bias,
                        .window = decoder.window,
                        .window_layer = decoder.window_layer};
}

void check_llama_keys(const ConfigCheck& check) {
  const Config& config = check.config();
  if (config.model.name != "llama") return;
  const LlamaKeys& keys = llama_keys(config);
  const TextKeys::Model& model = text_keys(config).model;
  check.together(keys.key_value_heads == 0 || model.heads % keys.key_value_heads == 0,
                 "model.heads", "is not a multiple of", "model.key_value_heads");
  if (keys.head_width > 0)
    check.together(keys.head_width % 2 == 0, "model.head_width",
                   "is odd, and heads have pairs to turn, in", "model.name");
  else
    check.together(model.width / model.heads % 2 == 0, "model.width",
                   "gives heads of an odd width, which have no pairs to turn, with", "model.heads");
  check.together(keys.rotary_scaling != "llama3" || keys.rotary_low < keys.rotary_high,
                 "model.rotary_low", "is not less than", "model.rotary_high");
}

}  // namespace fullbore
