#include "fullbore/data/bpe_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/data/bpe_parts.h"
#include "fullbore/data/bpe_pipeline.h"
#include "fullbore/data/byte_characters.h"
#include "fullbore/data/json_reader.h"
#include "fullbore/data/tokenizer_json.h"

namespace fullbore {
namespace {

using namespace hugging_face_json;

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
    if (Status s = expect(members.value(), path, "single_word", {"false", "null"}); !s.ok())
      return s;
    const auto flag = [&](const char* key, bool& value) {
      value = value_of(members.value(), key) == "true";
      return expect(members.value(), path, key, {"false", "true", "null"});
    };
    SpecialToken token;
    if (Status s = flag("lstrip", token.strips_left); !s.ok()) return s;
    if (Status s = flag("rstrip", token.strips_right); !s.ok()) return s;
    if (Status s = flag("normalized", token.normalized); !s.ok()) return s;
    if (Status s = flag("special", token.is_control); !s.ok()) return s;
    int64_t id = 0;
    std::string& text = token.text;
    JsonReader(value_of(members.value(), "content")).read_string(text);
    JsonReader number(value_of(members.value(), "id"));
    if (text.empty() || !number.read_integer(id) || id < 0 || id > INT32_MAX)
      return Failure{path + "content and id: a text and a number were expected"};
    token.id = static_cast<int32_t>(id);
    parts.added.push_back(std::move(token));
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
  BpeParts parts;
  if (const Status s =
          read_bpe_pipeline(top.value(), model.value(), parts.settings, parts.beginning);
      !s.ok())
    return Failure{s.error()};
  const std::string_view added = value_of(top.value(), "added_tokens");
  if (const Status s = read_added_tokens(added, parts); !s.ok()) return Failure{s.error()};
  const std::string_view vocabulary = value_of(model.value(), "vocab");
  if (const Status s = read_vocabulary(vocabulary, parts); !s.ok()) return Failure{s.error()};
  const std::string_view merges = value_of(model.value(), "merges");
  if (const Status s = read_merges(merges, parts); !s.ok()) return Failure{s.error()};
  return assemble_bpe(parts);
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
    json += fmt::format(
        R"(,"single_word":false,"lstrip":{},"rstrip":{},"normalized":{},"special":{}}})",
        token->strips_left, token->strips_right, token->normalized, token->is_control);
  }
  json += "]," + bpe_pipeline_json(vocabulary) +
          R"("model":{"type":"BPE","dropout":null,"unk_token":null,)"
          R"("continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,)" +
          fmt::format(R"("byte_fallback":false,"ignore_merges":{},"vocab":{{)",
                      vocabulary.settings.ignore_merges);
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
