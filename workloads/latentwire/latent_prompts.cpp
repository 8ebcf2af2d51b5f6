#include "workloads/latentwire/latent_prompts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fullbore/base/error.h"
#include "workloads/latentwire/attribute_corpus.h"
#include "workloads/latentwire/latent_keys.h"
#include "workloads/latentwire/question_prompts.h"

namespace fullbore::latentwire {
namespace {

/// Of the corpus there is no end; a run reads no row twice before this many.
constexpr int64_t kCorpusRows = int64_t{1} << 40;
/// Of the test key: the rows before them are measured on.
constexpr int64_t kFirstValidationRow = 2'000'000;

std::shared_ptr<const QuestionFile> questions_of(const std::string& path) {
  return std::make_shared<const QuestionFile>(read_questions(path).take_or_throw());
}

}  // namespace

LatentPrompts open_prompts(const Config& config) {
  const int64_t held_out = latent_keys(config).data.validation_prompts;
  const int64_t wanted = latent_keys(config).data.training_prompts;
  LatentPrompts prompts;
  if (config.data.path.empty()) {
    prompts.training =
        attribute_prompts(kAttributeTrainingKey, 0, wanted > 0 ? wanted : kCorpusRows);
    if (held_out > 0)
      prompts.validation = attribute_prompts(kAttributeTestKey, kFirstValidationRow, held_out);
    return prompts;
  }
  const auto file = questions_of(config.data.path);
  const auto count = static_cast<int64_t>(file->questions.size());
  if (held_out >= count)
    throw UsageError(
        fmt::format("data.validation_prompts={}: {} has {} questions, of which none "
                    "would be left to train on",
                    held_out, config.data.path, count));
  const int64_t left = count - held_out;
  prompts.training = question_prompts(file, 0, wanted > 0 ? std::min(wanted, left) : left);
  prompts.shuffled = true;
  if (held_out > 0) prompts.validation = question_prompts(file, count - held_out, held_out);
  return prompts;
}

std::shared_ptr<const PromptSource> measured_prompts(const Config& config, const std::string& file,
                                                     int64_t most) {
  if (!file.empty()) {
    const auto questions = questions_of(file);
    return question_prompts(questions, 0,
                            std::min(most, static_cast<int64_t>(questions->questions.size())));
  }
  if (config.data.path.empty()) return attribute_prompts(kAttributeTestKey, 0, most);
  const int64_t held_out = latent_keys(config).data.validation_prompts;
  if (held_out == 0)
    throw UsageError(
        "eval: the run holds no questions out (data.validation_prompts=0); --data "
        "names a file of others");
  const auto questions = questions_of(config.data.path);
  const auto count = static_cast<int64_t>(questions->questions.size());
  const int64_t first = std::max<int64_t>(0, count - held_out);
  return question_prompts(questions, first, std::min(most, count - first));
}

}  // namespace fullbore::latentwire
