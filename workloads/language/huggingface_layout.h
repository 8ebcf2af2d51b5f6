#pragma once
#include "fullbore/text/text_model.h"

namespace fullbore {

/// A GPT-2 in the Hugging Face layout: to be exported, and to start from. DataError as HuggingFaceGpt2 has it.
ForeignLayout huggingface_layout();

}  // namespace fullbore
