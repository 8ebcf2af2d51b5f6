#include "fullbore/data/tokenizer.h"

#include <fmt/format.h>

#include <filesystem>

#include "fullbore/base/files.h"
#include "fullbore/base/hash.h"
#include "fullbore/data/bpe_files.h"
#include "fullbore/data/byte_tokenizer.h"
#include "fullbore/data/character_tokenizer.h"
#include "fullbore/data/json_reader.h"
#include "fullbore/data/number_tokenizer.h"
#include "fullbore/data/recorded_tokenizer.h"
#include "fullbore/data/text_file.h"
#include "fullbore/data/utf8.h"
#include "fullbore/data/word_piece_tokenizer.h"
#include "fullbore/data/word_tokenizer.h"

namespace fullbore {
namespace {

/// The vocabularies of today have a few hundred thousand tokens: 20 MB.
constexpr uint64_t kMostBytes = uint64_t{64} << 20;

/// Where the first special token at or after `from` begins and which it is: the longest there.
struct SpecialPlace {
  size_t at = std::string_view::npos;
  const SpecialToken* token = nullptr;
};

SpecialPlace find_special(std::string_view text, size_t from,
                          const std::vector<SpecialToken>& all) {
  SpecialPlace first;
  for (const SpecialToken& token : all) {
    const size_t at = text.find(token.text, from);
    const bool better = at < first.at || (at != std::string_view::npos && at == first.at &&
                                          token.text.size() > first.token->text.size());
    if (better) first = {at, &token};
  }
  return first;
}

size_t count_characters(std::string_view text) {
  size_t count = 0;
  decode_utf8(text, [&](char32_t) { ++count; });
  return count;
}

Failure unknown_character(std::string_view text, size_t at, int64_t vocabulary) {
  char32_t unknown = 0;
  bool first = true;
  decode_utf8(text.substr(at, 4), [&](char32_t character) {
    if (first) unknown = character;
    first = false;
  });
  return {
      fmt::format("character {} at offset {} is not among the {} characters of the training text",
                  character_text(unknown), count_characters(text.substr(0, at)), vocabulary)};
}

/// The value of the top-level key "format" as a text, "" if there is none.
std::string format_of(std::string_view json) {
  JsonReader reader(json);
  std::string key;
  std::string format;
  if (!reader.begin_object()) return "";
  while (reader.next_key(key)) {
    if (key == "format" && reader.peek() == JsonKind::kString) {
      reader.read_string(format);
      return format;
    }
    reader.skip();
  }
  return "";
}

template <class Kind>
Result<std::shared_ptr<const Tokenizer>> share(Result<Kind> result) {
  if (!result.ok()) return Failure{result.error()};
  return std::shared_ptr<const Tokenizer>(std::make_shared<const Kind>(std::move(result).value()));
}

}  // namespace

const std::vector<SpecialToken>& Tokenizer::special_tokens() const {
  static const std::vector<SpecialToken> none;
  return none;
}

int32_t Tokenizer::special_token(std::string_view text) const {
  for (const SpecialToken& token : special_tokens())
    if (token.text == text) return token.id;
  return -1;
}

int32_t Tokenizer::end_of_document() const {
  for (const char* name : {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"})
    if (const int32_t id = special_token(name); id >= 0) return id;
  return -1;
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text, SpecialTokens special) const {
  const size_t valid = decode_utf8(text, [](char32_t) {});
  if (valid < text.size())
    return Failure{
        fmt::format("not UTF-8 text: {} (byte {})", describe_utf8_error(text, valid), valid)};
  std::vector<int32_t> ids;
  const size_t taken = special == SpecialTokens::kRecognised ? append_recognised(text, ids)
                                                             : append_tokens(text, ids);
  if (taken < text.size()) return unknown_character(text, taken, vocabulary_size());
  return ids;
}

size_t Tokenizer::append_recognised(std::string_view text, std::vector<int32_t>& ids) const {
  size_t at = 0;
  while (at < text.size()) {
    const SpecialPlace next = find_special(text, at, special_tokens());
    const std::string_view ordinary = text.substr(at, next.at - at);
    const size_t taken = append_tokens(ordinary, ids);
    if (taken < ordinary.size()) return at + taken;
    if (next.token == nullptr) break;
    ids.push_back(next.token->id);
    at = next.at + next.token->text.size();
  }
  return text.size();
}

Result<std::string> Tokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocabulary_size())
      return Failure{fmt::format("token {} at position {} is outside the vocabulary [0, {})",
                                 ids[i], i, vocabulary_size())};
    append_bytes(ids[i], text);
  }
  return text;
}

