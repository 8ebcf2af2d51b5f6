#pragma once
#include <vector>

#include "fullbore/ckpt/gguf_file.h"
#include "fullbore/text/huggingface_config.h"

namespace fullbore {

/// The tensor that says by how much each rotary frequency of a Llama 3.1 is divided, f32 [D / 2].
constexpr const char* kGgufFrequencies = "rope_freqs.weight";

/// What a GGUF file says of its model, of the architectures "gpt2", "llama" and "qwen2". DataError naming the file, the key
/// and what stands there: another architecture, a key that is missing or out of range, one that this program would not obey
/// (kinds of rotary scaling, experts, widths of heads that differ, frequencies that are no Llama 3.1's).
HuggingFaceConfig gguf_config(const GgufFile& file);

/// The keys of a model, without those of its tokenizer. UsageError naming what llama.cpp's architecture has not: windows,
/// an exact GELU.
GgufMetadata gguf_metadata(const HuggingFaceConfig& config);
/// The values of kGgufFrequencies; empty for a model that needs none.
std::vector<float> gguf_frequencies(const nn::DecoderConfig& decoder);

}  // namespace fullbore
