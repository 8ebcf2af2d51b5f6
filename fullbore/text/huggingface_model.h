#pragma once
#include <string>
#include <utility>
#include <vector>

#include "fullbore/runtime/state.h"
#include "fullbore/text/huggingface_config.h"
#include "fullbore/text/huggingface_names.h"
#include "fullbore/text/huggingface_tensors.h"

namespace fullbore {

/// What a user may do about weights that a model has no place for: "; set x=true".
struct HuggingFaceAdvice {
  std::string bias = {};  ///< about a bias that is not zero
  std::string head = {};  ///< about an output head that is not the token table
};

/// A GPT-2, Llama or Qwen2 as Hugging Face's transformers keeps it: a folder with config.json and model.safetensors, or
/// several such files and their index. Names are those of its language models, with or without what stands before them
/// (huggingface_prefix).
class HuggingFaceModel {
 public:
  /// Reads config.json and the tensors' names and types. DataError: a file that is missing or malformed, a tensor that
  /// is unknown, missing, of another shape or no floating type, a setting that is not obeyed here.
  static HuggingFaceModel open(const std::string& folder);

  const std::string& folder() const { return folder_; }
  const HuggingFaceConfig& config() const { return config_; }
  const HuggingFaceTensors& tensors() const { return tensors_; }

  /// The parameters that fill() takes, each with the tensor that it takes: of a tied head the token table. `decoder` is
  /// the folder's, or differs from it in a shorter context (of learned positions the first are taken), dropout, biases of
  /// GPT-2 that it lacks, or an output head of its own that is to start as the token table.
  std::vector<HuggingFaceName> names(const nn::DecoderConfig& decoder) const;

  /// Fills every parameter of such a model. DataError: what cannot be read, a bias that is not zero for a model without
  /// biases, a head that is no token table for one that ties it.
  void fill(const nn::DecoderConfig& decoder, State& state,
            const HuggingFaceAdvice& advice = {}) const;

 private:
  HuggingFaceModel(std::string folder, HuggingFaceConfig config, HuggingFaceTensors tensors);
  void check_tensors() const;

  std::string folder_;
  HuggingFaceConfig config_;
  HuggingFaceTensors tensors_;
  std::string prefix_;  ///< "transformer.", "model." or ""
};

/// Writes config.json and model.safetensors, each atomically, to the folder, which is made if need be: what
/// AutoModelForCausalLM.from_pretrained reads. A GPT-2 without biases gets zeros. DataError: the folder holds a model
/// already, or a file cannot be written. UsageError: transformers has no such class.
void export_huggingface_model(const std::string& folder, const HuggingFaceConfig& model,
                              const State& state);

}  // namespace fullbore
