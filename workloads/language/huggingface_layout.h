#pragma once
#include <functional>

#include "fullbore/nn/decoder_model.h"
#include "fullbore/text/text_model.h"

namespace fullbore {

/// The Hugging Face layout of models whose sizes `model` tells, for so many distinct tokens: to be exported, and to start
/// from. DataError as HuggingFaceModel has it.
ForeignLayout huggingface_layout(
    const std::function<nn::DecoderConfig(const Config&, int64_t tokens)>& model);

}  // namespace fullbore
