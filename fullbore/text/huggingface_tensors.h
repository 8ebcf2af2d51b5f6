#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/ckpt/checkpoint.h"

namespace fullbore {

/// The tensors of a model in the Hugging Face layout: of model.safetensors, or of the several files
/// among which model.safetensors.index.json divides them.
class HuggingFaceTensors {
 public:
  /// Reads names and types. DataError: a file is missing or malformed, the index names a tensor that
  /// is not in the file it gives, or a tensor is in two files.
  static HuggingFaceTensors open(const std::string& folder);

  struct Tensor {
    const Checkpoint* file;
    const StoredTensor* stored;
    const TensorType& type() const { return stored->type; }
    /// In f32, whatever it is stored as. DataError if it cannot be read.
    std::vector<float> read() const;
  };

  /// The file, or the index of several: for messages.
  const std::string& path() const { return path_; }
  std::vector<std::string> files() const;  ///< that hold them
  std::optional<Tensor> find(std::string_view name) const;
  /// All tensors, file by file.
  std::vector<Tensor> all() const;

 private:
  HuggingFaceTensors(std::string path, std::vector<Checkpoint> files);

  std::string path_;
  std::vector<Checkpoint> files_;
};

}  // namespace fullbore
