#include "fullbore/data/word_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fullbore/data/json_reader.h"
#include "fullbore/data/utf8.h"

namespace fullbore {
namespace {

constexpr std::string_view kSpaces = " \t\r\n\v\f";
constexpr int64_t kVersion = 1;
constexpr size_t kMostWords = size_t{1} << 20;

const std::vector<SpecialToken>& special() {
  static const std::vector<SpecialToken> tokens = {
      {"<pad>", 0}, {"<unk>", WordTokenizer::kUnknown}, {"<bos>", 2}, {"<eos>", 3}};
  return tokens;
}

}  // namespace

Result<WordTokenizer> WordTokenizer::create(std::vector<std::string> words) {
  if (words.empty()) return Failure{"there are no words"};
  if (words.size() > kMostWords) return Failure{fmt::format("more than {} words", kMostWords)};
  WordTokenizer tokenizer(std::move(words));
  for (const std::string& word : tokenizer.words_) {
    const auto id = static_cast<int32_t>(kFirstWord + std::ssize(tokenizer.ids_));
    if (word.empty()) return Failure{fmt::format("word {} is empty", id - kFirstWord)};
    if (decode_utf8(word, [](char32_t) {}) < word.size())
      return Failure{fmt::format("word {} is no UTF-8", id - kFirstWord)};
    if (word.find_first_of(kSpaces) != std::string::npos)
      return Failure{fmt::format("word {} has white space in it", id - kFirstWord)};
    const bool taken = std::ranges::any_of(
        special(), [&](const SpecialToken& token) { return token.text == word; });
    if (taken || !tokenizer.ids_.try_emplace(word, id).second)
      return Failure{
          fmt::format("word {}, '{}', is there already", id - kFirstWord, word.substr(0, 60))};
  }
  return tokenizer;
}

const std::vector<SpecialToken>& WordTokenizer::special_tokens() const { return special(); }

size_t WordTokenizer::append_tokens(std::string_view text, std::vector<int32_t>& ids) const {
  for (size_t at = text.find_first_not_of(kSpaces); at != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kSpaces, at), text.size());
    const auto found = ids_.find(std::string(text.substr(at, end - at)));
    ids.push_back(found == ids_.end() ? kUnknown : found->second);
    at = text.find_first_not_of(kSpaces, end);
  }
  return text.size();
}

void WordTokenizer::append_bytes(int32_t id, std::string& bytes) const {
  bytes += ' ';
  bytes += id < kFirstWord ? special()[static_cast<size_t>(id)].text
                           : words_[static_cast<size_t>(id - kFirstWord)];
}

size_t WordTokenizer::last_cut(std::string_view text) const {
  const size_t space = text.find_last_of(kSpaces);
  return space == std::string_view::npos ? 0 : space;
}

std::string WordTokenizer::to_json() const {
  return nlohmann::ordered_json{{"format", kFormat}, {"version", kVersion}, {"words", words_}}
      .dump();
}

Result<WordTokenizer> WordTokenizer::from_json(std::string_view json, const std::string& source) {
  const auto refuse = [&](std::string_view reason) {
    return Failure{fmt::format("{}: not a tokenizer: {}", source, reason)};
  };
  std::vector<std::string> words;
  JsonReader reader(json);
  std::string key;
  int64_t version = -1;
  reader.begin_object();
  while (reader.next_key(key)) {
    if (key == "version") {
      reader.read_integer(version);
    } else if (key == "words") {
      words.clear();
      reader.begin_array();
      while (words.size() <= kMostWords && reader.next_element())
        reader.read_string(words.emplace_back());
      if (words.size() > kMostWords) return refuse(fmt::format("more than {} words", kMostWords));
    } else {
      reader.skip();
    }
  }
  if (!reader.finish()) return refuse(reader.error());
  if (version != kVersion)
    return refuse(fmt::format("version {} is not known; {} is", version, kVersion));
  Result<WordTokenizer> tokenizer = create(std::move(words));
  if (!tokenizer) return refuse(tokenizer.error());
  return tokenizer;
}

}  // namespace fullbore
