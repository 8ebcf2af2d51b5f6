#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "workloads/language/models.h"

namespace fullbore {

/// A parameter here and there.
struct HuggingFaceName {
  std::string ours;
  std::string theirs;
  Shape shape;              ///< there
  bool transposed = false;  ///< ours is the transpose
};

constexpr std::string_view kHuggingFaceHead = "lm_head.weight";

/// Every tensor of a GPT-2 of these sizes, biases included; the head only if it is not tied. `prefix`
/// stands before all but the head. Shapes are those of transformers' modeling_gpt2.py, whose Conv1D
/// keeps weights as [inputs, outputs].
std::vector<HuggingFaceName> huggingface_gpt2_names(const LanguageModelConfig& model,
                                                    const std::string& prefix);

/// Is the tensor one of the attention masks that older versions saved beside the weights?
bool is_huggingface_buffer(std::string_view name);

}  // namespace fullbore
