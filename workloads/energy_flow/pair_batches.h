#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/data/batch_source.h"
#include "fullbore/monitor/console.h"

namespace fullbore::energy_flow {

/// Pairs of embeddings in memory: an input and its target each.
class EmbeddingPairs {
 public:
  /// Pairs first to first + count of the synthetic corpus `key`.
  static EmbeddingPairs of_corpus(uint64_t key, int64_t first, int64_t count, int64_t width);
  /// The records of a file two by two. DataError that names file and place: what cannot be read, vectors that are not of
  /// `width`, an odd number of records.
  static EmbeddingPairs of_file(const std::string& path, int64_t width, Console& console);

  int64_t size() const { return std::ssize(inputs_) / width_; }
  int64_t width() const { return width_; }
  const float* input(int64_t pair) const { return inputs_.data() + pair * width_; }
  const float* target(int64_t pair) const { return targets_.data() + pair * width_; }
  /// xxHash64 of all vectors.
  uint64_t hash() const;

 private:
  explicit EmbeddingPairs(int64_t width) : width_(width) {}

  int64_t width_;
  std::vector<float> inputs_, targets_;
};

/// What the curriculum says of an optimiser's step.
struct StepSettings {
  double displacement_scale = 1;
  double noise = 0;  ///< standard deviation
  double z_bias = 0;
  double z_bias_per_age = 0;
};

/// Batches of pairs [first, first + count). Fields: input f32 [B, W], target f32 [B, W], and the settings of the step,
/// f32 [] each, in the order of StepSettings.
class PairBatches final : public BatchSource {
 public:
  /// Shuffled anew in every epoch by `seed`; without one, in order. `settings`: of batch p.
  PairBatches(std::shared_ptr<const EmbeddingPairs> pairs, int64_t first, int64_t count,
              int64_t batch_size, std::optional<uint64_t> seed,
              std::function<StepSettings(uint64_t position)> settings);

  const std::vector<BatchField>& fields() const override { return fields_; }
  void fill(uint64_t position, std::span<void* const> buffers) const override;
  static std::vector<BatchField> fields_of(int64_t batch_size, int64_t width);

 private:
  std::shared_ptr<const EmbeddingPairs> pairs_;
  int64_t first_;
  int64_t count_;
  int64_t batch_size_;
  std::optional<uint64_t> seed_;
  std::function<StepSettings(uint64_t)> settings_;
  std::vector<BatchField> fields_;
};

}  // namespace fullbore::energy_flow
