#include "fullbore/data/word_piece_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/base/json.h"
#include "fullbore/data/json_reader.h"
#include "fullbore/data/utf8.h"

namespace fullbore {
namespace {

constexpr std::string_view kContinuation = "##";
constexpr int64_t kVersion = 1;

bool is_utf8(std::string_view text) {
  return decode_utf8(text, [](char32_t) {}) == text.size();
}

bool is_special(std::string_view piece) {
  return piece.size() > 2 && piece.front() == '[' && piece.back() == ']' &&
         std::all_of(piece.begin() + 1, piece.end() - 1,
                     [](char c) { return c >= 'A' && c <= 'Z'; });
}

}  // namespace

Result<WordPieceTokenizer> WordPieceTokenizer::create(WordPieceVocabulary vocabulary) {
  if (vocabulary.pieces.size() > size_t{INT32_MAX})
    return Failure{fmt::format("{} pieces", vocabulary.pieces.size())};
  for (size_t i = 0; i < vocabulary.pieces.size(); ++i) {
    const std::string& piece = vocabulary.pieces[i];
    if (piece.empty()) return Failure{fmt::format("piece {} is empty", i)};
    if (!is_utf8(piece)) return Failure{fmt::format("piece {} is no UTF-8", i)};
  }
  WordPieceTokenizer tokenizer(std::move(vocabulary));
  const WordPieceVocabulary& own = tokenizer.vocabulary_;
  for (size_t i = 0; i < own.pieces.size(); ++i)
    if (const int32_t id = tokenizer.id(own.pieces[i]); id != static_cast<int32_t>(i))
      return Failure{
          fmt::format("pieces {} and {} are both '{}'", id, i, own.pieces[i].substr(0, 60))};
  tokenizer.unknown_ = tokenizer.id(own.unknown);
  if (tokenizer.unknown_ < 0)
    return Failure{fmt::format("there is no piece '{}' for words that are unknown",
                               own.unknown.substr(0, 60))};
  return tokenizer;
}

WordPieceTokenizer::WordPieceTokenizer(WordPieceVocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)) {
  for (size_t i = 0; i < vocabulary_.pieces.size(); ++i) {
    const std::string& piece = vocabulary_.pieces[i];
    const auto id = static_cast<int32_t>(i);
    if (piece.starts_with(kContinuation) && piece.size() > kContinuation.size())
      continues_.try_emplace(piece.substr(kContinuation.size()), id);
    else
      begins_.try_emplace(piece, id);
    if (is_special(piece)) special_.push_back({piece, id});
  }
}

int32_t WordPieceTokenizer::id(std::string_view piece) const {
  const bool continues = piece.starts_with(kContinuation) && piece.size() > kContinuation.size();
  const Ids& ids = continues ? continues_ : begins_;
  const auto found = ids.find(continues ? piece.substr(kContinuation.size()) : piece);
  return found == ids.end() ? -1 : found->second;
}

size_t WordPieceTokenizer::append_tokens(std::string_view text, std::vector<int32_t>& ids) const {
  for_each_bert_word(text, vocabulary_.normalization,
                     [&](std::string_view word) { append_word(word, ids); });
  return text.size();
}

void WordPieceTokenizer::append_word(std::string_view word, std::vector<int32_t>& ids) const {
  const size_t before = ids.size();
  size_t characters = 0;
  decode_utf8(word, [&](char32_t) { ++characters; });
  if (characters > kMostWordCharacters) {
    ids.push_back(unknown_);
    return;
  }
  while (!word.empty()) {
    const Ids& candidates = ids.size() == before ? begins_ : continues_;
    size_t length = word.size();
    Ids::const_iterator found = candidates.end();
    while (length > 0 && (found = candidates.find(word.substr(0, length))) == candidates.end())
      --length;  // a piece is UTF-8, so none ends within a character
    if (length == 0) {
      ids.resize(before);
      ids.push_back(unknown_);
      return;
    }
    ids.push_back(found->second);
    word.remove_prefix(length);
  }
}

void WordPieceTokenizer::append_bytes(int32_t id, std::string& bytes) const {
  std::string_view piece = vocabulary_.pieces[static_cast<size_t>(id)];
  if (piece.starts_with(kContinuation) && piece.size() > kContinuation.size())
    piece.remove_prefix(kContinuation.size());
  else
    bytes += ' ';
  bytes += piece;
}

size_t WordPieceTokenizer::last_cut(std::string_view text) const {
  const size_t space = text.find_last_of(" \n");
  return space == std::string_view::npos ? 0 : space;
}

std::string WordPieceTokenizer::to_json() const {
  return nlohmann::ordered_json{{"format", kFormat},
                                {"version", kVersion},
                                {"lowercase", vocabulary_.normalization.lowercase},
                                {"strip_accents", vocabulary_.normalization.strip_accents},
                                {"unknown", vocabulary_.unknown},
                                {"pieces", vocabulary_.pieces}}
      .dump();
}

Result<WordPieceTokenizer> WordPieceTokenizer::from_json(std::string_view json,
                                                         const std::string& source) {
  const auto refuse = [&](std::string_view reason) {
    return Failure{fmt::format("{}: not a tokenizer: {}", source, reason)};
  };
  WordPieceVocabulary vocabulary;
  JsonReader reader(json);
  std::string key;
  int64_t version = -1;
  reader.begin_object();
  while (reader.next_key(key)) {
    if (key == "version") {
      reader.read_integer(version);
    } else if (key == "lowercase") {
      reader.read_boolean(vocabulary.normalization.lowercase);
    } else if (key == "strip_accents") {
      reader.read_boolean(vocabulary.normalization.strip_accents);
    } else if (key == "unknown") {
      reader.read_string(vocabulary.unknown);
    } else if (key == "pieces") {
      vocabulary.pieces.clear();
      reader.begin_array();
      while (reader.next_element()) reader.read_string(vocabulary.pieces.emplace_back());
    } else {
      reader.skip();
    }
  }
  if (!reader.finish()) return refuse(reader.error());
  if (version != kVersion)
    return refuse(fmt::format("version {} is not known; {} is", version, kVersion));
  Result<WordPieceTokenizer> tokenizer = create(std::move(vocabulary));
  if (!tokenizer) return refuse(tokenizer.error());
  return tokenizer;
}

Result<WordPieceTokenizer> parse_word_piece_vocabulary(std::string_view text,
                                                       const BertNormalization& normalization,
                                                       const std::string& source) {
  WordPieceVocabulary vocabulary;
  vocabulary.normalization = normalization;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    vocabulary.pieces.emplace_back(line);
  }
  Result<WordPieceTokenizer> tokenizer = WordPieceTokenizer::create(std::move(vocabulary));
  if (!tokenizer) return Failure{fmt::format("{}: not a tokenizer: {}", source, tokenizer.error())};
  return tokenizer;
}

}  // namespace fullbore
