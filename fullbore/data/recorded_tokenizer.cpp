#include "fullbore/data/recorded_tokenizer.h"

#include <utility>

#include "fullbore/data/unicode_classes.h"

namespace fullbore {

const std::vector<SpecialToken>& RecordedTokenizer::special_tokens() const {
  static const std::vector<SpecialToken> tokens = {
      {"<pad>", 0},      {"<unk>", kUnknown}, {"<bos>", 2},         {"<eos>", kEndOfText},
      {"<|system|>", 4}, {"<|user|>", 5},     {"<|assistant|>", 6}, {"<|end|>", 7},
  };
  return tokens;
}

size_t RecordedTokenizer::append_tokens(std::string_view text, std::vector<int32_t>& ids) const {
  ids.reserve(ids.size() + text.size());
  size_t at = 0;
  while (at < text.size()) {
    size_t bytes = 0;
    const int32_t character = characters_.id(character_at(text.data() + at, bytes));
    ids.push_back(character < 0 ? kUnknown : kFirstCharacter + character);
    at += bytes;
  }
  return at;
}

void RecordedTokenizer::append_bytes(int32_t id, std::string& bytes) const {
  if (id >= kFirstCharacter)
    characters_.append_bytes(id - kFirstCharacter, bytes);
  else if (static_cast<size_t>(id) < special_tokens().size())
    bytes += special_tokens()[static_cast<size_t>(id)].text;
}

std::string RecordedTokenizer::to_json() const {
  return characters_json(characters_.vocabulary(), kFormat);
}

Result<RecordedTokenizer> RecordedTokenizer::from_json(std::string_view json,
                                                       const std::string& source) {
  Result<std::vector<char32_t>> characters = parse_characters(json, kFormat, source);
  if (!characters.ok()) return Failure{characters.error()};
  return RecordedTokenizer(std::move(characters).value());
}

}  // namespace fullbore
