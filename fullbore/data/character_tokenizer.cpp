#include "fullbore/data/character_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fullbore/base/json.h"
#include "fullbore/data/unicode_classes.h"
#include "fullbore/data/utf8.h"

namespace fullbore {
namespace {

constexpr int kVersion = 1;

}  // namespace

CharacterTokenizer::CharacterTokenizer(std::vector<char32_t> vocabulary)
    : vocabulary_(std::move(vocabulary)) {
  FB_CHECK(!vocabulary_.empty() && std::adjacent_find(vocabulary_.begin(), vocabulary_.end(),
                                                      std::greater_equal<>()) == vocabulary_.end(),
           "vocabulary of {} characters is not strictly ascending", vocabulary_.size());
  ids_.assign(size_t{vocabulary_.back()} + 1, -1);
  for (size_t i = 0; i < vocabulary_.size(); ++i) ids_[vocabulary_[i]] = static_cast<int32_t>(i);
}

size_t CharacterTokenizer::append_tokens(std::string_view text, std::vector<int32_t>& ids) const {
  const size_t before = ids.size();
  const char* at = text.data();
  const char* const end = at + text.size();
  ids.resize(before + text.size());  // a character has one byte at least
  int32_t* out = ids.data() + before;
  while (at < end) {
    size_t bytes = 0;
    const int32_t token = id(character_at(at, bytes));
    if (token < 0) break;
    *out++ = token;
    at += bytes;
  }
  ids.resize(static_cast<size_t>(out - ids.data()));
  return static_cast<size_t>(at - text.data());
}

void CharacterTokenizer::append_bytes(int32_t id, std::string& bytes) const {
  append_utf8(bytes, vocabulary_[static_cast<size_t>(id)]);
}

std::string CharacterTokenizer::to_json() const { return characters_json(vocabulary_, kFormat); }

Result<CharacterTokenizer> CharacterTokenizer::from_json(std::string_view json,
                                                         const std::string& source) {
  Result<std::vector<char32_t>> characters = parse_characters(json, kFormat, source);
  if (!characters.ok()) return Failure{characters.error()};
  return CharacterTokenizer(std::move(characters).value());
}

std::string characters_json(const std::vector<char32_t>& characters, std::string_view format) {
  std::string text;
  for (const char32_t character : characters) append_utf8(text, character);
  const nlohmann::json json = {{"format", format}, {"version", kVersion}, {"characters", text}};
  return json.dump();
}

Result<std::vector<char32_t>> parse_characters(std::string_view json, std::string_view kind,
                                               const std::string& source) {
  const auto refuse = [&](const std::string& reason) {
    return Failure{fmt::format("{}: not a tokenizer: {}", source, reason)};
  };
  // The one object expected is flat.
  JsonLimits limits;
  limits.depth = 2;
  const Result<nlohmann::json> parsed = parse_json(json, limits);
  if (!parsed.ok()) return refuse(fmt::format("it is no JSON object: {}", parsed.error()));
  const nlohmann::json& object = parsed.value();
  if (!object.is_object()) return refuse("it is no JSON object");
  const auto text = [&](const char* key) -> const std::string* {
    const auto entry = object.find(key);
    return entry == object.end() ? nullptr : entry->get_ptr<const std::string*>();
  };
  const std::string* format = text("format");
  if (format == nullptr || *format != kind)
    return refuse(fmt::format("\"format\" is not \"{}\"", kind));
  const auto version = object.find("version");
  if (version == object.end() || !version->is_number_integer())
    return refuse("\"version\" is missing");
  if (*version != kVersion)
    return refuse(fmt::format("version {} is not known; {} is", json_excerpt(*version), kVersion));
  const std::string* characters = text("characters");
  if (characters == nullptr || characters->empty()) return refuse("\"characters\" is missing");

  std::vector<char32_t> vocabulary;
  bool ascending = true;
  const size_t valid = decode_utf8(*characters, [&](char32_t character) {
    ascending = ascending && (vocabulary.empty() || vocabulary.back() < character);
    vocabulary.push_back(character);
  });
  if (valid < characters->size()) return refuse("\"characters\" is not UTF-8");
  if (!ascending) return refuse("\"characters\" is not in code-point order, each once");
  return vocabulary;
}

}  // namespace fullbore
