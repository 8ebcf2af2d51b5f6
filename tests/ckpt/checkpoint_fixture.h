#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "fullbore/ckpt/checkpoint.h"
#include "tests/support/scratch_folder.h"

namespace fullbore::testing {

/// Tensors of every dtype, a scalar and an empty one among them, whose bytes depend on `salt`.
class TensorSet {
 public:
  explicit TensorSet(int salt = 0) {
    for (const DType dtype : kAllDTypes)
      add("all." + std::string(dtype_name(dtype)), {dtype, Shape{2, 3}}, salt);
    add("scalar", {DType::f32, Shape{}}, salt);
    add("empty", {DType::f64, Shape{0, 5}}, salt);
    add("\u00E9 \"quoted\"\n", {DType::i64, Shape{1}}, salt);
  }

  const std::vector<NamedTensor>& tensors() const { return tensors_; }

  /// Whether `checkpoint` holds these tensors and no others, byte for byte.
  bool is_in(const Checkpoint& checkpoint) const {
    if (checkpoint.tensors().size() != tensors_.size()) return false;
    for (const NamedTensor& tensor : tensors_) {
      const StoredTensor* stored = checkpoint.find(tensor.name);
      if (stored == nullptr || stored->type != tensor.type) return false;
      std::string bytes(stored->bytes(), '?');
      if (!checkpoint.read(*stored, bytes.data()).ok()) return false;
      if (!bytes.empty() && std::memcmp(bytes.data(), tensor.data, bytes.size()) != 0) return false;
    }
    return true;
  }

 private:
  void add(const std::string& name, const TensorType& type, int salt) {
    auto& bytes = memory_.emplace_back(static_cast<size_t>(type.bytes()) + 1);
    std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(salt + tensors_.size() * 7));
    tensors_.push_back({name, type, bytes.data()});
  }
  std::vector<NamedTensor> tensors_;
  std::vector<std::vector<unsigned char>> memory_;
};

inline const Metadata kExampleMetadata = {{"step", "12"}, {"config", "a: \"b\"\nc: \u00E9\\n"}};

}  // namespace fullbore::testing
