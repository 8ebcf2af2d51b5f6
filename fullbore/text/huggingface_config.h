#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/nn/decoder_model.h"

namespace fullbore {

/// What a config.json of Hugging Face's transformers says of a decoder-only language model.
struct HuggingFaceConfig {
  std::string family;  ///< model_type: "gpt2", "llama" or "qwen2"
  nn::DecoderConfig decoder;
  std::vector<int64_t> end_tokens;  ///< eos_token_id, one or several
};

/// `text`: of the file at `path`. DataError naming the file, the setting and its value: JSON that is malformed, another
/// model_type, a setting that is missing or out of range, and one that this program would not obey: other activations,
/// kinds of rope_scaling, windows of single layers, settings that it does not know.
HuggingFaceConfig parse_huggingface_config(std::string_view text, const std::string& path);

/// The file that transformers reads as the same model, with f32 weights. UsageError naming what no class of
/// transformers has.
std::string huggingface_config_json(const HuggingFaceConfig& config);
/// "gpt2", "qwen2" (biases of queries, keys and values; windows) or else "llama". UsageError as above.
std::string huggingface_family(const nn::DecoderConfig& decoder);

}  // namespace fullbore
