#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/result.h"

namespace fullbore {

/// One token per character (Unicode code point). Ids number the distinct characters of a text in
/// code-point order, so the vocabulary depends on the text alone and not on the order it is read.
class CharacterTokenizer {
 public:
  /// `vocabulary`: Unicode scalar values, strictly ascending, at least one.
  explicit CharacterTokenizer(std::vector<char32_t> vocabulary);

  int64_t vocabulary_size() const { return static_cast<int64_t>(vocabulary_.size()); }
  const std::vector<char32_t>& vocabulary() const { return vocabulary_; }

  /// The id of a character, or -1.
  int32_t id(char32_t character) const { return character < ids_.size() ? ids_[character] : -1; }

  /// Failure names the first character outside the vocabulary and its offset, or what is not UTF-8.
  Result<std::vector<int32_t>> encode(std::string_view text) const;
  /// Failure names the first id outside [0, vocabulary_size()).
  Result<std::string> decode(std::span<const int32_t> ids) const;

  /// JSON: {"characters": "...", "format": "fullbore.character_tokenizer", "version": 1}.
  std::string to_json() const;
  /// `source` is how messages name where the text came from: a path.
  static Result<CharacterTokenizer> from_json(std::string_view json, const std::string& source);
  Status save(const std::string& path) const;
  static Result<CharacterTokenizer> load(const std::string& path);

  uint64_t hash() const;  ///< of the vocabulary
  bool operator==(const CharacterTokenizer& other) const {
    return vocabulary_ == other.vocabulary_;
  }

 private:
  std::vector<char32_t> vocabulary_;
  std::vector<int32_t> ids_;  ///< by code point, up to the largest in the vocabulary; -1: absent
};

}  // namespace fullbore
