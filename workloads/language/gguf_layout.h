#pragma once
#include <functional>
#include <vector>

#include "fullbore/nn/decoder_model.h"
#include "fullbore/text/text_model.h"

namespace fullbore {

/// GGUF files of models whose sizes `model` tells, for so many distinct tokens: in F16 and Q8_0 to be exported, in any type
/// that is read to start from. DataError as GgufModel has it.
std::vector<ForeignLayout> gguf_layouts(
    const std::function<nn::DecoderConfig(const Config&, int64_t tokens)>& model);

}  // namespace fullbore
