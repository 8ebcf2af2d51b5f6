#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "fullbore/app/output.h"
#include "fullbore/data/random_tokens.h"
#include "fullbore/monitor/run_log.h"
#include "fullbore/text/generate_text.h"
#include "fullbore/text/sample_quality.h"
#include "fullbore/text/text_batches.h"
#include "fullbore/text/text_keys.h"
#include "fullbore/text/text_model.h"
#include "fullbore/text/text_progress.h"
#include "fullbore/text/text_weights.h"
#include "fullbore/train/run_checkpoints.h"
#include "fullbore/train/run_directory.h"

namespace fullbore {
namespace {

int64_t random_vocabulary(const Config& config, int64_t given) {
  if (text_keys(config).data.batching != "windows" &&
      text_keys(config).data.batching != "sequences")
    throw UsageError(fmt::format(
        "data.batching is {}, and random tokens make no documents: name a text by data.path=FILE, "
        "or set data.batching=windows",
        text_keys(config).data.batching));
  if (given > 0) return given;
  if (text_keys(config).model.vocabulary > 0) return text_keys(config).model.vocabulary;
  throw UsageError(
      "without a text it is not known how many distinct tokens there are: name it by "
      "data.path=FILE, or pass --vocabulary N, or set model.vocabulary");
}

/// What of a job a measurement needs, on random tokens.
TrainingJob random_job(const Config& config, int64_t vocabulary) {
  const int64_t segments = batch_segments(config);
  TrainingJob job;
  job.loss = model_loss(config, vocabulary);
  job.training = std::make_shared<RandomTokens>(
      vocabulary,
      WindowOptions{config.train.batch_size, text_keys(config).model.context * segments},
      static_cast<uint64_t>(config.run.seed),
      text_keys(config).data.batching == "sequences" ? segments : 0);
  job.tokens_per_step = config.train.batch_size * text_keys(config).model.context * segments;
  job.options = training_options(config);
  return job;
}

std::string about_text(const Config& config, const TextData& text) {
  if (const TextTask* const task = text_task(config)) return "examples " + task->about(config);
  const std::string known =
      fmt::format("text     {}: {} tokens ({}), {} distinct", config.data.path, text.tokens->size(),
                  text.tokenizer->kind(), text.tokenizer->vocabulary_size());
  if (text_keys(config).data.batching == "sequences")
    return fmt::format("{}; held out {}", known, split_text_about(config));
  const TokenSplit split = split_text(config, text);
  return fmt::format("{}; {} to train on, {} held out", known, split.training.size(),
                     split.validation.size());
}

/// A text of the model's on standard output. DataError, told in the run's log too, where it is lost.
void print_sample(const RunDirectory& run, int64_t characters, Console& console) {
  console.line(fmt::format("sample   of {}", checkpoint_of(run.path())));
  GenerateOptions options;
  options.characters = characters;
  options.tells = false;  // the settings are this command's own
  try {
    generate_text(run.path(), options);
  } catch (const OutputError& error) {
    make_run_log(console, run.log()).take_or_throw()->debug("{}", error.what());
    throw DataError(error.what());
  }
}

void show_sample(const Config& config, const RunDirectory& run, Console& console) {
  const int64_t characters = text_keys(config).train.sample_characters;
  if (characters > 0 && config.engine.device != "null") print_sample(run, characters, console);
}

// Tokens settle how large a batch is, not its rows.
std::string batch_size_text(const Config& config) {
  const int64_t tokens = text_keys(config).data.tokens_per_batch;
  return tokens > 0 ? fmt::format("at most {} tokens", tokens) : "";
}

/// Tokens and what follows each of them.
double batch_bytes(const Config& config) {
  constexpr double kPairBytes = 8;
  const TextKeys& keys = text_keys(config);
  if (keys.data.tokens_per_batch > 0)
    return kPairBytes * static_cast<double>(keys.data.tokens_per_batch);
  return kPairBytes * static_cast<double>(std::max<int64_t>(1, config.train.batch_size)) *
         static_cast<double>(keys.model.context);
}

LeastMemory least_memory_of(const Config& config) {
  const TextKeys::Model& sizes = text_keys(config).model;
  LeastMemory least;
  least.parameters = static_cast<double>(sizes.vocabulary) * static_cast<double>(sizes.width) +
                     text_model(config).matrix_elements(config);
  least.batch_bytes = batch_bytes(config);
  return least;
}

/// Perplexity is e to the loss, and so is its margin.
QualityMetrics text_quality(const Config& config) {
  constexpr double kNats = 0.05;
  constexpr const char* kSource =
      "specification of language models, section 6.2: losses within 0.05";
  if (const TextTask* const task = text_task(config); task != nullptr && task->quality)
    return task->quality(config);
  QualityMetrics metrics = {{.name = "loss", .unit = "nats", .margin = kNats, .source = kSource},
                            {.name = "perplexity",
                             .margin = std::expm1(kNats),
                             .is_relative = true,
                             .source = "0.05 nats, as a share",
                             .recorded = "loss",
                             .scale = MetricScale::exponential}};
  if (const auto& further = text_model(config).quality) {
    const QualityMetrics own = further(config);
    metrics.insert(metrics.end(), own.begin(), own.end());
  }
  return metrics;
}

OpenedWorkload open_text_workload(const Config& config, Console& console,
                                  const StandIn& synthetic) {
  OpenedWorkload workload;
  workload.unit = "tokens";
  workload.shapes = batch_shapes;
  workload.validates = holds_out_batches;
  workload.batch_size = batch_size_text;
  workload.show = show_sample;
  const TextTask* const task = synthetic.vocabulary == 0 ? text_task(config) : nullptr;
  const bool random = synthetic.allowed && task == nullptr &&
                      (config.data.path.empty() || synthetic.vocabulary > 0);
  if (random) {
    const int64_t tokens = random_vocabulary(config, synthetic.vocabulary);
    workload.batches = fmt::format("random tokens, {} kinds", tokens);
    workload.loss = [tokens](const Config& each) { return model_loss(each, tokens); };
    workload.job = [tokens](const Config& each) { return random_job(each, tokens); };
    workload.about = [](const Config&) { return std::string(); };
    return workload;
  }
  console.live("reading the text");
  const auto text = std::make_shared<const TextData>(
      task != nullptr ? task->data(config) : open_text(config, text_progress(console)));
  console.clear();
  workload.batches = task != nullptr ? task->about(config) : config.data.path;
  workload.loss = [text](const Config& each) {
    return model_loss(each, text->tokenizer->vocabulary_size());
  };
  workload.job = [text](const Config& each) { return training_job(each, *text); };
  workload.about = [text](const Config& each) { return about_text(each, *text); };
  if (task != nullptr && task->beside)
    workload.beside = [task, text](const Config& each) {
      return task->beside(each, text->tokenizer->vocabulary_size());
    };
  if (task != nullptr && !task->sample.empty()) workload.sample = task->sample;
  workload.weight_keys = text_model(config).weight_keys;
  workload.weight_tables = [text](const Config& each, const WeightSource& source) {
    return text_weight_tables(each, *text->tokenizer, source);
  };
  workload.foreign_weights = [text](const Config& each) {
    return foreign_text_weights(each, *text->tokenizer);
  };
  return workload;
}

}  // namespace

Workload text_workload(const std::string& name, std::vector<TextModel> models) {
  Workload workload;
  workload.name = name;
  for (const TextModel& model : models) workload.keys.models.push_back(model.name);
  workload.keys.least_memory = least_memory_of;
  workload.open = open_text_workload;
  workload.quality = text_quality;
  workload.registers = [models = std::move(models)] {
    for (const TextModel& model : models) register_text_model(model);
    register_sample_quality();
  };
  return workload;
}

}  // namespace fullbore
