#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fullbore/nn/decoder_model.h"

namespace fullbore {

/// A parameter here and in a GGUF file. The shape is the same: both keep matrices as [outputs, inputs].
struct GgufName {
  std::string ours;
  std::string theirs;
  Shape shape;
  /// Heads whose rows are in another order there, 0: the same order. Files of the architecture "llama" turn the pairs of
  /// channels (2 i, 2 i + 1) of a head of queries or keys, where we turn (i, i + D / 2): row 2 i + s there is row
  /// i + s D / 2 here.
  int64_t paired_heads = 0;
};

/// Every tensor of a model of these sizes, of GPT-2 biases included; the head only if it is not tied. `family`: "gpt2",
/// "llama" or "qwen2". Source: the names of llama.cpp's architectures, in gguf-py.
std::vector<GgufName> gguf_names(const nn::DecoderConfig& decoder, const std::string& family);

/// The rows [rows, ...] of `heads` heads as a GGUF file has them, and back.
std::vector<float> paired_rows(const std::vector<float>& values, int64_t rows, int64_t heads);
std::vector<float> halved_rows(const std::vector<float>& values, int64_t rows, int64_t heads);

}  // namespace fullbore
