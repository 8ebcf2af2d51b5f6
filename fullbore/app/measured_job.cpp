#include "fullbore/app/measured_job.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "fullbore/app/job_options.h"
#include "fullbore/app/memory_plan.h"
#include "fullbore/app/output.h"
#include "fullbore/app/workload.h"
#include "fullbore/base/files.h"
#include "fullbore/base/write_stream.h"

namespace fullbore {
namespace {

/// "12 x 64 tokens".
std::string batch_text(const Config& config, const std::vector<BatchField>& fields,
                       const OpenedWorkload& workload) {
  std::string own = workload.batch_size ? workload.batch_size(config) : "";
  if (!own.empty()) return own;
  const Shape& shape = fields.front().type.shape;
  return fmt::format("{} {}", fmt::join(shape.dims(), " x "), workload.unit);
}

void write_device(const std::string& path, const std::string& text) {
  const int device = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  int reason = device < 0 ? errno : write_stream(device, text);
  if (device >= 0 && ::close(device) != 0 && reason == 0) reason = errno;
  if (reason != 0)
    throw DataError(
        fmt::format("cannot write {}: {}", path, std::generic_category().message(reason)));
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
  const OpenedWorkload workload =
      open_workload(config, console, {.vocabulary = vocabulary, .allowed = true});
  FittedConfig fitted = fit_memory(config, workload);
  TrainingJob job = workload.job(fitted.config);
  set_plans(fitted.config, fitted.run, job);
  const std::vector<BatchField> fields = job.training->fields();
  return {fitted.config, std::move(job), workload.batches, std::move(fitted.decisions),
          batch_text(fitted.config, fields, workload)};
}

double peak_flops(const Config& config, const MachinePeaks& peaks) {
  const CompileOptions options = compile_options(config);
  return peak_flops(options.precision, peaks, options.tf32);
}

std::string job_text(const Config& config, const std::string& batch, int64_t parameters,
                     int threads) {
  const int64_t parallel = microbatches(config).parallel;
  return fmt::format("{}, {} parameters, {}{}, {}{}, {} thread{}", config.model.name, parameters,
                     batch,
                     parallel > 1 ? fmt::format(" in {} parallel microbatches", parallel) : "",
                     config.engine.precision, config.engine.row_invariant ? " row-invariant" : "",
                     threads, threads == 1 ? "" : "s");
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

void refuse_existing(const std::string& path, bool force) {
  std::error_code error;
  // A device or a pipe takes text without losing any.
  if (!force && std::filesystem::is_regular_file(path, error))
    throw UsageError(fmt::format("{} is there already; --force replaces it", path));
}

void write_output_file(const std::string& path, const std::string& text) {
  if (path == "-") {
    write_output(text);
    return;
  }
  // A device or a pipe takes the text itself; a link keeps leading to where the text is.
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) return write_device(path, text);
  const bool link = fs::exists(status) && fs::is_symlink(path, error);
  write_file_atomically(link ? fs::canonical(path).string() : path, text).take_or_throw();
}

}  // namespace fullbore
