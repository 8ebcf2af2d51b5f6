#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/result.h"

namespace fullbore::latentwire {

/// How a file holds questions.
enum class QuestionFormat : uint8_t {
  squad,   ///< one JSON object of articles, paragraphs and questions: SQuAD 1.1 and 2.0
  hotpot,  ///< one JSON list of questions with paragraphs of sentences: HotpotQA
  lines,   ///< a JSON object a line, of either data set as its mirrors publish it, or of one's own
};
/// "SQuAD"; for people.
const char* question_format_name(QuestionFormat format);

/// Questions of a file. Contexts are kept once, for many questions share one.
struct QuestionFile {
  struct Question {
    std::string id;
    size_t context = 0;  ///< in contexts
    std::string question;
    std::vector<std::string> answers;  ///< all that are right, each once
  };
  QuestionFormat format = QuestionFormat::lines;
  std::vector<std::string> contexts;
  std::vector<Question> questions;
  int64_t unanswerable = 0;  ///< without an answer: of SQuAD 2.0, left out
};

/// Reads
///
///   SQuAD     {"data": [{"paragraphs": [{"context", "qas": [{"id", "question", "answers": [{"text"}]}]}]}]}
///             Rajpurkar et al. 2016, arXiv:1606.05250; 2018, arXiv:1806.03822
///   HotpotQA  [{"_id", "question", "answer", "context": [[title, [sentence, ...]], ...],
///             "supporting_facts": [[title, number of the sentence], ...]}]
///             Yang et al. 2018, arXiv:1809.09600
///   lines     {"id", "context", "question", "answers": [text, ...]}; of mirrors also "answers": {"text": [...]}, and of
///             HotpotQA "context": {"title": [...], "sentences": [[...]]} with "supporting_facts": {"title": [...],
///             "sent_id": [...]}
///
/// which of them, the text tells. Other fields are passed over. `name` is the file's, for messages. Failure: no JSON, a field
/// that is missing or of another kind (named with byte or line and the question's id), an empty question, no questions.
Result<QuestionFile> parse_questions(std::string_view text, const std::string& name);

/// The file, plain or gzip, up to 4 GiB of text.
Result<QuestionFile> read_questions(const std::string& path);

/// What HotpotQA's question is asked about: the supporting sentences with their neighbours, at most 6, filled up with the
/// first 4 sentences of the first 3 paragraphs; in the order in which they were taken, white space collapsed, at most 2,000
/// characters. A fact about a sentence or paragraph that there is not (the data set has a few) is passed over.
struct HotpotParagraph {
  std::string title;
  std::vector<std::string> sentences;
};
struct HotpotFact {
  std::string title;
  int64_t sentence = 0;
};
std::string hotpot_context(const std::vector<HotpotParagraph>& paragraphs,
                           const std::vector<HotpotFact>& facts);

}  // namespace fullbore::latentwire
