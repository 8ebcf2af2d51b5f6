#pragma once
#include "fullbore/data/token_windows.h"

namespace fullbore {

/// Batches where there is no text, for measurements: `inputs` i32 [B, T] uniform over [0, vocabulary)
/// and `targets` i32 [B, T], the tokens one further on. Drawn by Philox from (seed, position, row). With
/// `segments` there are `resets` bool [B, segments] too, as of TokenSequences, all false.
class RandomTokens : public BatchSource {
 public:
  RandomTokens(int64_t vocabulary, const WindowOptions& options, uint64_t seed,
               int64_t segments = 0);
  const std::vector<BatchField>& fields() const override { return fields_; }
  void fill(uint64_t position, std::span<void* const> buffers) const override;

 private:
  int64_t vocabulary_;
  WindowOptions options_;
  uint64_t seed_;
  std::vector<BatchField> fields_;
};

}  // namespace fullbore
