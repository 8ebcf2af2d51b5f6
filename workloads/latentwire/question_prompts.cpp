#include "workloads/latentwire/question_prompts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fullbore/base/hash.h"

namespace fullbore::latentwire {
namespace {

class QuestionPrompts : public PromptSource {
 public:
  QuestionPrompts(std::shared_ptr<const QuestionFile> file, int64_t first, int64_t size)
      : file_(std::move(file)), first_(first), size_(size) {
    for (int64_t i = 0; i < size_; ++i) {
      const Prompt each = prompt(i);
      hash_ = hash_text(each.source(), hash_);
      for (const std::string& answer : each.answers) hash_ = hash_text(answer, hash_);
    }
  }

  Prompt prompt(int64_t index) const override {
    const QuestionFile::Question& question = at(index);
    return {.id = question.id,
            .context = fmt::format("Context: {}\n", file_->contexts[question.context]),
            .question = fmt::format("Question: {}\n", question.question),
            .answers = question.answers,
            .question_leads = file_->format == QuestionFormat::hotpot};
  }
  int64_t size() const override { return size_; }
  std::string about() const override {
    return fmt::format("{} of {} questions from {} on, of {}", size_, file_->questions.size(),
                       first_, question_format_name(file_->format));
  }
  std::string identity() const override {
    return fmt::format("{} questions {}", size_, hash_hex(hash_));
  }
  int64_t most_in_source(const Length& length) const override {
    int64_t most = 0;
    for (int64_t i = 0; i < size_; ++i) most = std::max(most, length(prompt(i).source()));
    return most;
  }
  int64_t most_in_answer(const Length& length) const override {
    int64_t most = 0;
    for (int64_t i = 0; i < size_; ++i) most = std::max(most, length(" " + at(i).answers.front()));
    return most;
  }

 private:
  const QuestionFile::Question& at(int64_t index) const {
    return file_->questions[static_cast<size_t>(first_ + index)];
  }
  std::shared_ptr<const QuestionFile> file_;
  int64_t first_, size_;
  uint64_t hash_ = 0;  ///< of all texts
};

}  // namespace

std::shared_ptr<const PromptSource> question_prompts(std::shared_ptr<const QuestionFile> file,
                                                     int64_t first, int64_t size) {
  return std::make_shared<QuestionPrompts>(std::move(file), first, size);
}

}  // namespace fullbore::latentwire
