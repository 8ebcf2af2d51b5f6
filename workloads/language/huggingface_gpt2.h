#pragma once
#include <string>
#include <utility>
#include <vector>

#include "fullbore/runtime/state.h"
#include "workloads/language/huggingface_tensors.h"
#include "workloads/language/models.h"

namespace fullbore {

/// A GPT-2 as Hugging Face's transformers keeps it: a folder with config.json and model.safetensors, or
/// several such files and their index.
/// The names are those of its GPT2LMHeadModel, with or without "transformer." before them; weights of
/// the blocks are [inputs, outputs], the transpose of ours.
class HuggingFaceGpt2 {
 public:
  /// Reads config.json and the tensors' names and types. DataError: a file that is missing or
  /// malformed, a tensor that is unknown, missing or of another type, an architecture or a setting
  /// that workloads/language/gpt.cpp does not have.
  static HuggingFaceGpt2 open(const std::string& folder);

  const LanguageModelConfig& config() const { return config_; }

  /// DataError naming the setting and both values, if `model` differs from the folder's in more than
  /// a shorter context (the first positions are taken), dropout, or an output head of its own that is
  /// to start as the token table.
  void check(const LanguageModelConfig& model) const;

  /// The parameters that fill() takes: our name, then theirs.
  std::vector<std::pair<std::string, std::string>> renamed(const LanguageModelConfig& model) const;

  /// Fills every parameter of a model that check() has accepted. DataError: what cannot be read, a
  /// bias that is not zero for a model without biases, a head that is no token table for one that
  /// ties it.
  void fill(const LanguageModelConfig& model, State& state) const;

 private:
  HuggingFaceGpt2(std::string folder, LanguageModelConfig config, HuggingFaceTensors tensors);
  void check_tensors() const;

  std::string folder_;
  LanguageModelConfig config_;
  HuggingFaceTensors tensors_;
  std::string prefix_;  ///< "transformer." or ""
};

/// Writes config.json and model.safetensors, each atomically, to the folder, which is made if need
/// be: what GPT2LMHeadModel.from_pretrained reads. A model without biases gets zeros. DataError: the
/// folder holds a model already, or a file cannot be written.
void export_huggingface_gpt2(const std::string& folder, const LanguageModelConfig& model,
                             const State& state);

}  // namespace fullbore
