#include "fullbore/text/text_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "fullbore/data/document_batches.h"
#include "fullbore/data/staged_batches.h"
#include "fullbore/data/token_sequences.h"
#include "fullbore/text/context_curriculum.h"
#include "fullbore/text/text_keys.h"

namespace fullbore {
namespace {

WindowOptions window_options(const Config& config) {
  return {config.train.batch_size, text_keys(config).model.context};
}

SequenceOptions sequence_options(const Config& config) {
  return {.context = text_keys(config).model.context, .segments = batch_segments(config)};
}

/// The sequences to learn from and those held out.
SequenceSplit split_by_sequences(const Config& config, const TextData& text) {
  const int64_t sequences = config.train.batch_size;
  if (text_keys(config).data.split == "sequences")
    return split_sequences(text.tokens->size(), sequences, config.data.validation_fraction,
                           text.path);
  const TokenSplit split = split_text(config, text);
  return {sequences_of(split.training, sequences), sequences_of(split.validation, sequences)};
}

ValidationSet held_out_sequences(const Config& config, const TextData& text,
                                 const SequenceSet& set) {
  std::shared_ptr<const TokenSequences> sequences =
      TokenSequences::create(text.tokens, set, sequence_options(config)).take_or_throw();
  return {sequences, sequences->batches()};
}

ValidationSet first_batches(ValidationSet set, int64_t most_batches) {
  if (most_batches > 0) set.batches = std::min(set.batches, static_cast<uint64_t>(most_batches));
  return set;
}

DocumentBuckets document_buckets(const Config& config) {
  DocumentBuckets buckets{text_keys(config).data.buckets, text_keys(config).data.tokens_per_batch};
  const int64_t context = text_keys(config).model.context;
  if (buckets.lengths.empty()) {
    const std::set<int64_t> lengths = {std::max<int64_t>(1, context / 4),
                                       std::max<int64_t>(1, context / 2), context};
    buckets.lengths.assign(lengths.begin(), lengths.end());
  }
  if (buckets.tokens_per_batch == 0) buckets.tokens_per_batch = config.train.batch_size * context;
  return buckets;
}

/// The configuration of a stage alone.
Config staged_config(const Config& config, const ContextStage& stage) {
  Config own = config;
  text_keys(own).data.context_curriculum = {};
  text_keys(own).model.context = stage.length;
  // A batch of windows has as many tokens in every stage; sequences are as many rows as they are.
  if (text_keys(config).data.batching == "windows")
    own.train.batch_size = config.train.batch_size * text_keys(config).model.context / stage.length;
  return own;
}

/// Each once, that of model.context first.
std::vector<std::vector<BatchField>> curriculum_shapes(const Config& config) {
  std::vector<ContextStage> stages = context_stages(config);
  std::ranges::reverse(stages);
  std::vector<std::vector<BatchField>> shapes;
  std::set<int64_t> lengths;
  for (const ContextStage& stage : stages)
    if (lengths.insert(stage.length).second)
      shapes.push_back(batch_shapes(staged_config(config, stage)).front());
  return shapes;
}

std::shared_ptr<const BatchSource> curriculum_batches(const Config& config, const TextData& text) {
  std::vector<StagedBatches::Stage> stages;
  uint64_t read = 0;  // tokens of a sequence, by the stages before
  const std::vector<ContextStage> all = context_stages(config);
  for (size_t i = 0; i < all.size(); ++i) {
    StagedBatches::Stage stage{all[i].first_step, all[i].first_step,
                               training_batches(staged_config(config, all[i]), text)};
    if (text_keys(config).data.batching == "sequences") {
      const auto span =
          static_cast<uint64_t>(all[i].length) * static_cast<uint64_t>(batch_segments(config));
      stage.begin = read / span;
      if (i + 1 < all.size()) read += (all[i + 1].first_step - all[i].first_step) * span;
    }
    stages.push_back(std::move(stage));
  }
  return std::make_shared<StagedBatches>(std::move(stages));
}

}  // namespace

int64_t batch_segments(const Config& config) {
  const auto& segments = text_model(config).segments;
  return segments ? segments(config) : 1;
}

std::vector<std::vector<BatchField>> batch_shapes(const Config& config) {
  if (const TextTask* const task = text_task(config)) return task->shapes(config);
  if (!text_keys(config).data.context_curriculum.empty()) return curriculum_shapes(config);
  const TensorType type{DType::i32, {config.train.batch_size, text_keys(config).model.context}};
  if (text_keys(config).data.batching == "windows") return {{{"inputs", type}, {"targets", type}}};
  if (text_keys(config).data.batching == "sequences")
    return {sequence_fields(config.train.batch_size, sequence_options(config))};
  if (text_keys(config).data.batching == "packed")
    return {{{"inputs", type}, {"targets", type}, {"segments", type}, {"positions", type}}};
  const DocumentBuckets buckets = document_buckets(config);
  std::vector<std::vector<BatchField>> shapes;
  for (const int64_t length : buckets.lengths) {
    const int64_t rows = buckets.tokens_per_batch / length;
    const TensorType tokens{DType::i32, {rows, length}};
    shapes.push_back({{"inputs", tokens}, {"targets", tokens}, {"lengths", {DType::i32, {rows}}}});
  }
  return shapes;
}

std::vector<BatchField> batch_fields(const Config& config) {
  return std::ranges::max(batch_shapes(config), {}, [](const std::vector<BatchField>& shape) {
    return shape.front().type.elements();
  });
}

std::shared_ptr<const BatchSource> training_batches(const Config& config, const TextData& text) {
  if (const TextTask* const task = text_task(config)) return task->training(config, text);
  if (!text_keys(config).data.context_curriculum.empty()) return curriculum_batches(config, text);
  if (text_keys(config).data.batching == "sequences")
    return TokenSequences::create(text.tokens, split_by_sequences(config, text).training,
                                  sequence_options(config))
        .take_or_throw();
  const TokenRange range = split_text(config, text).training;
  const auto seed = static_cast<uint64_t>(config.run.seed);
  if (text_keys(config).data.batching == "packed")
    return packed_batches(text.tokens, range, window_options(config), {.seed = seed})
        .take_or_throw();
  if (text_keys(config).data.batching == "buckets")
    return bucketed_batches(text.tokens, range, document_buckets(config), {.seed = seed})
        .take_or_throw();
  return RandomWindows::create(text.tokens, range, window_options(config), seed).take_or_throw();
}

ValidationSet validation_set(const Config& config, const TextData& text, int64_t most_batches) {
  if (const TextTask* const task = text_task(config))
    return task->held_out(config, text, most_batches);
  if (text_keys(config).data.batching == "sequences")
    return first_batches(
        held_out_sequences(config, text, split_by_sequences(config, text).validation),
        most_batches);
  return validation_set(config, text, split_text(config, text).validation, most_batches);
}

std::string split_text_about(const Config& config) {
  const double share = config.data.validation_fraction;
  if (text_keys(config).data.split == "sequences")
    return fmt::format("the last {} of each of {} sequences", share, config.train.batch_size);
  if (text_keys(config).data.split == "fraction")
    return fmt::format("the last {} of the text", share);
  return fmt::format("the last {} of the text, by {}", share, text_keys(config).data.split);
}

ValidationSet validation_set(const Config& config, const TextData& text, const TokenRange& range,
                             int64_t most_batches) {
  if (text_keys(config).data.batching == "sequences")
    return first_batches(
        held_out_sequences(config, text, sequences_of(range, config.train.batch_size)),
        most_batches);
  ValidationSet set;
  if (text_keys(config).data.batching == "windows") {
    std::shared_ptr<const SequentialWindows> windows =
        SequentialWindows::create(text.tokens, range, window_options(config)).take_or_throw();
    set = {windows, windows->batches()};
  } else {
    // In random order, for the first batches stand for all; in the same for every run.seed.
    constexpr DocumentEpochs kOnce{.seed = 0, .count = 1};
    std::shared_ptr<const DatasetBatches> batches =
        (text_keys(config).data.batching == "packed"
             ? packed_batches(text.tokens, range, window_options(config), kOnce)
             : bucketed_batches(text.tokens, range, document_buckets(config), kOnce))
            .take_or_throw();
    set = {batches, batches->batches()};
  }
  return first_batches(set, most_batches);
}

namespace {

FusedHead fused_head(const Config& config) {
  if (text_keys(config).engine.fused_head == "auto") return FusedHead::automatic;
  return text_keys(config).engine.fused_head == "on" ? FusedHead::on : FusedHead::off;
}

}  // namespace

ValidationSet evaluation_set(const Config& config, const TextData& text, bool whole,
                             int64_t most_batches) {
  if (whole)
    return validation_set(config, text, {text.path, "evaluation", 0, text.tokens->size()},
                          most_batches);
  if (config.data.validation_fraction <= 0)
    throw UsageError(
        "the run held nothing out (data.validation_fraction is 0); name a text by --data FILE");
  return validation_set(config, text, most_batches);
}

LanguageModelLossOptions loss_options(const Config& config, bool training) {
  LanguageModelLossOptions options{.fused_head = fused_head(config)};
  // What helps learning is no part of what is measured: validation compares any two runs.
  if (training)
    options.cross_entropy = {.label_smoothing = config.train.label_smoothing,
                             .z_loss = text_keys(config).train.z_loss};
  return options;
}

LossFunction model_loss(const Config& config, int64_t tokens) {
  const TextTask* const task = text_task(config);
  return task != nullptr ? task->loss(config, tokens) : text_model(config).loss(config, tokens);
}

}  // namespace fullbore
