#pragma once
#include <memory>
#include <string>
#include <vector>

#include "fullbore/data/token_shard.h"

namespace fullbore {

/// Tokens [begin, end) of a corpus.
struct TokenSpan {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const TokenSpan&) const = default;
};

/// One or more shards as one sequence of tokens and documents. Immutable; safe from any thread.
class TokenCorpus {
 public:
  /// Failure: none at all, shards of different tokenizers, a shard given twice, or no tokens.
  static Result<TokenCorpus> create(std::vector<TokenShard> shards);
  /// Opens every shard of a list of paths, in that order.
  static Result<TokenCorpus> open(const std::vector<std::string>& paths);

  int64_t size() const { return token_begins_.back(); }
  int64_t vocabulary_size() const { return shards_.front().vocabulary_size(); }
  int32_t end_of_document() const { return shards_.front().end_of_document(); }
  uint64_t text_bytes() const;
  const std::vector<TokenShard>& shards() const { return shards_; }
  Result<std::shared_ptr<const Tokenizer>> tokenizer() const;
  uint64_t content_bytes() const;
  uint64_t content_hash() const;  ///< of all shards; of one, what it was made from

  /// Tokens [begin, begin + count) to `out`.
  void copy(int64_t begin, int64_t count, int32_t* out) const;

  int64_t documents() const { return document_begins_.back(); }
  TokenSpan document(int64_t index) const;  ///< its end-of-document token included
  /// The document that holds the token; found in O(log documents).
  int64_t document_of(int64_t token) const;
  int64_t files() const { return file_begins_.back(); }
  /// Where file `index` in [0, files()] begins, in documents; files() is the end of the last.
  int64_t file_begin(int64_t index) const;

 private:
  explicit TokenCorpus(std::vector<TokenShard> shards);
  std::vector<TokenShard> shards_;
  // For each shard what the shards before it hold; one more than there are shards.
  std::vector<int64_t> token_begins_;
  std::vector<int64_t> document_begins_;
  std::vector<int64_t> file_begins_;
};

}  // namespace fullbore
