#pragma once
#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fullbore/data/json_reader.h"
#include "workloads/latentwire/question_reader.h"

namespace fullbore::latentwire {

/// One question as it stands in its file.
struct FoundQuestion {
  std::string id;
  std::optional<std::string> question;
  std::optional<std::string> context;
  std::optional<std::vector<std::string>> answers;
  std::optional<std::vector<HotpotParagraph>> paragraphs;  ///< in place of a context
  std::vector<HotpotFact> facts;
};

/// Reads JSON front to back into a QuestionFile (question_reader.h). Each method reads one text to its end; after the first
/// that returns false, error() says what is wrong and where.
class QuestionParser {
 public:
  explicit QuestionParser(QuestionFile& file) : file_(file) {}

  bool articles(std::string_view json);  ///< SQuAD's object
  bool records(std::string_view json);   ///< HotpotQA's list
  bool line(std::string_view json);
  std::string error() const { return reason_.empty() ? reader_.error() : reason_; }

 private:
  bool ok() const { return reason_.empty() && !reader_.failed(); }
  bool fail(const std::string& reason);
  bool expect(const char* field, JsonKind wanted, const char* called);
  bool text(const char* field, std::string& value);
  bool integer(const char* field, int64_t& value);
  bool identifier(const char* field, std::string& id);
  /// Calls `element` for each element of the list that comes next, `member` with each key of the object.
  template <class Element>
  bool list(const char* field, Element element) {
    if (!expect(field, JsonKind::kArray, "a list")) return false;
    reader_.begin_array();
    while (ok() && reader_.next_element())
      if (!element()) return false;
    return ok();
  }
  template <class Member>
  bool object(const char* field, Member member) {
    if (!expect(field, JsonKind::kObject, "an object")) return false;
    reader_.begin_object();
    std::string key;
    while (ok() && reader_.next_key(key))
      if (!member(key)) return false;
    return ok();
  }

  bool paragraph();
  bool squad_question(size_t context);
  bool squad_answers(std::vector<std::string>& answers);
  bool record();
  bool answers_of_record(std::vector<std::string>& answers);
  bool context_of(FoundQuestion& found);
  bool paragraph_of(std::vector<HotpotParagraph>& paragraphs);
  bool paragraphs_in_columns(std::vector<HotpotParagraph>& paragraphs);
  bool facts_of(std::vector<HotpotFact>& facts);
  bool facts_in_columns(std::vector<HotpotFact>& facts);
  bool add(FoundQuestion found, std::optional<size_t> context);
  size_t context_number(const std::string& context);

  JsonReader reader_{""};
  QuestionFile& file_;
  std::unordered_map<std::string, size_t>
      context_numbers_;  ///< but for SQuAD, whose paragraphs have one each
  std::string where_;    ///< "question 'a1': "
  std::string reason_;
};

}  // namespace fullbore::latentwire
