#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fullbore/data/tokenizer.h"

namespace fullbore {

/// A token a word, of a list that is known beforehand: words are what white space parts, as they are written. Ids 0 to 3
/// are the special tokens <pad> <unk> <bos> <eos>, the words follow from 4 on in their order. A word that is not of the
/// list is <unk>, so that every text has tokens; what the text had between words is not kept.
class WordTokenizer : public Tokenizer {
 public:
  static constexpr const char* kFormat = "fullbore.word_tokenizer";
  static constexpr int32_t kUnknown = 1;
  static constexpr int32_t kFirstWord = 4;

  /// Failure: no words, one that is empty, occurs twice, is no UTF-8, holds white space or is a special token's text.
  static Result<WordTokenizer> create(std::vector<std::string> words);

  std::string kind() const override { return "words"; }
  int64_t vocabulary_size() const override { return kFirstWord + std::ssize(words_); }
  const std::vector<SpecialToken>& special_tokens() const override;

  size_t append_tokens(std::string_view text, std::vector<int32_t>& ids) const override;
  /// A space and the word; of special tokens their text.
  void append_bytes(int32_t id, std::string& bytes) const override;
  size_t last_cut(std::string_view text) const override;

  /// JSON: {"format": "fullbore.word_tokenizer", "version": 1, "words": [...]}.
  std::string to_json() const override;
  /// `source` is how messages name where the text came from: a path.
  static Result<WordTokenizer> from_json(std::string_view json, const std::string& source);

 private:
  explicit WordTokenizer(std::vector<std::string> words) : words_(std::move(words)) {}

  std::vector<std::string> words_;
  std::unordered_map<std::string, int32_t> ids_;
};

}  // namespace fullbore
