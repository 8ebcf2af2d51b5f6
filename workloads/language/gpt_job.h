#pragma once
#include "fullbore/nn/decoder_model.h"
#include "fullbore/text/text_model.h"
#include "workloads/language/models.h"

namespace fullbore {

/// Sizes of the gpt model that `tokens` distinct tokens need. UsageError if model.vocabulary is less.
LanguageModelConfig model_config(const Config& config, int64_t tokens);

/// The same sizes, as models of all families are described.
nn::DecoderConfig decoder_config(const LanguageModelConfig& model);

/// model.name=gpt as everything that handles texts knows it.
TextModel gpt_text_model();

}  // namespace fullbore
