#include "fullbore/data/character_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "fullbore/base/files.h"
#include "fullbore/base/hash.h"
#include "fullbore/data/text_file.h"
#include "fullbore/data/utf8.h"

namespace fullbore {
namespace {

constexpr const char* kFormat = "fullbore.character_tokenizer";
constexpr int kVersion = 1;
/// All of Unicode as one JSON string is below 5 MB; more is not a tokenizer.
constexpr uint64_t kMostBytes = uint64_t{16} << 20;

}  // namespace

CharacterTokenizer::CharacterTokenizer(std::vector<char32_t> vocabulary)
    : vocabulary_(std::move(vocabulary)) {
  FB_CHECK(!vocabulary_.empty() && std::adjacent_find(vocabulary_.begin(), vocabulary_.end(),
                                                      std::greater_equal<>()) == vocabulary_.end(),
           "vocabulary of {} characters is not strictly ascending", vocabulary_.size());
  ids_.assign(size_t{vocabulary_.back()} + 1, -1);
  for (size_t i = 0; i < vocabulary_.size(); ++i) ids_[vocabulary_[i]] = static_cast<int32_t>(i);
}

Result<std::vector<int32_t>> CharacterTokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size());
  char32_t unknown = 0;
  size_t unknown_index = text.size();  // index in characters; text.size(): none so far
  const size_t valid = decode_utf8(text, [&](char32_t character) {
    ids.push_back(id(character));
    if (ids.back() < 0 && unknown_index == text.size()) {
      unknown = character;
      unknown_index = ids.size() - 1;
    }
  });
  if (unknown_index != text.size())
    return Failure{
        fmt::format("character {} at offset {} is not among the {} characters of the training text",
                    character_text(unknown), unknown_index, vocabulary_size())};
  if (valid < text.size())
    return Failure{
        fmt::format("not UTF-8 text: {} (byte {})", describe_utf8_error(text, valid), valid)};
  return ids;
}

Result<std::string> CharacterTokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  text.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocabulary_size())
      return Failure{fmt::format("token {} at position {} is outside the vocabulary [0, {})",
                                 ids[i], i, vocabulary_size())};
    append_utf8(text, vocabulary_[static_cast<size_t>(ids[i])]);
  }
  return text;
}

std::string CharacterTokenizer::to_json() const {
  std::string characters;
  for (const char32_t character : vocabulary_) append_utf8(characters, character);
  const nlohmann::json json = {
      {"format", kFormat}, {"version", kVersion}, {"characters", characters}};
  return json.dump();
}

Result<CharacterTokenizer> CharacterTokenizer::from_json(std::string_view json,
                                                         const std::string& source) {
  const auto refuse = [&](const std::string& reason) {
    return Failure{fmt::format("{}: not a tokenizer: {}", source, reason)};
  };
  // The one object expected is flat: a bound on the depth keeps hostile nesting from being built.
  const auto shallow = [](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    return depth <= 1;
  };
  const nlohmann::json object = nlohmann::json::parse(json, shallow, /*allow_exceptions=*/false);
  if (object.is_discarded() || !object.is_object()) return refuse("it is no JSON object");
  const auto text = [&](const char* key) -> const std::string* {
    const auto entry = object.find(key);
    return entry == object.end() ? nullptr : entry->get_ptr<const std::string*>();
  };
  const std::string* format = text("format");
  if (format == nullptr || *format != kFormat)
    return refuse(fmt::format("\"format\" is not \"{}\"", kFormat));
  const auto version = object.find("version");
  if (version == object.end() || !version->is_number_integer())
    return refuse("\"version\" is missing");
  if (*version != kVersion)
    return refuse(fmt::format("version {} is not known; {} is", version->dump(), kVersion));
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
  return CharacterTokenizer(std::move(vocabulary));
}

Status CharacterTokenizer::save(const std::string& path) const {
  return write_file_atomically(path, to_json() + "\n");
}

Result<CharacterTokenizer> CharacterTokenizer::load(const std::string& path) {
  const Result<std::string> json = read_text(path, kMostBytes);
  if (!json.ok()) return Failure{json.error()};
  return from_json(json.value(), path);
}

uint64_t CharacterTokenizer::hash() const {
  return hash_bytes(vocabulary_.data(), vocabulary_.size() * sizeof(char32_t));
}

}  // namespace fullbore
