#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "fullbore/ckpt/checkpoint_folder.h"
#include "fullbore/ckpt/run_record.h"
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

/// A checkpoint of two groups, "weights" and "optimizer", and of a record at `step`.
class Contents {
 public:
  explicit Contents(int64_t step, bool packed = false)
      : weights_(static_cast<int>(step)), optimizer_(static_cast<int>(step) + 100) {
    record.step = step;
    record.data_position = static_cast<uint64_t>(step);
    record.config = "{}";
    record.tokenizer = "{}";
    record.metrics["train_loss"] = 1.0 / static_cast<double>(step + 1);
    contents_.groups = {{"weights", weights_.tensors(), packed},
                        {"optimizer", optimizer_.tensors(), packed}};
  }
  CheckpointContents get() {
    contents_.texts = to_texts(record);
    return contents_;
  }
  /// Whether the folder holds this and nothing else, byte for byte.
  bool is_in(const CheckpointFolder& folder) const {
    const Result<Checkpoint> weights = folder.group("weights");
    const Result<Checkpoint> optimizer = folder.group("optimizer");
    const Result<RunRecord> found = read_run_record(folder);
    return weights.ok() && weights_.is_in(weights.value()) && optimizer.ok() &&
           optimizer_.is_in(optimizer.value()) && found.ok() && found.value() == record;
  }
  RunRecord record;

 private:
  TensorSet weights_;
  TensorSet optimizer_;
  CheckpointContents contents_;
};

inline const Metadata kExampleMetadata = {{"step", "12"}, {"config", "a: \"b\"\nc: \u00E9\\n"}};

}  // namespace fullbore::testing
