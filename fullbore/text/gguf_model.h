#pragma once
#include <string>
#include <vector>

#include "fullbore/ckpt/gguf_file.h"
#include "fullbore/data/tokenizer.h"
#include "fullbore/runtime/state.h"
#include "fullbore/text/gguf_config.h"
#include "fullbore/text/gguf_names.h"
#include "fullbore/text/huggingface_model.h"

namespace fullbore {

/// A GPT-2, Llama or Qwen2 in a GGUF file, the format of llama.cpp.
class GgufModel {
 public:
  /// Reads the metadata, and the tensors' names and types. DataError: a file that is malformed, a key as gguf_config() has
  /// it, a tensor that is unknown, missing or of another shape.
  static GgufModel open(const std::string& path);

  const GgufFile& file() const { return file_; }
  const HuggingFaceConfig& config() const { return config_; }

  /// The parameters that fill() takes, each with its tensor: of a tied head the token table. `decoder` differs from the
  /// file's as HuggingFaceModel::names() has it.
  std::vector<GgufName> names(const nn::DecoderConfig& decoder) const;
  /// A tensor in f32, in our order of rows. DataError if it cannot be read.
  std::vector<float> read(const GgufName& name) const;
  /// Fills every parameter of such a model. DataError: a bias that is not zero for a model without biases, a head that is
  /// no token table for one that ties it.
  void fill(const nn::DecoderConfig& decoder, State& state,
            const HuggingFaceAdvice& advice = {}) const;

 private:
  GgufModel(GgufFile file, HuggingFaceConfig config)
      : file_(std::move(file)), config_(std::move(config)) {}
  void check_tensors() const;

  GgufFile file_;
  HuggingFaceConfig config_;
};

/// Writes one file, atomically: matrices of blocks, head and token table as `matrices` (F16 or Q8_0, where rows are a
/// multiple of 32 long; else F16), everything else in f32. A GPT-2 without biases gets zeros. DataError: the file exists, or
/// cannot be written. UsageError as gguf_metadata() has it.
void export_gguf_model(const std::string& path, const HuggingFaceConfig& model,
                       const Tokenizer& tokenizer, GgufType matrices, const State& state);

}  // namespace fullbore
