#pragma once
#include <cstdint>
#include <string>

#include "fullbore/nn/decoder_model.h"
#include "fullbore/train/config.h"
#include "fullbore/train/config_keys.h"

namespace fullbore {

/// Keys of model.name=llama beside those of all models of texts, and model.tie_head.
struct LlamaKeys {
  int64_t key_value_heads = 0;
  int64_t head_width = 0;
  int64_t mlp_width = 0;
  double norm_epsilon = 1e-5;
  double rotary_theta = 10000;
  std::string rotary_scaling = "none";
  double rotary_factor = 8;
  double rotary_low = 1;
  double rotary_high = 4;
  int64_t rotary_original = 8192;
  std::string attention_bias = "none";
  bool mlp_bias = false;
  int64_t window = 0;
  int64_t window_layer = 0;
  bool operator==(const LlamaKeys&) const = default;
};

inline const LlamaKeys& llama_keys(const Config& config) { return config.get<LlamaKeys>(); }
inline LlamaKeys& llama_keys(Config& config) { return config.get<LlamaKeys>(); }

/// Those of a model of style llama.
void set_llama_keys(Config& config, const nn::DecoderConfig& decoder);

std::vector<ConfigField> llama_fields();
void check_llama_keys(const ConfigCheck& check);

}  // namespace fullbore
