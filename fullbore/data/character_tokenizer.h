#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/data/tokenizer.h"

namespace fullbore {

/// The characters of a JSON object {"characters": "...", "format": FORMAT, "version": 1}: ascending, at least one.
/// `source` is how messages name where the text came from: a path.
Result<std::vector<char32_t>> parse_characters(std::string_view json, std::string_view format,
                                               const std::string& source);
/// The same as JSON.
std::string characters_json(const std::vector<char32_t>& characters, std::string_view format);

/// One token per character (Unicode code point). Ids number the distinct characters of a text in
/// code-point order, so the vocabulary depends on the text alone and not on the order it is read.
class CharacterTokenizer : public Tokenizer {
 public:
  static constexpr const char* kFormat = "fullbore.character_tokenizer";

  /// `vocabulary`: Unicode scalar values, strictly ascending, at least one.
  explicit CharacterTokenizer(std::vector<char32_t> vocabulary);

  std::string kind() const override { return "characters"; }
  int64_t vocabulary_size() const override { return static_cast<int64_t>(vocabulary_.size()); }
  const std::vector<char32_t>& vocabulary() const { return vocabulary_; }

  /// The id of a character, or -1.
  int32_t id(char32_t character) const { return character < ids_.size() ? ids_[character] : -1; }

  size_t append_tokens(std::string_view text, std::vector<int32_t>& ids) const override;
  void append_bytes(int32_t id, std::string& bytes) const override;

  /// JSON: {"characters": "...", "format": "fullbore.character_tokenizer", "version": 1}.
  std::string to_json() const override;
  /// `source` is how messages name where the text came from: a path.
  static Result<CharacterTokenizer> from_json(std::string_view json, const std::string& source);

  bool operator==(const CharacterTokenizer& other) const {
    return vocabulary_ == other.vocabulary_;
  }

 private:
  std::vector<char32_t> vocabulary_;
  std::vector<int32_t> ids_;  ///< by code point, up to the largest in the vocabulary; -1: absent
};

}  // namespace fullbore
