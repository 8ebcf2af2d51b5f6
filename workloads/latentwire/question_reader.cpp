#include "workloads/latentwire/question_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/base/text.h"
#include "fullbore/data/input_bytes.h"
#include "fullbore/data/json_reader.h"
#include "workloads/latentwire/question_parser.h"

namespace fullbore::latentwire {
namespace {

constexpr size_t kMostBytes = size_t{4} << 30;

// An object with a list "data" at its top is SQuAD's, another is a line.
bool has_articles(std::string_view text) {
  JsonReader reader(text);
  std::string key;
  if (!reader.begin_object()) return false;
  while (reader.next_key(key)) {
    if (key == "data") return reader.peek() == JsonKind::kArray;
    if (!reader.skip()) return false;
  }
  return false;
}

Status parse_lines(std::string_view text, const std::string& name, QuestionParser& parser) {
  for (uint64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (!parser.line(line)) return Failure{fmt::format("{}:{}: {}", name, number, parser.error())};
  }
  return success();
}

}  // namespace

const char* question_format_name(QuestionFormat format) {
  switch (format) {
    case QuestionFormat::squad: return "SQuAD";
    case QuestionFormat::hotpot: return "HotpotQA";
    case QuestionFormat::lines: break;
  }
  return "JSON lines";
}

Result<QuestionFile> parse_questions(std::string_view text, const std::string& name) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  QuestionFile file;
  QuestionParser parser(file);
  const bool is_list = JsonReader(text).peek() == JsonKind::kArray;
  if (is_list || has_articles(text)) {
    file.format = is_list ? QuestionFormat::hotpot : QuestionFormat::squad;
    if (!(is_list ? parser.records(text) : parser.articles(text)))
      return Failure{fmt::format("{}: {}", name, parser.error())};
  } else if (const Status lines = parse_lines(text, name, parser); !lines.ok()) {
    return Failure{lines.error()};
  }
  if (file.questions.empty()) {
    const std::string without =
        file.unanswerable > 0 ? fmt::format(" ({} have none)", file.unanswerable) : "";
    return Failure{fmt::format("{}: there is no question with an answer{}", name, without)};
  }
  return file;
}

Result<QuestionFile> read_questions(const std::string& path) {
  Result<InputBytes> opened = InputBytes::open(path);
  if (!opened.ok()) return Failure{opened.error()};
  constexpr size_t kPiece = size_t{1} << 22;
  std::string text;
  for (bool ended = false; !ended;) {
    const size_t before = text.size();
    text.resize(before + kPiece);
    const Result<size_t> read = opened.value().read(text.data() + before, kPiece);
    if (!read.ok()) return Failure{read.error()};
    text.resize(before + read.value());
    ended = read.value() == 0;
    if (text.size() > kMostBytes)
      return Failure{fmt::format("{}: more than {} of text", path,
                                 bytes_text(static_cast<double>(kMostBytes)))};
  }
  return parse_questions(text, path);
}

}  // namespace fullbore::latentwire
