#include "workloads/long_context/example_task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "fullbore/data/byte_tokenizer.h"
#include "fullbore/data/character_tokenizer.h"
#include "fullbore/data/number_tokenizer.h"
#include "fullbore/data/recorded_tokenizer.h"
#include "fullbore/nn/language_model_loss.h"
#include "fullbore/text/text_batches.h"
#include "fullbore/text/text_keys.h"
#include "workloads/long_context/example_batches.h"
#include "workloads/long_context/needle_example.h"
#include "workloads/long_context/recall_keys.h"

namespace fullbore {
namespace {

using namespace long_context;  // NOLINT: the words of these tasks

bool is_recall(const Config& config) { return text_keys(config).data.batching == "mqar"; }

int64_t recall_vocabulary(const Config& config) {
  return recall_keys(config).mqar_vocabulary > 0 ? recall_keys(config).mqar_vocabulary : 256;
}

void check_length(const Config& config, const std::string& what, int64_t tokens) {
  if (tokens > text_keys(config).model.context)
    throw UsageError(fmt::format("{} takes {} tokens, model.context is {}", what, tokens,
                                 text_keys(config).model.context));
}

/// "64:4" of data.mqar_sizes.
RecallSizes parse_sizes(const Config& config, const std::string& text) {
  RecallSizes sizes{.vocabulary = recall_vocabulary(config)};
  const char* const end = text.data() + text.size();
  const auto [colon, error] = std::from_chars(text.data(), end, sizes.length);
  bool good = error == std::errc() && colon != end && *colon == ':';
  if (good) {
    const auto [stop, wrong] = std::from_chars(colon + 1, end, sizes.pairs);
    good = wrong == std::errc() && stop == end;
  }
  if (!good)
    throw UsageError(fmt::format("data.mqar_sizes: '{}' is no TOKENS:PAIRS, such as 64:4", text));
  check_recall_sizes(sizes);
  check_length(config, "data.mqar_sizes: " + text, sizes.length);
  return sizes;
}

std::vector<RecallSizes> recall_mix(const Config& config) {
  std::vector<RecallSizes> mix;
  for (const std::string& text : recall_keys(config).mqar_sizes)
    mix.push_back(parse_sizes(config, text));
  if (mix.empty()) mix.push_back(parse_sizes(config, "64:4"));
  return mix;
}

PasskeyOptions passkey_options(const Config& config) {
  PasskeyOptions options{.batch_size = config.train.batch_size};
  if (const std::vector<int64_t>& lengths = recall_keys(config).passkey_lengths; !lengths.empty()) {
    if (lengths.size() != 2 || lengths[0] > lengths[1])
      throw UsageError(
          fmt::format("data.passkey_lengths is [{}]; the shortest and the longest were expected",
                      fmt::join(lengths, ", ")));
    options.shortest = lengths[0];
    options.longest = lengths[1];
  }
  check_length(config, fmt::format("a passkey of {} characters", options.longest),
               options.longest + 4);
  return options;
}

std::shared_ptr<const Tokenizer> letter_tokenizer(const std::string& name) {
  const std::string alphabet = shakespeare_alphabet();
  const std::vector<char32_t> characters(alphabet.begin(), alphabet.end());
  if (name == "byte") return std::make_shared<ByteTokenizer>();
  if (name == "recorded") return std::make_shared<RecordedTokenizer>(characters);
  if (name == "character" || name == "compact")
    return std::make_shared<CharacterTokenizer>(characters);
  throw UsageError(fmt::format(
      "data.tokenizer is '{}'; passkeys are spelled by character, compact, recorded or byte",
      name));
}

std::shared_ptr<const BatchSource> examples(const Config& config, const TextData& text,
                                            ExampleUse use) {
  const auto seed = static_cast<uint64_t>(config.run.seed);
  if (is_recall(config))
    return std::make_shared<RecallBatches>(recall_mix(config), config.train.batch_size, seed, use);
  return std::make_shared<PasskeyBatches>(text.tokenizer, passkey_options(config), seed, use);
}

std::string about_examples(const Config& config) {
  if (!is_recall(config)) {
    const PasskeyOptions options = passkey_options(config);
    return fmt::format("passkeys in {} to {} characters", options.shortest, options.longest);
  }
  std::string text = "associative recall";
  for (const RecallSizes& sizes : recall_mix(config))
    text += fmt::format(" {}:{}", sizes.length, sizes.pairs);
  return fmt::format("{} of {} tokens", text, recall_vocabulary(config));
}

TextData example_text(const Config& config) {
  TextData text;
  text.identity = about_examples(config);
  if (is_recall(config))
    text.tokenizer = std::make_shared<NumberTokenizer>(recall_vocabulary(config));
  else
    text.tokenizer = letter_tokenizer(text_keys(config).data.tokenizer);
  return text;
}

std::vector<std::vector<BatchField>> example_shapes(const Config& config) {
  if (!is_recall(config))
    return {example_fields(config.train.batch_size, passkey_options(config).longest + 4)};
  return RecallBatches(recall_mix(config), config.train.batch_size, 0, ExampleUse::training)
      .shapes();
}

std::shared_ptr<const BatchSource> training_examples(const Config& config, const TextData& text) {
  return examples(config, text, ExampleUse::training);
}

ValidationSet held_out_examples(const Config& config, const TextData& text, int64_t most_batches) {
  constexpr int64_t kEach = 8;  // batches of each size: there is no whole of them
  const int64_t sizes = is_recall(config) ? static_cast<int64_t>(recall_mix(config).size()) : 1;
  const int64_t batches = most_batches > 0 ? most_batches : kEach * sizes;
  return {examples(config, text, ExampleUse::validation), static_cast<uint64_t>(batches)};
}

LossFunction example_loss(const Config& config, int64_t tokens) {
  const HiddenFunction hidden = text_model(config).hidden(config, tokens);
  return [=](Trace& trace, std::span<const Tensor> batch) {
    const Tensor logits = language_model_logits(trace, hidden(trace, batch[0]));
    const Tensor targets = batch[1];
    const Tensor asked = cast(greater_equal(targets, 0), DType::f32);
    const Tensor count = maximum(reduce_sum(asked, {0, 1}), 1);
    const Tensor losses =
        cross_entropy(logits, targets, loss_options(config, trace.training()).cross_entropy);
    const Tensor right = cast(equal(argmax(logits, 2), targets), DType::f32);
    Loss loss(reduce_sum(losses, {0, 1}) / count, reduce_sum(asked, {0, 1}));
    loss.metrics.push_back({"accuracy", reduce_sum(right, {0, 1}) / count});
    return loss;
  };
}

std::string accuracy_text(const std::string& name, double value) {
  return name == "accuracy" ? fmt::format("accuracy {:.1f} %", 100 * value) : "";
}

/// No specification names a margin; a point is what a chart of accuracies shows.
QualityMetrics example_quality(const Config&) {
  return {{.name = "loss", .unit = "nats", .margin = 0.05, .source = "as losses of texts"},
          {.name = "accuracy", .better = Better::higher, .margin = 0.01, .source = "a point"}};
}

}  // namespace

TextTask example_task(const std::string& name) {
  return {.name = name,
          .data = example_text,
          .shapes = example_shapes,
          .training = training_examples,
          .held_out = held_out_examples,
          .about = about_examples,
          .loss = example_loss,
          .figure = accuracy_text,
          .measured_by = name == "mqar" ? "longcontext mqar" : "longcontext niah",
          .quality = example_quality};
}

}  // namespace fullbore
