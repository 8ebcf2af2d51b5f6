#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/data/batch_source.h"
#include "fullbore/monitor/console.h"
#include "workloads/energy_flow/text_tokens.h"

namespace fullbore::energy_flow {

/// Pairs of embeddings in memory: an input and its target each, and their texts where there are any.
class EmbeddingPairs {
 public:
  /// Pairs first to first + count of the synthetic corpus `key`.
  static EmbeddingPairs of_corpus(uint64_t key, int64_t first, int64_t count, int64_t width);
  /// The records of a file two by two. DataError that names file and place: what cannot be read, vectors that are not of
  /// `width`, an odd number of records. Has texts if all records have one.
  static EmbeddingPairs of_file(const std::string& path, int64_t width, Console& console);

  int64_t size() const { return std::ssize(inputs_) / width_; }
  int64_t width() const { return width_; }
  const float* input(int64_t pair) const { return inputs_.data() + pair * width_; }
  const float* target(int64_t pair) const { return targets_.data() + pair * width_; }
  bool has_texts() const { return std::ssize(input_texts_) == size(); }
  const std::string& input_text(int64_t pair) const { return input_texts_[at(pair)]; }
  const std::string& target_text(int64_t pair) const { return target_texts_[at(pair)]; }
  /// xxHash64 of all vectors.
  uint64_t hash() const;

 private:
  explicit EmbeddingPairs(int64_t width) : width_(width) {}
  static size_t at(int64_t pair) { return static_cast<size_t>(pair); }

  int64_t width_;
  std::vector<float> inputs_, targets_;
  std::vector<std::string> input_texts_, target_texts_;
};

/// The texts of pairs as tokens, a row of TextForm::length() each: i32 [pairs, T].
struct PairTokens {
  std::vector<int32_t> inputs, targets;
  int64_t length = 0;
  int64_t cut = 0;  ///< texts that were too long
};
/// DataError in the name of `source`: pairs without texts, or a text that the tokenizer does not take.
PairTokens tokenize_pairs(const EmbeddingPairs& pairs, const TextForm& form,
                          const std::string& source);

/// What the curriculum says of an optimiser's step.
struct StepSettings {
  double displacement_scale = 1;
  double noise = 0;  ///< standard deviation
  double z_bias = 0;
  double z_bias_per_age = 0;
};

/// Batches of pairs [first, first + count). Fields: input f32 [B, W], target f32 [B, W], the settings of the step, f32 []
/// each, in the order of StepSettings; and with tokens input_tokens and target_tokens, i32 [B, T].
class PairBatches final : public BatchSource {
 public:
  /// Shuffled anew in every epoch by `seed`; without one, in order. `settings`: of batch p. `tokens`: of all pairs; may
  /// be null.
  PairBatches(std::shared_ptr<const EmbeddingPairs> pairs, std::shared_ptr<const PairTokens> tokens,
              int64_t first, int64_t count, int64_t batch_size, std::optional<uint64_t> seed,
              std::function<StepSettings(uint64_t position)> settings);

  const std::vector<BatchField>& fields() const override { return fields_; }
  void fill(uint64_t position, std::span<void* const> buffers) const override;
  /// `length`: of rows of tokens; 0: there are none.
  static std::vector<BatchField> fields_of(int64_t batch_size, int64_t width, int64_t length);

 private:
  std::shared_ptr<const EmbeddingPairs> pairs_;
  std::shared_ptr<const PairTokens> tokens_;
  int64_t first_;
  int64_t count_;
  int64_t batch_size_;
  std::optional<uint64_t> seed_;
  std::function<StepSettings(uint64_t)> settings_;
  std::vector<BatchField> fields_;
};

/// Batches of single texts of pairs [first, first + count), two of each. Fields: embedding f32 [B, W], tokens i32 [B, T].
class TextBatches final : public BatchSource {
 public:
  /// Shuffled anew in every epoch by `seed`; without one, in order.
  TextBatches(std::shared_ptr<const EmbeddingPairs> pairs, std::shared_ptr<const PairTokens> tokens,
              int64_t first, int64_t count, int64_t batch_size, std::optional<uint64_t> seed);

  const std::vector<BatchField>& fields() const override { return fields_; }
  void fill(uint64_t position, std::span<void* const> buffers) const override;
  static std::vector<BatchField> fields_of(int64_t batch_size, int64_t width, int64_t length);

 private:
  std::shared_ptr<const EmbeddingPairs> pairs_;
  std::shared_ptr<const PairTokens> tokens_;
  int64_t first_;
  int64_t count_;
  int64_t batch_size_;
  std::optional<uint64_t> seed_;
  std::vector<BatchField> fields_;
};

}  // namespace fullbore::energy_flow
