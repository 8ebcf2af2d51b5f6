// Any bytes as a file of questions: read within its own size, or refused by name.
#include <string_view>

#include "tests/fuzz/memory_file.h"
#include "workloads/latentwire/question_reader.h"

using namespace fullbore;
using namespace fullbore::latentwire;
using fullbore::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<QuestionFile> file = parse_questions(text, "input");
  if (!file.ok()) {
    require(file.error().starts_with("input:"));
    return 0;
  }
  require(!file.value().questions.empty());
  for (const QuestionFile::Question& question : file.value().questions) {
    require(question.context < file.value().contexts.size());
    require(!question.answers.empty() && !question.question.empty());
    require(file.value().contexts[question.context].size() <= size);
  }
  return 0;
}
