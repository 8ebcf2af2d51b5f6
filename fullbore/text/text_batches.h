#pragma once
#include <memory>
#include <vector>

#include "fullbore/nn/language_model_loss.h"
#include "fullbore/text/trained_text_model.h"

namespace fullbore {

/// Batches of a text by data.batching: what tensors they have, for a model (model_loss) and for the
/// loader.
///
///   windows    inputs, targets [B,T]: stretches from anywhere in the text
///   packed     inputs, targets, segments, positions [B,T]: rows of documents kept apart
///   buckets    inputs, targets [B,L], lengths [B]: documents of like length, B = tokens / L
///   sequences  inputs, targets [B,S T], resets bool [B,S]: each row goes on where that of the last batch ended;
///              S: batch_segments()
/// and what tasks make up, of no text (TextTask).

/// Segments of each sequence in a batch: S above.
int64_t batch_segments(const Config& config);

/// Every shape that batches can have, i32 tensors but where another type is given; a text that lacks some
/// lengths has fewer.
std::vector<std::vector<BatchField>> batch_shapes(const Config& config);
/// The largest of them.
std::vector<BatchField> batch_fields(const Config& config);

/// Endless batches of what the text holds to learn from, by run.seed. DataError if it is too short.
std::shared_ptr<const BatchSource> training_batches(const Config& config, const TextData& text);
/// Batches that cover what is held out once, at most `most_batches` of them (0: all). DataError if it is too
/// short.
ValidationSet validation_set(const Config& config, const TextData& text, int64_t most_batches);
/// "the last 0.1 of each of 8 sequences": what is held out, for people.
std::string split_text_about(const Config& config);
/// Batches that cover `range` once, at most `most_batches` of them (0: all). DataError if it is too
/// short.
ValidationSet validation_set(const Config& config, const TextData& text, const TokenRange& range,
                             int64_t most_batches);

/// What a trained model is measured on: the part that it was not trained on, or the whole text. UsageError if the
/// run held nothing out.
ValidationSet evaluation_set(const Config& config, const TextData& text, bool whole,
                             int64_t most_batches);

/// How training and evaluation measure losses: label smoothing and z-loss are of training alone.
LanguageModelLossOptions loss_options(const Config& config, bool training);

/// The model's loss on such batches; label smoothing and z-loss are of training alone. `tokens`: how
/// many distinct ones the data have. UsageError if model.vocabulary is less.
LossFunction model_loss(const Config& config, int64_t tokens);

}  // namespace fullbore
