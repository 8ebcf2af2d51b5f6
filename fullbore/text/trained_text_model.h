#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/app/job_options.h"
#include "fullbore/data/token_windows.h"
#include "fullbore/data/tokenize.h"
#include "fullbore/text/text_model.h"
#include "fullbore/train/config.h"
#include "fullbore/train/evaluator.h"
#include "fullbore/train/generator.h"
#include "fullbore/train/trainer.h"

namespace fullbore {

/// Here a configuration becomes functions and batches: the one place where the trainer, the models
/// and the data of a language model meet.

/// A text as a model sees it.
struct TextData {
  std::string path;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const TokenCorpus> tokens;
  std::string identity;                  ///< of the contents, not of the path
  std::shared_ptr<const void> own = {};  ///< what a TextTask has in place of tokens
};
/// data.path by data.tokenizer: token shards as they are, text through the token cache. UsageError if
/// it is empty or there is no such tokenizer, DataError if it cannot be read. `progress` is told of the
/// bytes tokenised, and stops the work with a DataError when it returns false.
TextData open_text(const Config& config, const TextProgress& progress = {});
/// The text at `path` by the tokenizer of a trained model; DataError names a character outside its
/// vocabulary, or shards that another tokenizer made.
TextData open_text(const Config& config, const std::string& path,
                   std::shared_ptr<const Tokenizer> tokenizer, const TextProgress& progress = {});

/// The folder of the token cache: data.cache_dir, or the user's.
std::string token_cache_folder(const Config& config);
/// Where in data.tokenizer the path of a file begins, its size if it has none. UsageError: a rank file without a family.
size_t tokenizer_path(std::string_view name);
/// The tokenizer that data.tokenizer names; a vocabulary of characters is that of `sources`.
std::shared_ptr<const Tokenizer> make_tokenizer(const std::string& name,
                                                const TextSources& sources);
/// Tokens to learn from and tokens held out, by data.validation_fraction and data.split.
TokenSplit split_text(const Config& config, const TextData& text);

/// What generates; `tokens`: how many distinct ones the data have. UsageError if model.vocabulary is less.
DecodeFunction model_decode(const Config& config, int64_t tokens);

/// Rows of the token table for so many distinct tokens: as many, or model.vocabulary. UsageError if that is less.
int64_t table_rows(const Config& config, int64_t tokens);
/// Perplexity of the step and of the last validation, and what figures the model or the task of data.batching has.
StepFigures step_figures(const Config& config);

/// Is a part of the data measured on while training? Not where batches are made by the weights.
bool holds_out_batches(const Config& config);

/// The whole job. `config` is what the run keeps: with run.dir and absolute paths.
TrainingJob training_job(const Config& config, const TextData& text);

/// A trained model, out of a run or a checkpoint: what `eval`, `generate` and `export` start from.
struct TrainedModel {
  std::string path;  ///< of the checkpoint
  int64_t step = 0;
  Config config;
  std::shared_ptr<const Tokenizer> tokenizer;
  State state;  ///< the parameters, and the caches of the texts to be continued
  /// What decides what its parameters, and states that they have left, mean.
  std::string identity = {};
};
/// What a trained model is wanted for.
struct LoadOptions {
  int64_t samples = 0;   ///< texts that are to be continued, with caches for them
  bool tells = true;     ///< on stderr, what of its configuration is ignored
  bool decodes = false;  ///< token by token: a small model gets one worker
  bool is_paged =
      false;  ///< for a Rollout, where the model has caches of pages; else for a Generator
  /// Settings of the user, "engine.precision=bf16": of section engine alone.
  std::vector<std::string> overrides = {};
  std::string frozen_from = {};  ///< as trained_state() has train.frozen_from
};
/// `run_or_checkpoint`: a run directory (its best checkpoint), a checkpoint, or a folder in a layout of others
/// (ForeignLayout::open). The parameters are the raw ones or their exponential moving averages, as train.evaluate of the
/// run says. DataError if it is damaged or not of the model that its configuration says; UsageError where a model has no
/// paged caches.
TrainedModel load_model(const std::string& run_or_checkpoint, const LoadOptions& options = {});
/// What generates texts of different lengths together. UsageError: the model does not.
PagedDecodeFunction model_paged_decode(const Config& config, int64_t tokens);
bool has_paged_decode(const Config& config);
/// Sizes of a rollout of so many texts side by side, each of which begins at once.
RolloutSizes rollout_sizes(const Config& config, int64_t tokens, int64_t rows);
/// Sizes of a generator for the model.
GeneratorSizes generator_sizes(const Config& config, int64_t tokens, int64_t samples);

}  // namespace fullbore
