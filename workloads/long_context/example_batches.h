#pragma once
#include <memory>
#include <vector>

#include "fullbore/data/batch_source.h"
#include "fullbore/data/tokenizer.h"
#include "workloads/long_context/associative_recall.h"

namespace fullbore::long_context {

/// Examples to learn from, or held out to see what was learned: no key is of both, nor of those that
/// `fullbore longcontext` asks for.
enum class ExampleUse : uint8_t { training, validation };

/// Batches of associative recall: `inputs` and `targets` i32 [B,T], -1 where nothing is asked. A batch is
/// of one of `mix`: drawn by the batch's number while training, held-out batches go through them in
/// turn. An example is a function of (seed, use, batch, row).
class RecallBatches : public BatchSource {
 public:
  /// `mix`: of one vocabulary, at least one. UsageError for sizes that cannot be made.
  RecallBatches(std::vector<RecallSizes> mix, int64_t batch_size, uint64_t seed, ExampleUse use);
  const std::vector<BatchField>& fields() const override { return shapes_.back(); }
  std::vector<std::vector<BatchField>> shapes() const override { return shapes_; }
  size_t shape_at(uint64_t position) const override;
  void fill(uint64_t position, std::span<void* const> buffers) const override;

 private:
  const RecallSizes& sizes_at(uint64_t position) const;

  std::vector<RecallSizes> mix_;
  int64_t batch_size_;
  uint64_t seed_;
  ExampleUse use_;
  std::vector<std::vector<BatchField>> shapes_;  ///< by length, ascending
};

struct PasskeyOptions {
  int64_t shortest = 64;  ///< characters of a text, its question included
  int64_t longest = 512;
  int64_t batch_size = 1;
};

/// Batches of single needles (needle_example.h), at any depth, in texts of uniformly drawn lengths:
/// `inputs` and `targets` i32 [B, longest + 4], -1 but for the value's letters. Behind the value is padding.
class PasskeyBatches : public BatchSource {
 public:
  /// `tokenizer` must have a token for each character of needle_alphabet(). UsageError if it has not, or
  /// the shortest text has no room for a needle.
  PasskeyBatches(std::shared_ptr<const Tokenizer> tokenizer, const PasskeyOptions& options,
                 uint64_t seed, ExampleUse use);
  const std::vector<BatchField>& fields() const override { return fields_; }
  void fill(uint64_t position, std::span<void* const> buffers) const override;

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  PasskeyOptions options_;
  uint64_t seed_;
  ExampleUse use_;
  std::vector<BatchField> fields_;
};

/// The fields of such batches, of any length.
std::vector<BatchField> example_fields(int64_t batch_size, int64_t length);

}  // namespace fullbore::long_context
