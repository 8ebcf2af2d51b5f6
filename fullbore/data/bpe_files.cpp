#include "fullbore/data/bpe_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/data/bpe_parts.h"
#include "fullbore/data/byte_characters.h"
#include "fullbore/data/json_reader.h"
#include "fullbore/data/tokenizer_json.h"

namespace fullbore {
namespace {

using namespace hugging_face_json;

/// A component of the pipeline: null, or an object of type ByteLevel.
Status expect_byte_level(const Members& members, std::string_view key, bool required) {
  const std::string_view value = value_of(members, key);
  const std::string path = fmt::format("{}.", key);
  if (value == "null" && !required) return success();
  const Result<Members> parts = members_of(value);
  if (!parts.ok()) return Failure{fmt::format("{} is not an object", key)};
  if (Status s = expect(parts.value(), path, "type", {"\"ByteLevel\""}); !s.ok()) return s;
  if (!required) return success();  // only the pre-tokenizer decides what the tokens are
  if (Status s = expect(parts.value(), path, "add_prefix_space", {"false"}); !s.ok()) return s;
  return expect(parts.value(), path, "use_regex", {"true", "null"});
}

Status check_pipeline(const Members& top, const Members& model) {
  const std::string none;
  if (Status s = expect(top, none, "version", {"\"1.0\""}); !s.ok()) return s;
  for (const char* key : {"truncation", "padding", "normalizer"})
    if (Status s = expect(top, none, key, {"null"}); !s.ok()) return s;
  if (Status s = expect_byte_level(top, "pre_tokenizer", true); !s.ok()) return s;
  for (const char* key : {"post_processor", "decoder"})
    if (Status s = expect_byte_level(top, key, false); !s.ok()) return s;
  const std::string path = "model.";
  if (Status s = expect(model, path, "type", {"\"BPE\""}); !s.ok()) return s;
  if (Status s = expect(model, path, "dropout", {"null", "0.0", "0"}); !s.ok()) return s;
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (Status s = expect(model, path, key, {"null", "\"\""}); !s.ok()) return s;
  for (const char* key : {"byte_fallback", "ignore_merges"})
    if (Status s = expect(model, path, key, {"false", "null"}); !s.ok()) return s;
  return success();
}

Status read_vocabulary(std::string_view json, BpeParts& parts) {
  JsonReader reader(json);
  std::string token;
  int64_t id = 0;
  reader.begin_object();
  while (reader.next_key(token))
    if (reader.read_integer(id)) parts.vocabulary.emplace_back(token, id);
  if (!reader.finish()) return Failure{"vocabulary: " + reader.error()};
  return success();
}

/// "left right" as two texts; neither has a space, for a space is written otherwise.
bool split_merge(std::string_view text, BpeParts& parts) {
  const size_t space = text.find(' ');
  if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)
    return false;
  parts.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
  return true;
}

Status read_merges(std::string_view json, BpeParts& parts) {
  JsonReader reader(json);
  std::string first;
  std::string second;
  reader.begin_array();
  while (reader.next_element()) {
    if (reader.peek() == JsonKind::kString) {
      if (reader.read_string(first) && !split_merge(first, parts))
        return Failure{fmt::format("model.merges: merge {} is '{}'; two tokens were expected",
                                   parts.merges.size(), first.substr(0, 60))};
      continue;
    }
    const bool pair = reader.begin_array() && reader.next_element() && reader.read_string(first) &&
                      reader.next_element() && reader.read_string(second) &&
                      !reader.next_element() && !reader.failed();
    if (!pair)
      return Failure{
          fmt::format("model.merges: merge {} is no pair of texts", parts.merges.size())};
    parts.merges.emplace_back(first, second);
  }
  if (!reader.finish()) return Failure{"model.merges: " + reader.error()};
  return success();
}

Status read_added_tokens(std::string_view json, BpeParts& parts) {
  if (json == "null") return success();
  JsonReader reader(json);
  std::string_view element;
  reader.begin_array();
  while (reader.next_element()) {
    if (!reader.skip(element)) break;
    const std::string path = fmt::format("added_tokens[{}].", parts.added.size());
    const Result<Members> members = members_of(element);
    if (!members.ok()) return Failure{fmt::format("{} {}", path, members.error())};
    for (const char* key : {"single_word", "lstrip", "rstrip"})
      if (Status s = expect(members.value(), path, key, {"false", "null"}); !s.ok()) return s;
    int64_t id = 0;
    std::string text;
    JsonReader(value_of(members.value(), "content")).read_string(text);
    JsonReader number(value_of(members.value(), "id"));
    if (text.empty() || !number.read_integer(id) || id < 0 || id > INT32_MAX)
      return Failure{path + "content and id: a text and a number were expected"};
    parts.added.push_back({text, static_cast<int32_t>(id)});
  }
  if (!reader.finish()) return Failure{"added_tokens: " + reader.error()};
  return success();
}

Result<std::shared_ptr<const BpeTokenizer>> parse(std::string_view json) {
  const Result<Members> top = members_of(json);
  if (!top.ok()) return Failure{top.error()};
  const std::string_view model_json = value_of(top.value(), "model");
  const Result<Members> model = members_of(model_json);
  if (!model.ok())
    return Failure{"it has neither \"format\" nor \"model\", an object: no tokenizer.json"};
  if (const Status s = check_pipeline(top.value(), model.value()); !s.ok())
    return Failure{s.error()};
  BpeParts parts;
  const std::string_view added = value_of(top.value(), "added_tokens");
  if (const Status s = read_added_tokens(added, parts); !s.ok()) return Failure{s.error()};
  const std::string_view vocabulary = value_of(model.value(), "vocab");
  if (const Status s = read_vocabulary(vocabulary, parts); !s.ok()) return Failure{s.error()};
  const std::string_view merges = value_of(model.value(), "merges");
  if (const Status s = read_merges(merges, parts); !s.ok()) return Failure{s.error()};
  return assemble_bpe(parts);
}

void append_json_text(std::string& json, std::string_view text) {
  json += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\')
      json += fmt::format("\\{}", c);
    else if (static_cast<unsigned char>(c) < 0x20)
      json += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      json += c;
  }
  json += '"';
}

}  // namespace

