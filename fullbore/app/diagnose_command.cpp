#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "fullbore/app/commands.h"
#include "fullbore/app/job_options.h"
#include "fullbore/app/json_text.h"
#include "fullbore/app/measured_job.h"
#include "fullbore/app/output.h"
#include "fullbore/app/temporary_folder.h"
#include "fullbore/app/version.h"
#include "fullbore/lab/diagnosis/diagnosis.h"
#include "fullbore/lab/diagnosis/finished_run.h"
#include "fullbore/lab/diagnosis/recorded_run.h"
#include "fullbore/monitor/process.h"
#include "fullbore/train/run_directory.h"

namespace fullbore {
namespace {

struct DiagnoseArguments {
  MeasuredArguments job;
  int64_t steps = 0;  ///< 0: not given
  int64_t evaluation_batches = static_cast<int64_t>(RecordedRunOptions().evaluation_batches);
  std::string json;
};

/// None if a signal stopped it.
std::optional<Diagnosis> diagnose_config(const DiagnoseArguments& arguments, Console& console) {
  const auto start = process_start();
  const MeasuredJob job = measured_job(named_config(arguments.job.config, arguments.job.overrides),
                                       arguments.job.vocabulary, console);
  const TemporaryFolder folder("diagnose");
  std::optional<RecordedRun> run =
      record_run(job.job, job.config,
                 {.steps = arguments.steps > 0 ? arguments.steps : RecordedRunOptions().steps,
                  .evaluation_batches = static_cast<uint64_t>(arguments.evaluation_batches)},
                 folder.file("run"), console, start);
  if (!run) return std::nullopt;
  console.live("asking the passes");
  run->facts.inactive =
      inactive_switches(job.config, switch_facts(job.job, job.config, run->machine));
  console.clear();
  Diagnosis diagnosis;
  diagnosis.subject = arguments.job.config;
  diagnosis.job = job_text(job.config, job.batch, run->parameters, run->facts.threads);
  diagnosis.measured = fmt::format(
      "measured: {} steps, {} held-out batches and a save in {:.1f} s; of {} steps as configured "
      "this is a projection",
      run->facts.steps, run->counts.evaluated_batches, run->facts.measured.wall_seconds,
      job.config.train.steps);
  for (const std::string& decision : job.decisions)
    diagnosis.notes.push_back("memory: " + decision);
  diagnosis.launches_per_step = run->launches_per_step;
  diagnosis.unrecorded_launches = run->unrecorded_launches;
  diagnosis.facts = std::move(run->facts);
  return diagnosis;
}

/// The kernels of a run's steps, by some steps of its configuration that are made now. False: a signal stopped it.
bool add_kernels(const DiagnoseArguments& arguments, Console& console, Diagnosis& run) {
  DiagnoseArguments anew = arguments;
  anew.job.config += std::string("/") + RunDirectory::kConfig;
  const std::optional<Diagnosis> measured = diagnose_config(anew, console);
  if (!measured) return false;
  for (Attribution* const each : {&run.facts.measured, &run.facts.whole})
    *each = with_steps_of(*each, measured->facts.measured);
  run.facts.inactive = measured->facts.inactive;
  run.notes.push_back(
      fmt::format("kernels are those of {} steps of {}, made now on this machine; the seconds of "
                  "all steps are the run's",
                  arguments.steps, anew.job.config));
  return true;
}

std::optional<Diagnosis> diagnose_run(const DiagnoseArguments& arguments, Console& console) {
  if (!arguments.job.overrides.empty())
    throw UsageError(
        fmt::format("diagnose: {} is a run, which is over: '{}' would change nothing. With its "
                    "config.resolved.yaml in its place the run is measured anew.",
                    arguments.job.config, arguments.job.overrides.front()));
  FinishedRun run = read_finished_run(arguments.job.config);
  Diagnosis diagnosis;
  diagnosis.subject = arguments.job.config;
  diagnosis.is_run = true;
  diagnosis.job = fmt::format("{}: {}, {} at step {}", arguments.job.config,
                              run.facts.config.model.name, run.status, run.facts.steps);
  diagnosis.measured = "the wall time since its last start or resume, as summary.json has it";
  diagnosis.utilisation = run.utilisation;
  diagnosis.notes = std::move(run.notes);
  diagnosis.facts = std::move(run.facts);
  if (arguments.steps > 0 && !add_kernels(arguments, console, diagnosis)) return std::nullopt;
  for (const DiagnosisAdder& adder : diagnosis_adders()) {
    if (!adder.is_for(diagnosis.facts.config)) continue;
    console.live(adder.name);
    try {
      diagnosis.additions.push_back(adder.add(arguments.job.config));
    } catch (const Error& error) {
      diagnosis.notes.push_back(fmt::format("{}: {}", adder.name, error.what()));
    }
    console.clear();
  }
  return diagnosis;
}

ExitCode run_diagnose(const DiagnoseArguments& arguments) {
  check_output_file(arguments.json);
  Console console;
  const bool is_run = std::filesystem::is_directory(arguments.job.config);
  const std::optional<Diagnosis> diagnosis =
      is_run ? diagnose_run(arguments, console) : diagnose_config(arguments, console);
  if (!diagnosis) return ExitCode::kInterrupted;
  // With JSON on standard output there is nothing else on it.
  if (arguments.json != "-") print_output("{}", text(*diagnosis));
  if (!arguments.json.empty()) {
    nlohmann::ordered_json json = {{"schema", 1}, {"version", version()}};
    json.update(to_json(*diagnosis));
    write_output_file(arguments.json, json_text(json));
  }
  return ExitCode::kOk;
}

}  // namespace

void add_diagnose_command(Command root) {
  Command command = root.add_subcommand(
      "diagnose", "Tell where the time of a run goes, what holds it back, and what would help");
  auto arguments = std::make_shared<DiagnoseArguments>();
  command
      .add_option("CONFIG_OR_RUN", arguments->job.config,
                  "YAML file, which is measured, or the folder of a run")
      .required();
  command.add_option("key=value", arguments->job.overrides, "Settings that override the file's");
  command
      .add_option("--vocabulary", arguments->job.vocabulary,
                  "Random tokens of so many kinds, no data.path")
      .between(int64_t{1}, int64_t{1} << 31);
  command
      .add_option("--steps", arguments->steps,
                  fmt::format("Steps to measure, {} of a CONFIG unless given; of a RUN none: its "
                              "kernels are told where they are given",
                              RecordedRunOptions().steps))
      .between(int64_t{2}, int64_t{1} << 30);
  command
      .add_option("--eval-batches", arguments->evaluation_batches,
                  "Held-out batches to measure at most")
      .between(int64_t{1}, int64_t{1} << 40)
      .shows_default();
  command.add_option("--json", arguments->json, "File to write all figures to; -: stdout");
  command.footer(
      "\nAll of the wall time is attributed: the start and its parts, the wait for batches\n"
      "(or the rollouts that make them), each class of kernels with how much it reaches of\n"
      "what the machine's measured peaks allow, gaps between launches, evaluations, saves,\n"
      "and the host. Then comes what holds the run back most, and advice: a setting to\n"
      "try, what it saves at most, and how to undo it. docs/guide/diagnosing.md has the rules.\n"
      "\nOf a CONFIG a few steps, an evaluation and a save are made as `train` would, in a\n"
      "folder for temporary files, and the whole run is projected from them; without\n"
      "data.path the tokens are random. Of a RUN, what it left behind is read; a run with\n"
      "log.detail=debug-performance has told its steps' parts. With --steps so many steps of\n"
      "its configuration are made now, and tell its kernels with their rooflines. Its curves\n"
      "tell of spikes, plateaus, divergence and overfitting.\n"
      "\nExample:\n"
      "  fullbore diagnose configs/gpt-shakespeare-cpu.yaml\n"
      "  fullbore diagnose configs/default.yaml --vocabulary 65 data.workers=0 --steps 100\n"
      "  fullbore diagnose runs/default-1 --json -\n"
      "  fullbore diagnose runs/default-1 --steps 30\n"
      "\nExit codes: 0 done, 2 configuration, 3 data or a damaged run, 4 loss not finite,\n"
      "5 does not fit in memory, 75 interrupted: nothing was kept.");
  command.runs([arguments] { return run_diagnose(*arguments); });
}

}  // namespace fullbore
