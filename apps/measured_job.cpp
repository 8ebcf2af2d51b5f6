#include "apps/measured_job.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "apps/job_options.h"
#include "apps/memory_plan.h"
#include "apps/workload.h"
#include "fullbore/base/files.h"

namespace fullbore {
namespace {

/// "12 x 64 tokens".
std::string batch_text(const Config& config, const std::vector<BatchField>& fields,
                       const std::string& unit) {
  if (config.data.tokens_per_batch > 0)
    return fmt::format("at most {} {}", config.data.tokens_per_batch, unit);
  const Shape& shape = fields.front().type.shape;
  return fmt::format("{} x {} {}", shape[0], shape[1], unit);
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
  choose_processor(config);
  choose_caches(config);
  const Workload workload =
      open_workload(config, console, {.vocabulary = vocabulary, .allowed = true});
  FittedConfig fitted = fit_memory(config, workload);
  TrainingJob job = workload.job(fitted.config);
  const std::vector<BatchField> fields = job.training->fields();
  return {fitted.config, std::move(job), workload.batches, std::move(fitted.decisions),
          batch_text(fitted.config, fields, workload.unit)};
}

double peak_flops(const Config& config, const MachinePeaks& peaks) {
  return peak_flops(compile_options(config).precision, peaks);
}

std::string job_text(const Config& config, const std::string& batch, int64_t parameters,
                     int threads) {
  const int64_t shards = batch_parts(config).shards;
  return fmt::format("{}, {} parameters, {}{}, {}, {} thread{}", config.model.name, parameters,
                     batch, shards > 1 ? fmt::format(" in {} shards", shards) : "",
                     config.engine.precision, threads, threads == 1 ? "" : "s");
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
