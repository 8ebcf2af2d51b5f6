#include "fullbore/text/trained_text_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "fullbore/app/trained_state.h"
#include "fullbore/base/hash.h"
#include "fullbore/base/text.h"
#include "fullbore/data/bpe_ranks.h"
#include "fullbore/data/byte_tokenizer.h"
#include "fullbore/data/character_tokenizer.h"
#include "fullbore/data/document_stream.h"
#include "fullbore/data/recorded_tokenizer.h"
#include "fullbore/data/token_cache.h"
#include "fullbore/device/registry.h"
#include "fullbore/text/text_batches.h"
#include "fullbore/text/text_keys.h"
#include "fullbore/train/batch_maker.h"
#include "fullbore/train/run_checkpoints.h"

namespace fullbore {
namespace {

std::string identity(const TokenCorpus& tokens, const Config& config) {
  std::string text =
      fmt::format("{} bytes, xxHash64 {}", tokens.content_bytes(), hash_hex(tokens.content_hash()));
  if (text_keys(config).data.split != "fraction")
    text += ", split by " + text_keys(config).data.split;
  return text;
}

/// Token shards, or text that nobody has made tokens of yet.
bool are_shards(const TextSources& sources) {
  const auto is_shard = [](const TextFile& file) { return is_token_shard(file.path); };
  const auto shards = std::count_if(sources.files.begin(), sources.files.end(), is_shard);
  if (shards == 0) return false;
  if (static_cast<size_t>(shards) < sources.files.size())
    throw DataError(fmt::format("{} holds token shards and other files", sources.name));
  return true;
}

TextData open_shards(const Config& config, const TextSources& sources) {
  std::vector<std::string> paths;
  for (const TextFile& file : sources.files) paths.push_back(file.path);
  auto tokens = std::make_shared<const TokenCorpus>(TokenCorpus::open(paths).take_or_throw());
  std::shared_ptr<const Tokenizer> tokenizer = tokens->tokenizer().take_or_throw();
  return {sources.name, std::move(tokenizer), tokens, identity(*tokens, config)};
}

TextData tokenize(const Config& config, const TextSources& sources,
                  std::shared_ptr<const Tokenizer> tokenizer, const TextProgress& progress) {
  const ContentHash content = hash_text_sources(sources).take_or_throw();
  TokenizeOptions options;
  options.workers = worker_count(config);
  options.progress = progress;
  CachedTokens cached =
      cached_tokens(sources, content, *tokenizer, token_cache_folder(config), options)
          .take_or_throw();
  std::vector<TokenShard> shards;
  shards.push_back(std::move(cached.tokens));
  auto tokens =
      std::make_shared<const TokenCorpus>(TokenCorpus::create(std::move(shards)).take_or_throw());
  return {sources.name, std::move(tokenizer), tokens, identity(*tokens, config)};
}

/// The files that `path` means; standard input is kept in the cache first.
TextSources text_at(const Config& config, const std::string& path) {
  if (path != "-") return find_text(path, text_keys(config).data.field).take_or_throw();
  const std::string kept = keep_standard_input(token_cache_folder(config)).take_or_throw();
  return find_text(kept, text_keys(config).data.field).take_or_throw();
}

}  // namespace

TextData open_text(const Config& config, const TextProgress& progress) {
  if (config.data.path.empty())
    throw UsageError("data.path is empty: name the text to learn from by data.path=FILE");
  const TextSources sources = text_at(config, config.data.path);
  if (are_shards(sources)) return open_shards(config, sources);
  return tokenize(config, sources, make_tokenizer(text_keys(config).data.tokenizer, sources),
                  progress);
}

TextData open_text(const Config& config, const std::string& path,
                   std::shared_ptr<const Tokenizer> tokenizer, const TextProgress& progress) {
  const TextSources sources = text_at(config, path);
  if (!are_shards(sources)) return tokenize(config, sources, std::move(tokenizer), progress);
  TextData text = open_shards(config, sources);
  if (text.tokenizer->hash() != tokenizer->hash())
    throw DataError(fmt::format("{}: made by another tokenizer than the model's", path));
  return text;
}

std::string token_cache_folder(const Config& config) { return data_cache_folder(config, "tokens"); }

size_t tokenizer_path(std::string_view name) {
  if (name.starts_with("bpe:")) return 4;
  if (!name.starts_with("ranks:")) return name.size();
  const size_t colon = name.find(':', 6);
  if (colon == std::string_view::npos)
    throw UsageError(
        fmt::format("data.tokenizer is '{}'; ranks:<family>:<file> was expected", name));
  return colon + 1;
}

std::shared_ptr<const Tokenizer> make_tokenizer(const std::string& name,
                                                const TextSources& sources) {
  if (name == "character" || name == "compact")
    return std::make_shared<CharacterTokenizer>(collect_characters(sources).take_or_throw());
  if (name == "recorded")
    return std::make_shared<RecordedTokenizer>(collect_characters(sources).take_or_throw());
  if (name == "byte") return std::make_shared<ByteTokenizer>();
  const size_t path = tokenizer_path(name);
  if (name.starts_with("bpe:")) return load_tokenizer(name.substr(path)).take_or_throw();
  if (name.starts_with("ranks:"))
    return load_rank_file(name.substr(path), name.substr(6, path - 7)).take_or_throw();
  throw UsageError(fmt::format(
      "data.tokenizer is '{}'; character, compact, recorded, byte, bpe:<folder or "
      "tokenizer.json> or ranks:<family>:<file> was expected.{}",
      name, did_you_mean(name, {"character", "compact", "recorded", "byte", "bpe:", "ranks:"})));
}

TokenSplit split_text(const Config& config, const TextData& text) {
  const SplitBy by = text_keys(config).data.split == "file"       ? SplitBy::kFile
                     : text_keys(config).data.split == "document" ? SplitBy::kDocument
                                                                  : SplitBy::kToken;
  return split_corpus(*text.tokens, config.data.validation_fraction, by, text.path).take_or_throw();
}

int64_t table_rows(const Config& config, int64_t tokens) {
  const int64_t vocabulary =
      text_keys(config).model.vocabulary > 0 ? text_keys(config).model.vocabulary : tokens;
  if (vocabulary < tokens)
    throw UsageError(
        fmt::format("model.vocabulary is {}, the text has {} distinct tokens", vocabulary, tokens));
  return vocabulary;
}

StepFigures step_figures(const Config& config) {
  // What is added to the loss while training is in no perplexity.
  const bool plain = config.train.label_smoothing == 0 && text_keys(config).train.z_loss == 0;
  const TextTask* const task = text_task(config);
  const auto of_model = text_model(config).figure;
  const auto of_task = task != nullptr ? task->figure : nullptr;
  return [=, made_up = task != nullptr](const StepResults& results, double validation_loss) {
    std::string text;
    const auto add = [&](const std::string& more) {
      if (!more.empty()) text += (text.empty() ? "" : "  ") + more;
    };
    const std::string validation = std::isfinite(validation_loss)
                                       ? fmt::format("/{:.4g}", std::exp(validation_loss))
                                       : std::string();
    for (const auto& [name, value] : results) {
      if (name == "loss" && !made_up)
        add("ppl " + (plain ? fmt::format("{:.4g}", std::exp(value)) : "-") + validation);
      if (of_task) add(of_task(name, value));
      if (of_model) add(of_model(name, value));
    }
    return text;
  };
}

TrainingJob training_job(const Config& config, const TextData& text) {
  TrainingJob job;
  job.loss = model_loss(config, text.tokenizer->vocabulary_size());
  const TextTask* const task = text_task(config);
  if (task != nullptr && task->maker)
    job.training = job.maker = task->maker(config, text);
  else
    job.training = training_batches(config, text);
  if (holds_out_batches(config))
    job.validation = validation_set(config, text, config.train.eval_batches);
  job.tokens_per_step = job.training->fields().front().type.elements();
  job.figures = step_figures(config);
  if (task != nullptr) job.sample_unit = task->sample;
  if (task != nullptr && task->samples_per_row) job.samples_per_row = task->samples_per_row(config);
  job.options = training_options(config);
  job.tokenizer = text.tokenizer->to_json();
  job.identity = {{"data", text.identity}, {"model", text_model(config).identity(config)}};
  job.config = config_yaml(config);
  job.config_json = config_json(config);
  return job;
}

bool holds_out_batches(const Config& config) {
  const TextTask* const task = text_task(config);
  return config.data.validation_fraction > 0 && (task == nullptr || !task->maker);
}

DecodeFunction model_decode(const Config& config, int64_t tokens) {
  return text_model(config).decode(config, tokens);
}

PagedDecodeFunction model_paged_decode(const Config& config, int64_t tokens) {
  const auto& decode = text_model(config).paged_decode;
  if (!decode)
    throw UsageError(
        fmt::format("a {} model continues one prompt at a time, not several", config.model.name));
  return decode(config, tokens);
}

bool has_paged_decode(const Config& config) {
  return static_cast<bool>(text_model(config).paged_decode);
}

RolloutSizes rollout_sizes(const Config& config, int64_t tokens, int64_t rows) {
  return {.slots = rows,
          .context = text_keys(config).model.context,
          .vocabulary = tokens,
          .pool_rows = rows + 1,
          .pool_dtype = pool_dtype(compile_options(config))};
}

GeneratorSizes generator_sizes(const Config& config, int64_t tokens, int64_t samples) {
  constexpr int64_t kRecurrentChunk = 512;  // no matter for results: what does not pay any more
  if (text_model(config).is_recurrent)
    return {.samples = samples, .context = 0, .vocabulary = tokens, .chunk = kRecurrentChunk};
  return {.samples = samples, .context = text_keys(config).model.context, .vocabulary = tokens};
}

namespace {

/// The State of the model, with caches for so many texts to be continued.
Graph model_graph(const Config& config, int64_t tokens, const LoadOptions& options) {
  const int64_t samples = options.samples;
  if (options.is_paged && has_paged_decode(config))
    return Rollout::trace(model_paged_decode(config, tokens),
                          rollout_sizes(config, tokens, samples));
  if (samples == 0) return trace_evaluation(model_loss(config, tokens), batch_fields(config)).graph;
  return Generator::trace(model_decode(config, tokens), generator_sizes(config, tokens, samples),
                          1);
}

/// A token of a small model is too little work to share: waiting for one another costs more.
int decode_workers(const Config& config, const std::vector<StateEntry>& entries) {
  constexpr int64_t kWorthSharing = int64_t{32} << 20;
  int64_t bytes = 0;
  for (const StateEntry& entry : entries) bytes += entry.type.bytes();
  return config.engine.threads > 0 || bytes >= kWorthSharing ? worker_count(config) : 1;
}

/// The configuration of a model as the user wants it run.
Config with_overrides(const Config& config, const std::string& source,
                      const std::vector<std::string>& overrides) {
  if (overrides.empty()) return config;
  for (const std::string& text : overrides)
    if (!text.starts_with("engine."))
      throw UsageError(
          fmt::format("'{}': a trained model is run by settings of section engine, such as "
                      "engine.precision=bf16; the rest is the model's own",
                      text));
  Config changed = parse_config(config_yaml(config), source, overrides);
  changed.train.frozen_from = config.train.frozen_from;
  return changed;
}

TrainedModel as_trained(ForeignModel foreign, const std::string& path, const LoadOptions& options) {
  Config& config = foreign.config;
  config = with_overrides(config, path, options.overrides);
  choose_processor(config);
  choose_caches(config);
  const std::vector<StateEntry> entries =
      state_entries(model_graph(config, foreign.tokenizer->vocabulary_size(), options));
  const int workers = options.decodes ? decode_workers(config, entries) : worker_count(config);
  State state(entries, open_device(config.engine.device, workers));
  foreign.fill(state);
  const std::string identity = text_model(config).identity(config);
  return {path, 0, std::move(config), std::move(foreign.tokenizer), std::move(state), identity};
}

}  // namespace

TrainedModel load_model(const std::string& run_or_checkpoint, const LoadOptions& options) {
  for (const TextModel& model : text_models())
    if (model.layout && model.layout->open)
      if (std::optional<ForeignModel> foreign = model.layout->open(run_or_checkpoint))
        return as_trained(std::move(*foreign), run_or_checkpoint, options);
  const OpenedCheckpoint checkpoint = open_checkpoint(run_or_checkpoint);
  const std::string& path = checkpoint.folder.path();
  Config config = stored_config(checkpoint, options.tells);
  config.train.frozen_from = options.frozen_from;
  text_model(config, path);
  config = with_overrides(config, path, options.overrides);
  choose_processor(config);
  choose_caches(config);
  std::shared_ptr<const Tokenizer> tokenizer =
      parse_tokenizer(checkpoint.record.tokenizer, path).take_or_throw();
  const int64_t tokens = tokenizer->vocabulary_size();
  const std::vector<StateEntry> entries =
      trained_entries(checkpoint, model_graph(config, tokens, options));
  State state = trained_state(
      checkpoint, config, entries,
      open_device(config.engine.device,
                  options.decodes ? decode_workers(config, entries) : worker_count(config)));
  const auto named = checkpoint.record.identity.find("model");
  const std::string identity = fmt::format(
      "{}, tokenizer {}, step {}", named == checkpoint.record.identity.end() ? "" : named->second,
      hash_hex(tokenizer->hash()), checkpoint.record.step);
  return {
      path,    checkpoint.record.step, std::move(config), std::move(tokenizer), std::move(state),
      identity};
}

}  // namespace fullbore
