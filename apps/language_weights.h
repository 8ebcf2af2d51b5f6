#pragma once
#include "apps/workload.h"
#include "fullbore/data/tokenizer.h"
#include "fullbore/train/weight_source.h"

namespace fullbore {

/// model.initialize_from of language models.

/// Settings of the model that change what weights mean where their shapes are the same.
std::vector<std::string> language_weight_keys(const Config& config);
/// Rows of the token table, and of an output head of its own, by the tokens that both tokenizers have; rows of the
/// position table where the contexts differ. Beyond the checkpoint's positions there are none, so that a longer
/// context is no whole transfer.
std::vector<TableOrigins> language_weight_tables(const Config& config, const Tokenizer& tokenizer,
                                                 const WeightSource& source);
/// A GPT-2 in the Hugging Face layout. UsageError for model.name=hybrid, DataError as HuggingFaceGpt2 has it.
InitialWeights huggingface_weights(const Config& config, const Tokenizer& tokenizer);

}  // namespace fullbore
