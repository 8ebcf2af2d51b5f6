#pragma once
#include <memory>
#include <string>

#include "fullbore/base/result.h"
#include "fullbore/data/batch_source.h"
#include "fullbore/data/token_corpus.h"

namespace fullbore {

/// Tokens [begin, end) of a corpus, for one purpose.
struct TokenRange {
  std::string source;  ///< path of the text, for messages
  std::string part;    ///< "training" or "validation", for messages
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

struct TokenSplit {
  TokenRange training;
  TokenRange validation;
};
/// The last `validation_fraction` (in [0, 1)) of the tokens validates, the rest, rounded down,
/// trains: nanoGPT's split at 0.1.
TokenSplit split_tokens(int64_t tokens, double validation_fraction, const std::string& source);

/// What a split must not divide.
enum class SplitBy { kToken, kDocument, kFile };
/// The same for a corpus; by document or file the boundary moves down to where one begins, but leaves
/// both parts something. Failure: there is only one of them.
Result<TokenSplit> split_corpus(const TokenCorpus& tokens, double validation_fraction, SplitBy by,
                                const std::string& source);

struct WindowOptions {
  int64_t batch_size = 1;  ///< B
  int64_t context = 1;     ///< T
};

/// Batches of windows: `inputs` i32 [B, T] and `targets` i32 [B, T], the tokens one further on.
class TokenWindows : public BatchSource {
 public:
  const std::vector<BatchField>& fields() const override { return fields_; }

 protected:
  TokenWindows(std::shared_ptr<const TokenCorpus> tokens, TokenRange range, WindowOptions options);
  /// Writes row `row` from the `count` + 1 tokens at `begin`; past them inputs 0 and targets -1.
  void fill_row(int64_t row, int64_t begin, int64_t count, std::span<void* const> buffers) const;

  std::shared_ptr<const TokenCorpus> tokens_;
  TokenRange range_;
  WindowOptions options_;
  std::vector<BatchField> fields_;
};

/// For training, without end: row r of batch p starts at an offset drawn by Philox from
/// (seed, p, r), uniform over all that leave room for T + 1 tokens.
class RandomWindows : public TokenWindows {
 public:
  /// Failure when the range is shorter than T + 1: says how many there are and are needed.
  static Result<std::unique_ptr<RandomWindows>> create(std::shared_ptr<const TokenCorpus> tokens,
                                                       const TokenRange& range,
                                                       const WindowOptions& options, uint64_t seed);
  void fill(uint64_t position, std::span<void* const> buffers) const override;
  /// Where row `row` of batch `position` starts in the corpus.
  int64_t offset(uint64_t position, int64_t row) const;

 private:
  RandomWindows(std::shared_ptr<const TokenCorpus> tokens, const TokenRange& range,
                const WindowOptions& options, uint64_t seed);
  uint64_t seed_;
};

/// For evaluation: windows side by side that predict every token of the range but its first exactly
/// once, in batches() batches; position batches() is position 0 again. Where the last windows run
/// past the end, targets are -1, which cross_entropy() ignores.
class SequentialWindows : public TokenWindows {
 public:
  /// Failure when the range has fewer than the two tokens that one prediction needs.
  static Result<std::unique_ptr<SequentialWindows>> create(
      std::shared_ptr<const TokenCorpus> tokens, const TokenRange& range,
      const WindowOptions& options);
  void fill(uint64_t position, std::span<void* const> buffers) const override;
  uint64_t batches() const;

 private:
  using TokenWindows::TokenWindows;
  int64_t row_predictions(uint64_t position, int64_t row) const;
};

}  // namespace fullbore
