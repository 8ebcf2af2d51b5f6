#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fullbore/data/tokenizer.h"
#include "workloads/chess/chess_record.h"

namespace fullbore::chess {

/// A record as a model reads it.
struct RecordTokens {
  std::vector<int32_t> prompt;
  std::vector<int32_t> completion;  ///< with the end token
};

/// How records become tokens. The end of a completion is the tokenizer's token that ends documents, or, of a tokenizer that
/// has none, such as bytes, the number behind its vocabulary.
class ChessTokens {
 public:
  explicit ChessTokens(std::shared_ptr<const Tokenizer> tokenizer);

  int32_t end() const { return end_; }
  /// Tokens that there are, the end included.
  int64_t vocabulary() const;

  /// The tokens of the whole record, cut behind those of its prompt. Failure: text that the tokenizer lacks, or one in which
  /// a token would stand across the boundary.
  Result<RecordTokens> tokens(const ChessRecord& record) const;
  /// Of the prompt alone.
  Result<std::vector<int32_t>> prompt(const ChessRecord& record) const;
  /// What tokens say, up to the end token; any bytes.
  std::string text(std::span<const int32_t> tokens) const;

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  int32_t end_;
};

}  // namespace fullbore::chess
