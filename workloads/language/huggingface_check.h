#pragma once
#include "fullbore/text/huggingface_model.h"

namespace fullbore {

/// DataError naming the key, the setting and both values, if `decoder` differs from `there`, read from `path`, in more than a shorter
/// context (of learned positions the first are taken), dropout, biases of GPT-2 that are all zero, or an output head of
/// its own that is to start as the token table.
void check_huggingface(const HuggingFaceConfig& there, const std::string& path,
                       const nn::DecoderConfig& decoder);
/// The same of a folder.
void check_huggingface(const HuggingFaceModel& source, const nn::DecoderConfig& decoder);

}  // namespace fullbore
