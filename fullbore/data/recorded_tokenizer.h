#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/data/character_tokenizer.h"
#include "fullbore/data/tokenizer.h"

namespace fullbore {

/// One token per character, behind tokens for chats: the vocabulary of the recorded models. Ids 0 to 7 are
/// the special tokens <pad> <unk> <bos> <eos> <|system|> <|user|> <|assistant|> <|end|>, 8 to 31 are reserved and
/// stand for no text, and the characters of a text follow from 32 in code-point order. A character that the text
/// lacked is <unk>, so that every text has tokens; the text is then not what they decode to.
class RecordedTokenizer : public Tokenizer {
 public:
  static constexpr const char* kFormat = "fullbore.recorded_tokenizer";
  static constexpr int32_t kUnknown = 1;
  static constexpr int32_t kEndOfText = 3;
  static constexpr int32_t kFirstCharacter = 32;

  /// `characters`: Unicode scalar values, strictly ascending, at least one.
  explicit RecordedTokenizer(std::vector<char32_t> characters)
      : characters_(std::move(characters)) {}

  std::string kind() const override { return "characters"; }
  int64_t vocabulary_size() const override {
    return kFirstCharacter + characters_.vocabulary_size();
  }
  const std::vector<SpecialToken>& special_tokens() const override;

  size_t append_tokens(std::string_view text, std::vector<int32_t>& ids) const override;
  void append_bytes(int32_t id, std::string& bytes) const override;

  /// JSON: {"characters": "...", "format": "fullbore.recorded_tokenizer", "version": 1}.
  std::string to_json() const override;
  /// `source` is how messages name where the text came from: a path.
  static Result<RecordedTokenizer> from_json(std::string_view json, const std::string& source);

 private:
  CharacterTokenizer characters_;
};

}  // namespace fullbore
