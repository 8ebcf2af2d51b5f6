#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "fullbore/app/job_options.h"
#include "fullbore/app/json_text.h"
#include "fullbore/app/measured_job.h"
#include "fullbore/app/output.h"
#include "fullbore/app/version.h"
#include "fullbore/base/threads.h"
#include "fullbore/monitor/csv.h"
#include "fullbore/monitor/experiment_record.h"
#include "fullbore/monitor/machine.h"
#include "fullbore/monitor/run_summary.h"
#include "fullbore/monitor/sample_statistics.h"
#include "fullbore/text/text_commands.h"
#include "fullbore/text/text_keys.h"
#include "fullbore/text/text_model.h"
#include "fullbore/train/config.h"
#include "fullbore/train/run_directory.h"
#include "fullbore/train/stored_config.h"

namespace fullbore {
namespace {

struct RecordArguments {
  std::vector<std::string> subjects;
  std::string name;
  std::string baseline;
  std::string output;
  bool force = false;
};

/// Steps of a run whose times are not looked at: caches fill, pages are met.
constexpr int64_t kWarmUp = 20;

double figure(const nlohmann::json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number() ? found->get<double>()
                                                   : ExperimentRecord::kUnknown;
}

/// When the run ended, as its summary was written.
std::string date_of(const std::string& path) {
  const auto written = std::chrono::file_clock::to_sys(std::filesystem::last_write_time(path));
  const std::time_t seconds =
      std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(written));
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

/// Milliseconds of a step by each line of metrics behind the warm-up.
std::vector<double> step_times(const std::string& metrics, int64_t tokens_per_step) {
  std::vector<double> times;
  const JsonLinesFile file = read_json_lines(metrics).take_or_throw();
  if (!file.problems.empty()) throw DataError(file.problems.front());
  for (const auto& line : file.records) {
    const bool counts =
        line.value("kind", "") == "train" && line.value("step", int64_t{0}) > kWarmUp;
    const double rate = counts ? figure(line, "tokens_per_second") : ExperimentRecord::kUnknown;
    if (rate > 0) times.push_back(1000 * static_cast<double>(tokens_per_step) / rate);
  }
  return times;
}

ExperimentRecord record_of_run(const std::string& path) {
  const RunDirectory run = RunDirectory::open(path);
  const Config config = load_stored_config(run.config()).config;
  if (!is_text_model(config))
    throw UsageError(fmt::format("record: {} is of a {} model; its batches have no tokens", path,
                                 config.model.name));
  const nlohmann::json summary = read_summary(run.summary()).take_or_throw().json;
  if (summary.value("status", "") != "completed")
    throw DataError(fmt::format("{}: the run is not completed", run.summary()));
  ExperimentRecord record;
  record.name = config.run.name.empty() ? path : config.run.name;
  record.date = date_of(run.summary());
  record.batch_size = config.train.batch_size;
  record.num_workers = config.data.workers;
  record.seq_len = text_keys(config).model.context;
  record.precision = config.engine.precision;
  record.fused = std::ranges::find(config.engine.disabled_passes, "fuse") ==
                 config.engine.disabled_passes.end();
  record.throughput_tok_s = figure(summary, "tokens_per_second");
  const std::string& batching = text_keys(config).data.batching;
  const bool rows_are_full = batching == "windows" || batching == "sequences";
  if (rows_are_full)
    record.time_per_step_ms =
        1000 * static_cast<double>(record.tokens_per_step()) / record.throughput_tok_s;
  record.memory_mb = figure(summary, "peak_bytes") / 1e6;
  record.val_loss = figure(summary, "final_validation_loss");
  record.final_loss =
      std::isfinite(record.val_loss) ? record.val_loss : figure(summary, "final_train_loss");
  record.steps = summary.value("steps", int64_t{0});
  record.rng_key = config.run.seed;
  record.split = std::isfinite(record.val_loss) ? text_keys(config).data.split : "";
  record.build = version();
  const std::shared_ptr<Device> device = open_job_device(config);
  record.hardware =
      fmt::format("{}, {} threads", known_machine(*device).processor, device->facts().workers);
  const std::vector<double> times = step_times(run.metrics(), record.tokens_per_step());
  if (rows_are_full && !times.empty()) {
    record.step_ms_p10 = quantile(times, 0.1);
    record.step_ms_p50 = median(times);
    record.step_ms_p90 = quantile(times, 0.9);
  }
  return record;
}

ExperimentRecord record_of(const std::string& subject) {
  return std::filesystem::is_directory(subject) ? record_of_run(subject)
                                                : read_experiment_record(subject).take_or_throw();
}

ExitCode run_record(const RecordArguments& arguments) {
  check_output_file(arguments.output);
  refuse_existing(arguments.output, arguments.force);
  std::vector<ExperimentRecord> records;
  for (const std::string& subject : arguments.subjects) records.push_back(record_of(subject));
  for (const ExperimentRecord& each : records)
    if (each.tokens_per_step() != records.front().tokens_per_step() ||
        each.precision != records.front().precision)
      throw UsageError("record: the runs are of several settings; repeats of one were expected");
  ExperimentRecord record = mean_of(records);
  if (!arguments.name.empty()) record.name = arguments.name;
  std::optional<ExperimentRecord> baseline;
  if (!arguments.baseline.empty()) baseline = record_of(arguments.baseline);
  const nlohmann::ordered_json json = to_json(record, baseline ? &*baseline : nullptr);
  write_output_file(arguments.output.empty() ? "-" : arguments.output, json_text(json));
  if (const std::optional<std::string> wrong = inconsistency(record))
    print_message("{}: not consistent: {}\n", record.name, *wrong);
  return ExitCode::kOk;
}

}  // namespace

void add_record_command(Command root) {
  Command command =
      root.add_subcommand("record", "What a run measured, as one record to compare others with");
  auto arguments = std::make_shared<RecordArguments>();
  command
      .add_option("RUN", arguments->subjects,
                  "Run directories, repeats of one setting, or a record that is there already")
      .required();
  command.add_option("--name", arguments->name, "Of the setting; by default run.name");
  command.add_option(
      "--baseline", arguments->baseline,
      "Run directory or record to compare with: speedup, difference of the losses, gate");
  command.add_option("-o,--output", arguments->output, "File; by default standard output");
  command.add_flag("--force", arguments->force, "Replace a file that is there");
  command.footer(R"(
Change one thing at a time, run each setting three times or more in turns, and compare records, not
numbers copied by hand. Figures of several runs are averaged. A record whose throughput times its time
of a step is not its tokens of a step, within 2 %, is told to be inconsistent. The gate is passed where
the losses differ by 0.05 at most. Sensors that the machine lacks are null.

Example:
  fullbore record runs/base-1 runs/base-2 runs/base-3 -o base.json
  fullbore record runs/bf16-1 runs/bf16-2 runs/bf16-3 --name bf16 --baseline base.json)");
  command.runs([arguments] { return run_record(*arguments); });
}

}  // namespace fullbore
