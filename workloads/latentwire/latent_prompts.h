#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "fullbore/train/config.h"
#include "workloads/latentwire/prompt_source.h"

namespace fullbore::latentwire {

/// What a run is trained and validated on.
struct LatentPrompts {
  std::shared_ptr<const PromptSource> training;
  std::shared_ptr<const PromptSource> validation;  ///< none if nothing is held out
  bool shuffled = false;  ///< training takes them in a new order each epoch
};
/// Of the attribute corpus, or of the questions in data.path, of which the last data.validation_prompts are held out.
/// UsageError if that leaves nothing; DataError: as read_questions() has it.
LatentPrompts open_prompts(const Config& config);

/// What eval measures on, at most `most` of them: the questions of `file`; without one those that a run with a data.path
/// holds out, and of the corpus the first rows of the test key, which no run reads.
std::shared_ptr<const PromptSource> measured_prompts(const Config& config, const std::string& file,
                                                     int64_t most);

}  // namespace fullbore::latentwire