Result<std::shared_ptr<const BpeTokenizer>> parse_tokenizer_json(std::string_view json,
                                                                 const std::string& source) {
  Result<std::shared_ptr<const BpeTokenizer>> result = parse(json);
  if (!result.ok()) return Failure{fmt::format("{}: not a tokenizer: {}", source, result.error())};
  return result;
}

Result<std::shared_ptr<const BpeTokenizer>> parse_vocabulary_and_merges(std::string_view vocabulary,
                                                                        std::string_view merges,
                                                                        const std::string& source) {
  BpeParts parts;
  parts.find_special_tokens = true;
  if (const Status s = read_vocabulary(vocabulary, parts); !s.ok())
    return Failure{fmt::format("{}/vocab.json: {}", source, s.error())};
  int line_number = 0;
  while (!merges.empty()) {
    const size_t end = std::min(merges.find('\n'), merges.size());
    std::string_view line = merges.substr(0, end);
    merges.remove_prefix(std::min(end + 1, merges.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    ++line_number;
    if (line.empty() || (line_number == 1 && line.starts_with("#version"))) continue;
    if (!split_merge(line, parts))
      return Failure{fmt::format("{}/merges.txt:{}: '{}'; two tokens and a space were expected",
                                 source, line_number, line.substr(0, 60))};
  }
  Result<std::shared_ptr<const BpeTokenizer>> result = assemble_bpe(parts);
  if (!result.ok()) return Failure{fmt::format("{}: not a tokenizer: {}", source, result.error())};
  return result;
}

std::string tokenizer_json(const BpeVocabulary& vocabulary) {
  std::string json = R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)";
  std::map<int32_t, const SpecialToken*> special;
  for (const SpecialToken& token : vocabulary.special_tokens) special[token.id] = &token;
  for (const auto& [id, token] : special) {
    if (id != special.begin()->first) json += ',';
    json += fmt::format(R"({{"id":{},"content":)", id);
    append_json_text(json, token->text);
    json +=
        R"(,"single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true})";
  }
  json +=
      R"(],"normalizer":null,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,)"
      R"("trim_offsets":true,"use_regex":true},"post_processor":null,"decoder":{"type":)"
      R"("ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},"model":{)"
      R"("type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,)"
      R"("end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,"ignore_merges":false,)"
      R"("vocab":{)";
  const auto token_text = [&](int32_t id) {
    const auto entry = special.find(id);
    const std::string& bytes = vocabulary.tokens[static_cast<size_t>(id)];
    return entry == special.end() ? to_byte_characters(bytes) : entry->second->text;
  };
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (id > 0) json += ',';
    append_json_text(json, token_text(static_cast<int32_t>(id)));
    json += fmt::format(":{}", id);
  }
  // A token that is also special stands in merges by its bytes: its text may hold a space.
  const auto merge_text = [&](int32_t id) {
    return to_byte_characters(vocabulary.tokens[static_cast<size_t>(id)]);
  };
  json += R"(},"merges":[)";
  for (size_t i = 0; i < vocabulary.merges.size(); ++i) {
    if (i > 0) json += ',';
    append_json_text(
        json, merge_text(vocabulary.merges[i].left) + " " + merge_text(vocabulary.merges[i].right));
  }
  return json + "]}}";
}

}  // namespace fullbore
