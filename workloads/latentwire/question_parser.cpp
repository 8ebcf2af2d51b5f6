#include "workloads/latentwire/question_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fullbore/base/text.h"

namespace fullbore::latentwire {
namespace {

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n\v\f") == std::string::npos;
}

}  // namespace

bool QuestionParser::fail(const std::string& reason) {
  if (ok()) reason_ = fmt::format("byte {}: {}{}", reader_.offset(), where_, reason);
  return false;
}

bool QuestionParser::expect(const char* field, JsonKind wanted, const char* called) {
  const JsonKind kind = reader_.peek();
  if (kind == wanted) return true;
  // What is no JSON at all is told as such.
  if (kind == JsonKind::kNothing && !reader_.skip()) return false;
  return fail(
      fmt::format("the field '{}' is {}; {} was expected", field, json_kind_name(kind), called));
}

bool QuestionParser::text(const char* field, std::string& value) {
  return expect(field, JsonKind::kString, "a text") && reader_.read_string(value);
}

bool QuestionParser::integer(const char* field, int64_t& value) {
  return expect(field, JsonKind::kNumber, "a whole number") && reader_.read_integer(value);
}

// Numbers too: people number their questions.
bool QuestionParser::identifier(const char* field, std::string& id) {
  std::string_view number;
  if (reader_.peek() == JsonKind::kNumber) {
    if (!reader_.skip(number)) return false;
    id = number;
  } else if (!text(field, id)) {
    return false;
  }
  where_ = fmt::format("question '{}': ", id.substr(0, 60));
  return true;
}

bool QuestionParser::articles(std::string_view json) {
  reader_ = JsonReader(json);
  bool found = false;
  const bool read = object("file", [&](const std::string& key) {
    if (key != "data") return reader_.skip();
    found = true;
    return list("data", [&] {
      return object("data[]", [&](const std::string& part) {
        return part == "paragraphs" ? list("paragraphs", [&] { return paragraph(); })
                                    : reader_.skip();
      });
    });
  });
  if (read && !found) return fail("there is no field 'data'");
  return read && reader_.finish();
}

// Its context may stand behind its questions.
bool QuestionParser::paragraph() {
  const size_t number = file_.contexts.size();
  file_.contexts.emplace_back();
  bool found = false;
  const bool read = object("paragraphs[]", [&](const std::string& key) {
    if (key == "context") {
      found = true;
      return text("context", file_.contexts[number]);
    }
    return key == "qas" ? list("qas", [&] { return squad_question(number); }) : reader_.skip();
  });
  if (read && !found) return fail("its paragraph has no field 'context'");
  where_.clear();
  return read;
}

bool QuestionParser::squad_question(size_t context) {
  FoundQuestion found;
  found.answers.emplace();
  where_.clear();
  const bool read = object("qas[]", [&](const std::string& key) {
    if (key == "id") return identifier("id", found.id);
    if (key == "question") return text("question", found.question.emplace());
    return key == "answers" ? squad_answers(*found.answers) : reader_.skip();
  });
  return read && add(std::move(found), context);
}

bool QuestionParser::squad_answers(std::vector<std::string>& answers) {
  return list("answers", [&] {
    bool found = false;
    const bool read = object("answers[]", [&](const std::string& key) {
      if (key != "text") return reader_.skip();
      found = true;
      return text("text", answers.emplace_back());
    });
    return read && !found ? fail("an answer has no field 'text'") : read;
  });
}

bool QuestionParser::records(std::string_view json) {
  reader_ = JsonReader(json);
  return list("file", [&] { return record(); }) && reader_.finish();
}

bool QuestionParser::line(std::string_view json) {
  reader_ = JsonReader(json);
  return record() && reader_.finish();
}

bool QuestionParser::record() {
  FoundQuestion found;
  std::vector<std::string> names;
  where_.clear();
  const bool read = object("question", [&](const std::string& key) {
    constexpr size_t kMostNames = 12;
    if (names.size() < kMostNames) names.push_back(key.substr(0, 40));
    if (key == "id" || key == "_id") return identifier(key.c_str(), found.id);
    if (key == "question") return text("question", found.question.emplace());
    if (key == "context") return context_of(found);
    if (key == "answers") return answers_of_record(found.answers.emplace());
    if (key == "answer") return text("answer", found.answers.emplace().emplace_back());
    return key == "supporting_facts" ? facts_of(found.facts) : reader_.skip();
  });
  if (!read) return false;
  const char* missing = !found.question                       ? "question"
                        : !found.context && !found.paragraphs ? "context"
                        : !found.answers                      ? "answers"
                                                              : nullptr;
  if (missing)
    return fail(fmt::format("there is no field '{}'.{}", missing, did_you_mean(missing, names)));
  return add(std::move(found), std::nullopt);
}

