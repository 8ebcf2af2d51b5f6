#include <fmt/format.h>

#include <memory>

#include "apps/language_batches.h"
#include "apps/language_examples.h"
#include "apps/language_weights.h"
#include "apps/text_progress.h"
#include "apps/workload.h"
#include "fullbore/data/random_tokens.h"

namespace fullbore {
namespace {

int64_t random_vocabulary(const Config& config, int64_t given) {
  if (config.data.batching != "windows" && config.data.batching != "sequences")
    throw UsageError(fmt::format(
        "data.batching is {}, and random tokens make no documents: name a text by data.path=FILE, "
        "or set data.batching=windows",
        config.data.batching));
  if (given > 0) return given;
  if (config.model.vocabulary > 0) return config.model.vocabulary;
  throw UsageError(
      "without a text it is not known how many distinct tokens there are: name it by "
      "data.path=FILE, or pass --vocabulary N, or set model.vocabulary");
}

/// What of a job a measurement needs, on random tokens.
TrainingJob random_job(const Config& config, int64_t vocabulary) {
  const int64_t segments = config.hybrid.data.segments;
  TrainingJob job;
  job.loss = model_loss(config, vocabulary);
  job.training = std::make_shared<RandomTokens>(
      vocabulary, WindowOptions{config.train.batch_size, config.model.context * segments},
      static_cast<uint64_t>(config.run.seed), config.data.batching == "sequences" ? segments : 0);
  job.tokens_per_step = config.train.batch_size * config.model.context * segments;
  job.options = training_options(config);
  return job;
}

std::string about_text(const Config& config, const TextData& text) {
  if (makes_examples(config)) return "examples " + about_examples(config);
  const std::string known =
      fmt::format("text     {}: {} tokens ({}), {} distinct", config.data.path, text.tokens->size(),
                  text.tokenizer->kind(), text.tokenizer->vocabulary_size());
  if (config.data.batching == "sequences")
    return fmt::format("{}; held out {}", known, split_text_about(config));
  const TokenSplit split = split_text(config, text);
  return fmt::format("{}; {} to train on, {} held out", known, split.training.size(),
                     split.validation.size());
}

}  // namespace

Workload language_workload(const Config& config, Console& console, const StandIn& stand_in) {
  Workload workload;
  workload.unit = "tokens";
  workload.shapes = batch_shapes;
  workload.validates = [](const Config& each) { return each.data.validation_fraction > 0; };
  const bool made_up = makes_examples(config) && stand_in.vocabulary == 0;
  const bool random =
      stand_in.allowed && !made_up && (config.data.path.empty() || stand_in.vocabulary > 0);
  if (random) {
    const int64_t tokens = random_vocabulary(config, stand_in.vocabulary);
    workload.batches = fmt::format("random tokens, {} kinds", tokens);
    workload.loss = [tokens](const Config& each) { return model_loss(each, tokens); };
    workload.job = [tokens](const Config& each) { return random_job(each, tokens); };
    workload.about = [](const Config&) { return std::string(); };
    return workload;
  }
  console.live("reading the text");
  const auto text = std::make_shared<const TextData>(
      made_up ? example_text(config) : open_text(config, text_progress(console)));
  console.clear();
  workload.batches = made_up ? about_examples(config) : config.data.path;
  workload.loss = [text](const Config& each) {
    return model_loss(each, text->tokenizer->vocabulary_size());
  };
  workload.job = [text](const Config& each) { return training_job(each, *text); };
  workload.about = [text](const Config& each) { return about_text(each, *text); };
  workload.weight_keys = language_weight_keys(config);
  workload.weight_tables = [text](const Config& each, const WeightSource& source) {
    return language_weight_tables(each, *text->tokenizer, source);
  };
  workload.foreign_weights = [text](const Config& each) {
    return huggingface_weights(each, *text->tokenizer);
  };
  return workload;
}

}  // namespace fullbore
