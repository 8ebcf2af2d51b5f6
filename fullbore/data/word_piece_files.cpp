#include <fmt/format.h>

#include <algorithm>

#include "fullbore/data/json_reader.h"
#include "fullbore/data/tokenizer_json.h"
#include "fullbore/data/word_piece_tokenizer.h"

namespace fullbore {
namespace {

using namespace hugging_face_json;

Result<bool> read_switch(const Members& members, const std::string& path, std::string_view key) {
  if (const Status s = expect(members, path, key, {"true", "false"}); !s) return Failure{s.error()};
  return value_of(members, key) == "true";
}

Result<BertNormalization> read_normalizer(std::string_view json) {
  const Result<Members> members = members_of(json);
  if (!members) return Failure{"normalizer is not an object"};
  const std::string path = "normalizer.";
  if (const Status s = expect(members.value(), path, "type", {"\"BertNormalizer\""}); !s)
    return Failure{s.error()};
  for (const char* key : {"clean_text", "handle_chinese_chars"})
    if (const Status s = expect(members.value(), path, key, {"true"}); !s)
      return Failure{s.error()};
  BertNormalization normalization;
  const Result<bool> lowercase = read_switch(members.value(), path, "lowercase");
  if (!lowercase) return Failure{lowercase.error()};
  normalization.lowercase = normalization.strip_accents = lowercase.value();
  if (value_of(members.value(), "strip_accents") != "null") {
    const Result<bool> strip = read_switch(members.value(), path, "strip_accents");
    if (!strip) return Failure{strip.error()};
    normalization.strip_accents = strip.value();
  }
  return normalization;
}

Status read_pieces(std::string_view json, std::vector<std::string>& pieces) {
  std::vector<std::pair<int64_t, std::string>> entries;
  JsonReader reader(json);
  std::string piece;
  int64_t id = 0;
  reader.begin_object();
  while (reader.next_key(piece))
    if (reader.read_integer(id)) entries.emplace_back(id, piece);
  if (!reader.finish()) return Failure{"model.vocab: " + reader.error()};
  std::ranges::sort(entries);
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].first != static_cast<int64_t>(i))
      return Failure{
          fmt::format("model.vocab: id {} was expected, {} is next", i, entries[i].first)};
    pieces.push_back(std::move(entries[i].second));
  }
  return success();
}

/// Added tokens are pieces as well, as BERT's are.
Status check_added_tokens(std::string_view json, const std::vector<std::string>& pieces) {
  if (json == "null") return success();
  JsonReader reader(json);
  std::string_view element;
  reader.begin_array();
  for (int i = 0; reader.next_element() && reader.skip(element); ++i) {
    const Result<Members> members = members_of(element);
    int64_t id = -1;
    std::string text;
    if (members) {
      JsonReader(value_of(members.value(), "content")).read_string(text);
      JsonReader(value_of(members.value(), "id")).read_integer(id);
    }
    if (id < 0 || id >= std::ssize(pieces) || pieces[static_cast<size_t>(id)] != text)
      return Failure{
          fmt::format("added_tokens[{}] is no piece of model.vocab, which is not supported", i)};
  }
  if (!reader.finish()) return Failure{"added_tokens: " + reader.error()};
  return success();
}

Result<WordPieceTokenizer> parse(std::string_view json) {
  const Result<Members> top = members_of(json);
  if (!top) return Failure{top.error()};
  const Result<Members> model = members_of(value_of(top.value(), "model"));
  if (!model) return Failure{"model is not an object"};
  for (const char* key : {"truncation", "padding"})
    if (const Status s = expect(top.value(), "", key, {"null"}); !s) return Failure{s.error()};
  const Result<Members> splits = members_of(value_of(top.value(), "pre_tokenizer"));
  if (!splits) return Failure{"pre_tokenizer is not an object"};
  if (const Status s = expect(splits.value(), "pre_tokenizer.", "type", {"\"BertPreTokenizer\""});
      !s)
    return Failure{s.error()};
  const std::string path = "model.";
  if (const Status s = expect(model.value(), path, "continuing_subword_prefix", {"\"##\""}); !s)
    return Failure{s.error()};
  if (const Status s = expect(model.value(), path, "max_input_chars_per_word", {"100"}); !s)
    return Failure{s.error()};
  WordPieceVocabulary vocabulary;
  Result<BertNormalization> normalization = read_normalizer(value_of(top.value(), "normalizer"));
  if (!normalization) return Failure{normalization.error()};
  vocabulary.normalization = normalization.value();
  JsonReader unknown(value_of(model.value(), "unk_token"));
  if (!unknown.read_string(vocabulary.unknown)) return Failure{"model.unk_token is no text"};
  if (const Status s = read_pieces(value_of(model.value(), "vocab"), vocabulary.pieces); !s)
    return Failure{s.error()};
  if (const Status s = check_added_tokens(value_of(top.value(), "added_tokens"), vocabulary.pieces);
      !s)
    return Failure{s.error()};
  return WordPieceTokenizer::create(std::move(vocabulary));
}

}  // namespace

bool is_word_piece_json(std::string_view json) {
  const Result<Members> top = members_of(json);
  if (!top) return false;
  const Result<Members> model = members_of(value_of(top.value(), "model"));
  return model && value_of(model.value(), "type") == "\"WordPiece\"";
}

Result<WordPieceTokenizer> parse_word_piece_json(std::string_view json, const std::string& source) {
  Result<WordPieceTokenizer> tokenizer = parse(json);
  if (!tokenizer) return Failure{fmt::format("{}: not a tokenizer: {}", source, tokenizer.error())};
  return tokenizer;
}

}  // namespace fullbore