uint64_t Tokenizer::hash() const { return hash_text(to_json()); }

Result<std::shared_ptr<const Tokenizer>> parse_tokenizer(std::string_view json,
                                                         const std::string& source) {
  const std::string format = format_of(json);
  if (format == CharacterTokenizer::kFormat)
    return share(CharacterTokenizer::from_json(json, source));
  if (format == ByteTokenizer::kFormat) return share(ByteTokenizer::from_json(json, source));
  if (format == RecordedTokenizer::kFormat)
    return share(RecordedTokenizer::from_json(json, source));
  if (format == NumberTokenizer::kFormat) return share(NumberTokenizer::from_json(json, source));
  if (format == WordPieceTokenizer::kFormat)
    return share(WordPieceTokenizer::from_json(json, source));
  if (format == WordTokenizer::kFormat) return share(WordTokenizer::from_json(json, source));
  if (!format.empty())
    return Failure{fmt::format(
        "{}: not a tokenizer: \"format\" is \"{}\"; {}, {}, {}, {}, {} and {} are known", source,
        format.substr(0, 80), CharacterTokenizer::kFormat, ByteTokenizer::kFormat,
        RecordedTokenizer::kFormat, NumberTokenizer::kFormat, WordPieceTokenizer::kFormat,
        WordTokenizer::kFormat)};
  if (is_word_piece_json(json)) return share(parse_word_piece_json(json, source));
  Result<std::shared_ptr<const BpeTokenizer>> bpe = parse_tokenizer_json(json, source);
  if (!bpe.ok()) return Failure{bpe.error()};
  return std::shared_ptr<const Tokenizer>(std::move(bpe).value());
}

Result<std::shared_ptr<const Tokenizer>> load_tokenizer(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::string file = path;
  if (fs::is_directory(path, error)) {
    file = path + "/tokenizer.json";
    if (!fs::exists(file, error)) {
      if (!fs::exists(path + "/vocab.json", error)) {
        if (fs::exists(path + "/vocab.txt", error)) return load_tokenizer(path + "/vocab.txt");
        return Failure{
            fmt::format("{} holds no tokenizer: tokenizer.json, vocab.json and merges.txt, or "
                        "vocab.txt was expected",
                        path)};
      }
      const Result<std::string> vocabulary = read_text(path + "/vocab.json", kMostBytes);
      if (!vocabulary.ok()) return Failure{vocabulary.error()};
      const Result<std::string> merges = read_text(path + "/merges.txt", kMostBytes);
      if (!merges.ok()) return Failure{merges.error()};
      Result<std::shared_ptr<const BpeTokenizer>> bpe =
          parse_vocabulary_and_merges(vocabulary.value(), merges.value(), path);
      if (!bpe.ok()) return Failure{bpe.error()};
      return std::shared_ptr<const Tokenizer>(std::move(bpe).value());
    }
  }
  const Result<std::string> text = read_text(file, kMostBytes);
  if (!text.ok()) return Failure{text.error()};
  if (fs::path(file).filename() == "vocab.txt")  // of BERT, uncased
    return share(parse_word_piece_vocabulary(text.value(), {}, file));
  return parse_tokenizer(text.value(), file);
}

Status save_tokenizer(const Tokenizer& tokenizer, const std::string& path) {
  return write_file_atomically(path, tokenizer.to_json() + "\n");
}

}  // namespace fullbore
