#pragma once
#include <memory>
#include <string>
#include <vector>

#include "apps/language_model.h"

namespace fullbore {

/// Batches that are made up, of no text: data.batching=mqar (associative recall) and passkey (needles). Loss
/// and accuracy are of what is asked for alone; workloads/long_context/example_batches.h says how they are made.

bool makes_examples(const Config& config);

/// What stands for a text: a tokenizer, and no tokens. UsageError for sizes that make no examples, or go
/// beyond model.context.
TextData example_text(const Config& config);
/// As batch_shapes(), training_batches() and validation_set() of language_batches.h.
std::vector<std::vector<BatchField>> example_shapes(const Config& config);
std::shared_ptr<const BatchSource> training_examples(const Config& config, const TextData& text);
ValidationSet held_out_examples(const Config& config, const TextData& text, int64_t most_batches);
/// A line for people.
std::string about_examples(const Config& config);

/// The model's loss with the metric `accuracy`: the share of targets that are the likeliest token. `tokens`: how
/// many distinct ones there are.
LossFunction example_loss(const Config& config, int64_t tokens);

}  // namespace fullbore
