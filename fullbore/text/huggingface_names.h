#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/nn/decoder_model.h"

namespace fullbore {

/// A parameter here and there.
struct HuggingFaceName {
  std::string ours;
  std::string theirs;
  Shape shape;              ///< there
  bool transposed = false;  ///< ours is the transpose
};

constexpr std::string_view kHuggingFaceHead = "lm_head.weight";

/// Every tensor of a model of these sizes, of GPT-2 biases included; the head only if it is not tied. `prefix` stands
/// before all but the head: "transformer." of GPT-2, "model." of the others, or nothing where the body was saved alone.
/// Names and shapes are those of transformers' modeling_gpt2.py, whose Conv1D keeps weights as [inputs, outputs], and of
/// modeling_llama.py and modeling_qwen2.py, whose linear layers keep them as we do.
std::vector<HuggingFaceName> huggingface_names(const nn::DecoderConfig& decoder,
                                               const std::string& prefix);
/// "transformer." or "model."
std::string huggingface_prefix(const nn::DecoderConfig& decoder);
/// The token table, without prefix.
std::string huggingface_table(const nn::DecoderConfig& decoder);

/// Is the tensor a mask or a table of frequencies that older versions saved beside the weights?
bool is_huggingface_buffer(std::string_view name);

}  // namespace fullbore
