#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fullbore/data/tokenizer.h"

namespace fullbore::energy_flow {

/// How the text bridge has texts: rows of `length` tokens, padding behind those of the text.
class TextForm {
 public:
  /// `length`: places of a row. UsageError in the name of `source` for a tokenizer without tokens for padding, beginning
  /// and end: <pad>, <bos> and <eos>, or BERT's [PAD], [CLS] and [SEP].
  TextForm(std::shared_ptr<const Tokenizer> tokenizer, int64_t length, const std::string& source);

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  int64_t vocabulary() const { return tokenizer_->vocabulary_size(); }
  int64_t length() const { return length_; }
  int32_t padding() const { return padding_; }
  int32_t begin() const { return begin_; }
  int32_t end() const { return end_; }
  /// Tokens that no text is made of: padding, beginning, what stands for unknown words, and other special ones.
  const std::vector<int32_t>& never_written() const { return never_; }

  /// Fills a row. Special tokens' texts are text; a text without tokens is the word "empty"; one that is too long is cut.
  /// Whether it was. Failure: what is not UTF-8, or a character that the vocabulary lacks.
  Result<bool> fill(std::string_view text, std::span<int32_t> row) const;
  /// The text of tokens up to the first that ends it, without white space at its ends.
  std::string text(std::span<const int32_t> tokens) const;

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  int64_t length_;
  int32_t padding_ = 0, begin_ = 0, end_ = 0;
  std::vector<int32_t> never_;
};

/// The tokenizer of the synthetic corpus's words.
std::shared_ptr<const Tokenizer> corpus_tokenizer();

/// Of bridge.tokenizer: a file or folder that load_tokenizer() reads; empty: corpus_tokenizer(). DataError.
std::shared_ptr<const Tokenizer> bridge_tokenizer(const std::string& path);

}  // namespace fullbore::energy_flow
