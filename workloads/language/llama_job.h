#pragma once
#include "fullbore/nn/decoder_model.h"
#include "fullbore/text/text_model.h"

namespace fullbore {

/// The model of model.name=llama that `tokens` distinct tokens need. UsageError if model.vocabulary is less.
nn::DecoderConfig llama_config(const Config& config, int64_t tokens);

/// model.name=llama as everything that handles texts knows it.
TextModel llama_text_model();

}  // namespace fullbore