// Texts; objects with a text each; or a column of texts.
bool QuestionParser::answers_of_record(std::vector<std::string>& answers) {
  const auto answer = [&] { return text("answers", answers.emplace_back()); };
  if (reader_.peek() == JsonKind::kObject)
    return object("answers", [&](const std::string& key) {
      return key == "text" ? list("text", answer) : reader_.skip();
    });
  return list("answers", [&] {
    if (reader_.peek() != JsonKind::kObject) return answer();
    return object("answers[]", [&](const std::string& key) {
      return key == "text" ? answer() : reader_.skip();
    });
  });
}

bool QuestionParser::context_of(FoundQuestion& found) {
  if (reader_.peek() == JsonKind::kString) return text("context", found.context.emplace());
  auto& paragraphs = found.paragraphs.emplace();
  if (reader_.peek() == JsonKind::kObject) return paragraphs_in_columns(paragraphs);
  return list("context", [&] { return paragraph_of(paragraphs); });
}

// [title, [sentence, ...]]
bool QuestionParser::paragraph_of(std::vector<HotpotParagraph>& paragraphs) {
  HotpotParagraph& paragraph = paragraphs.emplace_back();
  int parts = 0;
  const bool read = list("context[]", [&] {
    ++parts;
    if (parts == 1) return text("title", paragraph.title);
    if (parts > 2) return fail("a paragraph is a title and sentences; this one has a third part");
    return list("sentences",
                [&] { return text("sentences[]", paragraph.sentences.emplace_back()); });
  });
  return read && parts < 2 ? fail("a paragraph is a title and sentences; this one has less") : read;
}

// {"title": [...], "sentences": [[sentence, ...], ...]}
bool QuestionParser::paragraphs_in_columns(std::vector<HotpotParagraph>& paragraphs) {
  std::vector<std::string> titles;
  std::vector<std::vector<std::string>> sentences;
  const bool read = object("context", [&](const std::string& key) {
    if (key == "title") return list("title", [&] { return text("title", titles.emplace_back()); });
    if (key != "sentences") return reader_.skip();
    return list("sentences", [&] {
      auto& row = sentences.emplace_back();
      return list("sentences[]", [&] { return text("sentences[][]", row.emplace_back()); });
    });
  });
  if (!read) return false;
  if (titles.size() != sentences.size())
    return fail(fmt::format("there are {} titles, and sentences of {} paragraphs", titles.size(),
                            sentences.size()));
  for (size_t i = 0; i < titles.size(); ++i)
    paragraphs.push_back({std::move(titles[i]), std::move(sentences[i])});
  return true;
}

// [[title, number of the sentence], ...]
bool QuestionParser::facts_of(std::vector<HotpotFact>& facts) {
  if (reader_.peek() == JsonKind::kObject) return facts_in_columns(facts);
  return list("supporting_facts", [&] {
    HotpotFact& fact = facts.emplace_back();
    int parts = 0;
    const bool read = list("supporting_facts[]", [&] {
      ++parts;
      if (parts == 1) return text("title", fact.title);
      return parts == 2 ? integer("number", fact.sentence)
                        : fail("a supporting fact is a title and a number; this one has more");
    });
    return read && parts < 2 ? fail("a supporting fact is a title and a number; this one has less")
                             : read;
  });
}

// {"title": [...], "sent_id": [...]}
bool QuestionParser::facts_in_columns(std::vector<HotpotFact>& facts) {
  std::vector<std::string> titles;
  std::vector<int64_t> sentences;
  const bool read = object("supporting_facts", [&](const std::string& key) {
    if (key == "title") return list("title", [&] { return text("title", titles.emplace_back()); });
    if (key != "sent_id") return reader_.skip();
    return list("sent_id", [&] { return integer("sent_id", sentences.emplace_back()); });
  });
  if (!read) return false;
  if (titles.size() != sentences.size())
    return fail(fmt::format("there are {} titles and {} sentences of supporting facts",
                            titles.size(), sentences.size()));
  for (size_t i = 0; i < titles.size(); ++i) facts.push_back({std::move(titles[i]), sentences[i]});
  return true;
}

size_t QuestionParser::context_number(const std::string& context) {
  const auto [place, is_new] = context_numbers_.emplace(context, file_.contexts.size());
  if (is_new) file_.contexts.push_back(context);
  return place->second;
}

bool QuestionParser::add(FoundQuestion found, std::optional<size_t> context) {
  if (!found.question) return fail("there is no field 'question'");
  if (is_blank(*found.question)) return fail("the question is empty");
  QuestionFile::Question question{std::move(found.id), 0, std::move(*found.question), {}};
  for (std::string& answer : *found.answers)
    if (!is_blank(answer) && std::ranges::find(question.answers, answer) == question.answers.end())
      question.answers.push_back(std::move(answer));
  if (question.answers.empty()) {
    ++file_.unanswerable;
    return true;
  }
  if (!context)
    context = context_number(found.paragraphs ? hotpot_context(*found.paragraphs, found.facts)
                                              : *found.context);
  question.context = *context;
  if (question.id.empty()) question.id = fmt::format("{}", file_.questions.size() + 1);
  file_.questions.push_back(std::move(question));
  return true;
}

}  // namespace fullbore::latentwire
