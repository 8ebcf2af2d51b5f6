#include "fullbore/data/bpe_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "fullbore/data/json_reader.h"

namespace fullbore {
namespace {

using namespace hugging_face_json;

constexpr size_t kMostSteps = 8;  // in a Sequence; those of today have two

/// A component as it stands: where, and its members.
struct Step {
  std::string path;
  Members members;

  std::string_view type() const { return value_of(members, "type"); }
  Status expects(std::string_view key, std::initializer_list<std::string_view> accepted) const {
    return expect(members, path, key, accepted);
  }
};

Failure unsupported(const Step& step, std::string_view key) {
  return {fmt::format("{}{} is {}, which is not supported", step.path, key,
                      value_of(step.members, key).substr(0, 200))};
}

/// The values of a list.
Result<std::vector<std::string_view>> elements_of(std::string_view json) {
  JsonReader reader(json);
  std::vector<std::string_view> elements;
  std::string_view element;
  reader.begin_array();
  while (reader.next_element())
    if (reader.skip(element)) elements.push_back(element);
  if (!reader.finish()) return Failure{reader.error()};
  return elements;
}

/// The component at `key`: none for null, else itself, or what is in a Sequence of it.
Result<std::vector<Step>> steps_of(const Members& top, const std::string& key,
                                   std::string_view list) {
  const std::string_view value = value_of(top, key);
  std::vector<Step> steps;
  if (value == "null") return steps;
  Result<Members> members = members_of(value);
  if (!members.ok()) return Failure{fmt::format("{} is not an object", key)};
  Step whole{key + ".", std::move(members).value()};
  if (whole.type() != "\"Sequence\"") {
    steps.push_back(std::move(whole));
    return steps;
  }
  const Result<std::vector<std::string_view>> elements = elements_of(value_of(whole.members, list));
  if (!elements.ok()) return Failure{fmt::format("{}.{}: {}", key, list, elements.error())};
  if (elements.value().size() > kMostSteps)
    return Failure{fmt::format("{}.{} has {} steps; {} at most were expected", key, list,
                               elements.value().size(), kMostSteps)};
  for (const std::string_view element : elements.value()) {
    const std::string path = fmt::format("{}.{}[{}]", key, list, steps.size());
    Result<Members> parts = members_of(element);
    if (!parts.ok()) return Failure{fmt::format("{} is not an object", path)};
    steps.push_back({path + ".", std::move(parts).value()});
  }
  return steps;
}

Status read_normalizer(const Members& top, BpeSettings& settings) {
  const Result<std::vector<Step>> steps = steps_of(top, "normalizer", "normalizers");
  if (!steps.ok()) return Failure{steps.error()};
  for (const Step& step : steps.value()) {
    if (Status s = step.expects("type", {"\"NFC\""}); !s.ok()) return s;
    settings.composes = true;
  }
  return success();
}

/// The split by the expression of a step of type Split.
Result<WordSplit> split_of(const Step& step) {
  if (const Status s = step.expects("behavior", {"\"Isolated\""}); !s.ok())
    return Failure{s.error()};
  if (const Status s = step.expects("invert", {"false", "null"}); !s.ok())
    return Failure{s.error()};
  const Result<Members> pattern = members_of(value_of(step.members, "pattern"));
  std::string expression;
  if (pattern.ok()) JsonReader(value_of(pattern.value(), "Regex")).read_string(expression);
  const std::optional<WordSplit> known = known_expression(expression);
  if (!known) return unsupported(step, "pattern");
  return *known;
}

Status read_pre_tokenizer(const Members& top, BpeSettings& settings) {
  const Result<std::vector<Step>> result = steps_of(top, "pre_tokenizer", "pretokenizers");
  if (!result.ok()) return Failure{result.error()};
  const std::vector<Step>& steps = result.value();
  const auto is = [&](size_t index, std::string_view type) {
    return index < steps.size() && steps[index].type() == fmt::format("\"{}\"", type);
  };
  const size_t last = steps.empty() ? 0 : steps.size() - 1;
  if (steps.empty() || steps.size() > 2 || !is(last, "ByteLevel") ||
      (steps.size() == 2 && !is(0, "Split") && !is(0, "Digits"))) {
    for (const Step& step : steps)
      if (Status s = step.expects("type", {"\"ByteLevel\"", "\"Split\"", "\"Digits\""}); !s.ok())
        return s;
    return Failure{
        "pre_tokenizer is not supported; ByteLevel was expected, with Split or Digits before it "
        "at most"};
  }
  if (Status s = steps[last].expects("add_prefix_space", {"false"}); !s.ok()) return s;
  if (is(0, "Split")) {
    const Result<WordSplit> split = split_of(steps[0]);
    if (!split.ok()) return Failure{split.error()};
    settings.split = split.value();
    return steps[last].expects("use_regex", {"false"});
  }
  if (is(0, "Digits")) {
    if (Status s = steps[0].expects("individual_digits", {"true"}); !s.ok()) return s;
    settings.split = WordSplit::kSmolLm;
  }
  return steps[last].expects("use_regex", {"true", "null"});
}

/// TemplateProcessing of one text: a special token at most, and the text.
Status read_template(const Step& step, std::string& beginning) {
  const Result<std::vector<std::string_view>> pieces =
      elements_of(value_of(step.members, "single"));
  if (!pieces.ok() || pieces.value().empty()) return unsupported(step, "single");
  const auto id_of = [&](size_t index, std::string_view kind, std::string& id) {
    const Result<Members> piece = members_of(pieces.value()[index]);
    if (!piece.ok() || piece.value().size() != 1) return false;
    const Result<Members> named = members_of(value_of(piece.value(), kind));
    return named.ok() && JsonReader(value_of(named.value(), "id")).read_string(id);
  };
  const size_t text = pieces.value().size() - 1;
  std::string sequence;
  if (text > 1 || !id_of(text, "Sequence", sequence) || sequence != "A" ||
      (text == 1 && (!beginning.empty() || !id_of(0, "SpecialToken", beginning))))
    return Failure{fmt::format(
        "{}single is not supported; at most one special token was expected, before the text",
        step.path)};
  return success();
}

Status read_post_processor(const Members& top, std::string& beginning) {
  const Result<std::vector<Step>> steps = steps_of(top, "post_processor", "processors");
  if (!steps.ok()) return Failure{steps.error()};
  for (const Step& step : steps.value()) {
    if (Status s = step.expects("type", {"\"ByteLevel\"", "\"TemplateProcessing\""}); !s.ok())
      return s;
    if (step.type() != "\"TemplateProcessing\"") continue;  // ByteLevel moves offsets only
    if (Status s = read_template(step, beginning); !s.ok()) return s;
  }
  return success();
}

}  // namespace

Status read_bpe_pipeline(const Members& top, const Members& model, BpeSettings& settings,
                         std::string& beginning) {
  const std::string none;
  if (Status s = expect(top, none, "version", {"\"1.0\""}); !s.ok()) return s;
  for (const char* key : {"truncation", "padding"})
    if (Status s = expect(top, none, key, {"null"}); !s.ok()) return s;
  if (Status s = read_normalizer(top, settings); !s.ok()) return s;
  if (Status s = read_pre_tokenizer(top, settings); !s.ok()) return s;
  if (Status s = read_post_processor(top, beginning); !s.ok()) return s;
  const Result<std::vector<Step>> decoder = steps_of(top, "decoder", "decoders");
  if (!decoder.ok()) return Failure{decoder.error()};
  for (const Step& step : decoder.value())
    if (Status s = step.expects("type", {"\"ByteLevel\""}); !s.ok()) return s;
  const std::string path = "model.";
  if (Status s = expect(model, path, "type", {"\"BPE\""}); !s.ok()) return s;
  if (Status s = expect(model, path, "dropout", {"null", "0.0", "0"}); !s.ok()) return s;
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (Status s = expect(model, path, key, {"null", "\"\""}); !s.ok()) return s;
  if (Status s = expect(model, path, "byte_fallback", {"false", "null"}); !s.ok()) return s;
  if (Status s = expect(model, path, "ignore_merges", {"false", "null", "true"}); !s.ok()) return s;
  settings.ignore_merges = value_of(model, "ignore_merges") == "true";
  return success();
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

std::string bpe_pipeline_json(const BpeVocabulary& vocabulary) {
  const BpeSettings& settings = vocabulary.settings;
  const auto byte_level = [](bool splits) {
    return fmt::format(R"({{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,)"
                       R"("use_regex":{}}})",
                       splits);
  };
  const auto sequence = [](const std::string& first, const std::string& second) {
    return fmt::format(R"({{"type":"Sequence","pretokenizers":[{},{}]}})", first, second);
  };
  std::string json = fmt::format(R"("normalizer":{},"pre_tokenizer":)",
                                 settings.composes ? R"({"type":"NFC"})" : "null");
  if (settings.split == WordSplit::kGpt2) {
    json += byte_level(true);
  } else if (settings.split == WordSplit::kSmolLm) {
    json += sequence(R"({"type":"Digits","individual_digits":true})", byte_level(true));
  } else {
    std::string split = R"({"type":"Split","pattern":{"Regex":)";
    append_json_text(split, expression_of(settings.split));
    json += sequence(split + R"(},"behavior":"Isolated","invert":false})", byte_level(false));
  }
  json += R"(,"post_processor":)";
  if (settings.beginning >= 0) {
    const auto beginning =
        std::ranges::find(vocabulary.special_tokens, settings.beginning, &SpecialToken::id);
    std::string text;
    append_json_text(text, beginning->text);
    const auto special = [&](int type) {
      return fmt::format(R"({{"SpecialToken":{{"id":{},"type_id":{}}}}})", text, type);
    };
    const auto part = [](char name, int type) {
      return fmt::format(R"({{"Sequence":{{"id":"{}","type_id":{}}}}})", name, type);
    };
    json += fmt::format(R"({{"type":"TemplateProcessing","single":[{},{}],"pair":[{},{},{},{}],)"
                        R"("special_tokens":{{{}:{{"id":{},"ids":[{}],"tokens":[{}]}}}}}})",
                        special(0), part('A', 0), special(0), part('A', 0), special(1),
                        part('B', 1), text, text, settings.beginning, text);
  } else {
    json += "null";
  }
  return json + R"(,"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,)"
                R"("use_regex":true},)";
}

}  // namespace fullbore
