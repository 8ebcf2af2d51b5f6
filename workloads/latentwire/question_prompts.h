#pragma once
#include <cstdint>
#include <memory>

#include "workloads/latentwire/prompt_source.h"
#include "workloads/latentwire/question_reader.h"

namespace fullbore::latentwire {

/// Questions [first, first + size) of a file as prompts. SQuAD's and lines' are "Context: ...\nQuestion: ...\n"; of HotpotQA
/// the question comes first.
std::shared_ptr<const PromptSource> question_prompts(std::shared_ptr<const QuestionFile> file,
                                                     int64_t first, int64_t size);

}  // namespace fullbore::latentwire
