#include "apps/measured_job.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "apps/language_batches.h"
#include "apps/memory_plan.h"
#include "apps/text_progress.h"
#include "fullbore/base/files.h"
#include "fullbore/data/random_tokens.h"

namespace fullbore {
namespace {

int64_t random_vocabulary(const Config& config, int64_t given) {
  if (config.data.batching != "windows")
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
  const auto seed = static_cast<uint64_t>(config.run.seed);
  TrainingJob job;
  job.loss = model_loss(config, vocabulary);
  job.training = std::make_shared<RandomTokens>(
      vocabulary, WindowOptions{config.train.batch_size, config.model.context}, seed);
  job.tokens_per_step = config.train.batch_size * config.model.context;
  job.options.metrics = metrics_level(config.log.metrics);
  job.options.seed = seed;
  job.options.optimizer = optimizer_options(config);
  job.options.accumulate = config.engine.accumulate;
  job.options.compile = compile_options(config);
  job.options.loader = {.workers = static_cast<int>(config.data.workers),
                        .prefetch = static_cast<int>(config.data.prefetch)};
  job.options.workers = worker_count(config);
  return job;
}

}  // namespace

void add_measured_arguments(Command command, MeasuredArguments& arguments) {
  command.add_option("CONFIG", arguments.config, "YAML file").required();
  command.add_option("key=value", arguments.overrides, "Settings that override the file's");
  command
      .add_option("--vocabulary", arguments.vocabulary,
                  "Random tokens of so many kinds, no data.path")
      .between(int64_t{1}, int64_t{1} << 31);
}

MeasuredJob measured_job(const Config& config, int64_t vocabulary, Console& console) {
  choose_caches(config);
  if (config.data.path.empty() || vocabulary > 0) {
    const int64_t tokens = random_vocabulary(config, vocabulary);
    FittedConfig fitted = fit_memory(config, tokens);
    return {fitted.config, random_job(fitted.config, tokens),
            fmt::format("random tokens, {} kinds", tokens), std::move(fitted.decisions)};
  }
  const TextData text = open_text(config, text_progress(console));
  console.clear();
  FittedConfig fitted = fit_memory(config, text.tokenizer->vocabulary_size());
  return {fitted.config, training_job(fitted.config, text), config.data.path,
          std::move(fitted.decisions)};
}

double peak_flops(const Config& config, const MachinePeaks& peaks) {
  return peak_flops(compile_options(config).precision, peaks);
}

std::string job_text(const Config& config, int64_t parameters, int threads) {
  const std::string batch =
      config.data.tokens_per_batch > 0
          ? fmt::format("at most {}", config.data.tokens_per_batch)
          : fmt::format("{} x {}", config.train.batch_size, config.model.context);
  return fmt::format("{}, {} parameters, {} tokens, {}, {} thread{}", config.model.name, parameters,
                     batch, config.engine.precision, threads, threads == 1 ? "" : "s");
}

void check_output_file(const std::string& path) {
  if (path.empty() || path == "-") return;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!folder.empty() && !std::filesystem::is_directory(folder, error))
    throw DataError(fmt::format("{}: there is no folder {}", path, folder.string()));
  if (std::filesystem::is_directory(path, error))
    throw DataError(fmt::format("{}: is a folder; a file was expected", path));
}

void write_output_file(const std::string& path, const std::string& text) {
  if (path == "-") {
    fmt::print("{}", text);
    return;
  }
  const Status written = write_file_atomically(path, text);
  if (!written) throw DataError(written.error());
}

}  // namespace fullbore
