#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "fullbore/app/commands.h"
#include "fullbore/app/job_options.h"
#include "fullbore/app/json_text.h"
#include "fullbore/app/measured_job.h"
#include "fullbore/app/output.h"
#include "fullbore/app/version.h"
#include "fullbore/lab/quality/completed_run.h"
#include "fullbore/monitor/experiment_record.h"
#include "fullbore/monitor/machine.h"
#include "fullbore/monitor/sensor_summary.h"
#include "fullbore/monitor/summary_file.h"
#include "fullbore/train/config.h"
#include "fullbore/train/config_schema.h"

namespace fullbore {
namespace {

struct RecordArguments {
  std::vector<std::string> subjects;
  std::string name;
  std::string baseline;
  std::string output;
  bool force = false;
  bool despite = false;
};

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

/// A setting of any model, as YAML; "" where the model has no such key.
std::string setting(const Config& config, const char* key) {
  const ConfigField* const field = find_config_field(key);
  return field != nullptr && field->is_for(config) ? value_yaml(*field, config) : "";
}

int64_t whole_setting(const Config& config, const char* key) {
  const std::string text = setting(config, key);
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::map<std::string, std::string> settings_of(const Config& config) {
  std::map<std::string, std::string> settings;
  for (const ConfigField& field : config_fields())
    if (field.is_for(config) && field.key != "run.dir" && field.key != "run.name" &&
        field.key != "run.seed")
      settings.emplace(field.key, value_yaml(field, config));
  return settings;
}

/// Does every batch have all its tokens? Only then do sizes say how many a step has.
bool has_full_rows(const Config& config) {
  const std::string batching = setting(config, "data.batching");
  if (!batching.empty() && batching != "windows" && batching != "sequences") return false;
  // A size of data that a model has of its own makes batches that nobody here knows the tokens of.
  const Config defaults;
  return std::ranges::none_of(config_fields(), [&](const ConfigField& field) {
    return field.is_size && field.section() == "data" && field.key != "data.prefetch" &&
           field.is_for(config) && value_yaml(field, config) != value_yaml(field, defaults);
  });
}

void take_times(const nlohmann::json& summary, ExperimentRecord& record) {
  constexpr double kMilliseconds = 1000;
  record.time_per_step_ms =
      kMilliseconds * figure(summary, "measured_seconds") / figure(summary, "measured_steps");
  const auto found = summary.find("step_times");
  if (found == summary.end()) return;
  const StepHistogram times = StepHistogram::from_json(*found).take_or_throw();
  record.step_ms_p10 = kMilliseconds * times.quantile(0.1);
  record.step_ms_p50 = kMilliseconds * times.quantile(0.5);
  record.step_ms_p90 = kMilliseconds * times.quantile(0.9);
}

/// What made the steps, as the run says. Older ones do not: then it is taken to be this machine and this build.
void take_maker(const nlohmann::json& summary, const Config& config, ExperimentRecord& record) {
  record.build = version();
  const auto maker = summary.find("made_by");
  if (maker != summary.end() && maker->is_object()) {
    if (const std::string build = maker->value("build", ""); !build.empty())
      record.build += ", " + build;
    record.hardware = fmt::format("{}, {} threads", maker->value("hardware", ""),
                                  maker->value("workers", int64_t{0}));
    return;
  }
  const std::shared_ptr<Device> device = open_job_device(config);
  record.hardware =
      fmt::format("{}, {} threads", known_machine(*device).processor, device->facts().workers);
}

ExperimentRecord record_of_run(const std::string& path) {
  const CompletedRun run = read_completed_run(path, ForeignModels::read);
  const Config& config = run.config;
  const std::string summary_path = path + "/summary.json";
  const nlohmann::json summary = read_summary(summary_path).take_or_throw().json;
  ExperimentRecord record;
  record.name = config.run.name.empty() ? path : config.run.name;
  record.date = date_of(summary_path);
  record.batch_size = config.train.batch_size;
  record.num_workers = config.data.workers;
  // Steps that count no tokens have no sequences, whatever a key that nobody reads is set to.
  const bool has_tokens = figure(summary, "tokens_per_second") > 0;
  record.seq_len = has_tokens ? whole_setting(config, "model.context") : 0;
  record.full_rows = has_full_rows(config);
  record.precision = config.engine.precision;
  record.fused = std::ranges::find(config.engine.disabled_passes, "fuse") ==
                 config.engine.disabled_passes.end();
  record.throughput_tok_s = figure(summary, "tokens_per_second");
  record.throughput_samples_s = figure(summary, "samples_per_second");
  take_times(summary, record);
  take_sensors(summarize_sensors(path).take_or_throw(), record);
  record.memory_mb = figure(summary, "peak_bytes") / 1e6;
  record.val_loss = figure(summary, "final_validation_loss");
  record.final_loss = figure(summary, "final_train_loss");
  record.steps = run.steps;
  record.rng_key = run.seed();
  record.split = std::isfinite(record.val_loss) ? setting(config, "data.split") : "";
  record.model = config.model.name;
  record.data = run.data();
  record.settings = settings_of(config);
  record.settings.insert(run.foreign.begin(), run.foreign.end());
  take_maker(summary, config, record);
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
  for (const ExperimentRecord& each : records) {
    RecordDifferences differences = record_differences(each, records.front());
    differences.refused.insert(differences.refused.end(), differences.told.begin(),
                               differences.told.end());
    if (!differences.refused.empty())
      throw UsageError(
          fmt::format("record: {} and {} are of several settings: {}; repeats of one were expected",
                      records.front().name, each.name, fmt::join(differences.refused, ", ")));
  }
  ExperimentRecord record = mean_of(records);
  if (!arguments.name.empty()) record.name = arguments.name;
  std::optional<ExperimentRecord> baseline;
  if (!arguments.baseline.empty()) baseline = record_of(arguments.baseline);
  if (baseline) {
    const RecordDifferences differences = record_differences(record, *baseline);
    if (!differences.refused.empty() && !arguments.despite)
      throw UsageError(fmt::format(
          "record: {} and {} are no two settings of one experiment: {}; --despite compares them",
          record.name, baseline->name, fmt::join(differences.refused, ", ")));
    for (const std::string& told : differences.told)
      print_message("{} against {}: {}\n", record.name, baseline->name, told);
  }
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
  command.add_flag("--despite", arguments->despite,
                   "Compare with a baseline of other settings, data or steps all the same");
  command.footer(R"(
Change one thing at a time, run each setting three times or more in turns, and compare records, not
numbers copied by hand. Figures of several runs are averaged. A baseline may differ in settings of engine,
run and log, which are told; other settings, data or steps are refused unless --despite. The gate is passed
where the validation loss is above the baseline's by 0.05 at most; `lab gate` tests it over seeds.

Tokens a second, as the trainer counted them, times the time of a step must be the tokens that a step has
by its settings, within 2 %; else the record is told to be inconsistent. Percentiles are of single steps.
Sensors that the machine lacks are null.

Example:
  fullbore record runs/base-1 runs/base-2 runs/base-3 -o base.json
  fullbore record runs/bf16-1 runs/bf16-2 runs/bf16-3 --name bf16 --baseline base.json)");
  command.runs([arguments] { return run_record(*arguments); });
}

}  // namespace fullbore
