#pragma once
#include "fullbore/data/tokenizer.h"
#include "fullbore/text/text_model.h"
#include "fullbore/train/weight_source.h"

namespace fullbore {

/// model.initialize_from of models of texts.

/// Rows of the token table, and of an output head of its own, by the tokens that both tokenizers have; rows of the
/// position table where the contexts differ. Beyond the checkpoint's positions there are none, so that a longer
/// context is no whole transfer.
std::vector<TableOrigins> text_weight_tables(const Config& config, const Tokenizer& tokenizer,
                                             const WeightSource& source);
/// Weights in the layout of others that the model reads. UsageError if it reads none.
InitialWeights foreign_text_weights(const Config& config, const Tokenizer& tokenizer);

}  // namespace fullbore
