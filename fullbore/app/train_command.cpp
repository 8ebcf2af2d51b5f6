#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "fullbore/app/commands.h"
#include "fullbore/app/initial_weights.h"
#include "fullbore/app/invocation.h"
#include "fullbore/app/job_options.h"
#include "fullbore/app/memory_plan.h"
#include "fullbore/app/output.h"
#include "fullbore/app/workload.h"
#include "fullbore/base/text.h"
#include "fullbore/data/text_sources.h"
#include "fullbore/monitor/console.h"
#include "fullbore/monitor/process.h"
#include "fullbore/monitor/run_log.h"
#include "fullbore/train/config_schema.h"
#include "fullbore/train/interrupt.h"
#include "fullbore/train/run_config.h"
#include "fullbore/train/settled_config.h"
#include "fullbore/train/turns.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;

/// A configuration, and what memory made of it.
struct FittedSettings {
  Config given;
  Config config;
  std::vector<std::string> decisions;    ///< for people
  std::optional<SettledConfig> settled;  ///< of the run to go on with
  PlannedRun run;
};

struct TrainArguments {
  std::string config;
  std::vector<std::string> overrides;
  bool resume = false;
};

/// A run directory in place of a configuration means the run's own.
Config load(const TrainArguments& arguments, std::vector<std::string>& notes) {
  if (arguments.config.find('=') != std::string::npos && !fs::exists(arguments.config))
    throw UsageError(fmt::format(
        "train: the first argument is a configuration file, '{}' is a setting", arguments.config));
  std::vector<std::string> overrides = arguments.overrides;
  const bool is_run = fs::is_directory(arguments.config);
  if (is_run) overrides.insert(overrides.begin(), "run.dir=" + arguments.config);
  Config config = is_run ? load_run_config(arguments.config, overrides, notes)
                         : named_config(arguments.config, overrides);
  for (std::string* named :
       {&config.data.path, &config.model.initialize_from, &config.train.frozen_from})
    if (!named->empty() && *named != "-") *named = fs::absolute(*named).string();
  for (const Workload& workload : workloads()) {
    // Of a workload whose model this is not, keys have their defaults, and are to keep them.
    const std::vector<std::string>& models = workload.keys.models;
    const bool reads =
        models.empty() || std::ranges::find(models, config.model.name) != models.end();
    if (reads && workload.set_absolute_paths) workload.set_absolute_paths(config);
  }
  return config;
}

std::string run_name(const Config& config) {
  return config.run.name.empty() ? config.model.name : config.run.name;
}

/// The directory of the run to go on with; "" if it does not exist yet.
std::string run_to_resume(const Config& config) {
  if (!config.run.dir.empty()) return fs::is_directory(config.run.dir) ? config.run.dir : "";
  std::string latest = RunDirectory::latest_numbered("runs", run_name(config));
  if (latest.empty())
    throw UsageError(
        fmt::format("train: there is no runs/{}-<number> to resume; name the run by "
                    "run.dir=DIRECTORY",
                    run_name(config)));
  return latest;
}

RunDirectory open_run(const Config& config, const std::string& resumed) {
  if (!resumed.empty()) return RunDirectory::open(resumed);
  return config.run.dir.empty() ? RunDirectory::create_numbered("runs", run_name(config))
                                : RunDirectory::create(config.run.dir);
}

/// `config` as memory allows it. `resumed`: the run to go on with, or "".
FittedSettings fit_settings(const Config& config, const std::string& resumed,
                            const OpenedWorkload& workload) {
  ResumedConfig settings{config, config, {}};
  std::optional<SettledConfig> settled;
  if (!resumed.empty()) settled = read_settled(resumed);
  if (settled) settings = keep_settled(config, *settled);
  FittedConfig fitted = fit_memory(settings.config, workload);
  std::vector<std::string>& decisions = settings.decisions;
  decisions.insert(decisions.end(), fitted.decisions.begin(), fitted.decisions.end());
  return {settings.given, fitted.config, decisions, settled, fitted.run};
}

/// A run that was saved has its weights, and asks for those that it started from no more.
bool has_checkpoint(const std::string& run) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(run + "/checkpoints", error))
    if (entry.path().filename().string().starts_with("step-")) return true;
  return false;
}

/// What is set otherwise than when the run was started or last resumed.
void tell_changes(const Config& before, const Config& now, Console& console) {
  for (const ConfigField& field : config_fields()) {
    const std::string old_value = value_yaml(field, before);
    const std::string new_value = value_yaml(field, now);
    if (old_value != new_value && stored_key(field) != StoredKey::ignored)
      console.line(fmt::format("changed  {}: {} -> {}", field.key, old_value, new_value));
  }
}

/// Files that a run's own configuration has named: a stranger's may name any.
void tell_stored_paths(const Config& config, const std::vector<std::string>& overrides,
                       Console& console) {
  for (const ConfigField& field : config_fields()) {
    if (stored_key(field) != StoredKey::path || !field.is_for(config)) continue;
    const bool named = std::ranges::any_of(
        overrides, [&](const std::string& text) { return text.starts_with(field.key + "="); });
    const std::string value = value_yaml(field, config);
    if (!named && value.find('/') != value.npos)
      console.line(fmt::format("reads    {}={}, as the run says", field.key, value));
  }
}

ExitCode run_train(const TrainArguments& arguments) {
  const auto start = process_start();
  LeaveOnSignal leave(shell_command(command_line()));
  std::vector<std::string> notes;
  Config config = load(arguments, notes);
  choose_processor(config);
  choose_caches(config);
  const std::string resumed = arguments.resume ? run_to_resume(config) : "";
  Console console;
  if (fs::is_directory(arguments.config) || is_stored_config(arguments.config))
    tell_stored_paths(config, arguments.overrides, console);
  // Standard input is kept as a file, so that the run can be resumed.
  if (config.data.path == "-")
    config.data.path =
        fs::absolute(keep_standard_input(data_cache_folder(config, "tokens")).take_or_throw())
            .string();
  const OpenedWorkload workload = open_workload(config, console);
  FittedSettings fitted = fit_settings(config, resumed, workload);
  config = fitted.config;
  workload.job(config);  // every refusal of the data comes before anything is created
  InitialWeights initial;
  if (resumed.empty() || !has_checkpoint(resumed)) initial = initial_weights(config, workload);
  const RunDirectory run = open_run(config, resumed);
  config.run.dir = fitted.given.run.dir = run.path();
  const std::string folder = run.path().starts_with('-') ? "./" + run.path() : run.path();
  // What is given to a run that is resumed counts only once it stands in the run's folder.
  leave.run_is(arguments.resume ? "" : run.config(), run.checkpoints() + "/last",
               shell_command({command_line().front(), "train", folder, "--resume"}));
  console.line(fmt::format("run      {}", run.path()));
  console.line(workload.about(config));
  for (const std::string& decision : fitted.decisions)
    console.line(fmt::format("memory   {}", decision));
  if (const std::string_view note = precision_note(config); !note.empty())
    console.line(fmt::format("note     {}", note));
  if (fitted.settled) {
    for (const std::string& note : fitted.settled->notes)
      if (std::ranges::find(notes, note) == notes.end()) notes.push_back(note);
    tell_changes(fitted.settled->resolved, config, console);
  }
  for (const std::string& note : notes) console.line(fmt::format("settings {}", note));
  TrainingJob job = workload.job(config);
  job.options.resume_command = leave.resume();
  // What a workload's own models begin with, such as frozen ones, is there before what a run starts from.
  job.initialize = [own = std::move(job.initialize), fill = std::move(initial.fill)](State& state) {
    if (own) own(state);
    if (fill) fill(state);
  };
  job.initialized.insert(job.initialized.end(), initial.lines.begin(), initial.lines.end());
  set_plans(config, fitted.run, job);
  if (differs_in_settled(fitted.given, config)) job.given_config = config_yaml(fitted.given);
  const ExitCode code = train(job, run, console, arguments.resume, start);
  // Nobody looks at a run of the lab, and whoever compares it with others waits for its end.
  if (code == ExitCode::kOk && workload.show && !Turns::are_asked_for())
    workload.show(config, run, console);
  leave.done();
  // The run is done and kept; whoever started it learns that its lines were not.
  if (code == ExitCode::kOk && !console.failure().empty())
    throw DataError(fmt::format("{} is complete, but standard error could not be written: {}",
                                run.path(), console.failure()));
  return code;
}

}  // namespace

void add_train_command(Command root) {
  Command command = root.add_subcommand("train", "Train the model of a configuration");
  auto arguments = std::make_shared<TrainArguments>();
  command.add_option("CONFIG", arguments->config, "YAML file, or a run directory").required();
  command.add_option("key=value", arguments->overrides, "Settings that override the file's");
  command.add_flag("--resume", arguments->resume,
                   "Go on from the last checkpoint of the run, to the same bits as if it had "
                   "never stopped");
  command.footer(R"(
A run is a folder: config.resolved.yaml, metrics.jsonl, log.txt, summary.json, checkpoints/.
Without run.dir it is runs/NAME-1, runs/NAME-2, ... (NAME: run.name, or the model's). --resume
without run.dir means the newest of them.

model.initialize_from=RUN (or a checkpoint, or weights of others: any safetensors file, by a mapping of
names and layouts if need be, docs/guide/own-model.md) starts from its weights; step,
moments, curriculum and data begin anew, and the log lists what was taken and what was not. All must
fit, unless model.initialize_partial=true.

What a run's folder may set is listed in docs/security.md. run.dir, data.cache_dir, engine.cache_dir and
log.prometheus_port are not taken from it: repeat them on the command line.

What is auto (train.batch_size, engine.accumulate, engine.parallel_microbatches) or changed by engine.degrade is
settled once: --resume goes on with what config.resolved.yaml says, unless another value is given.

Ctrl-C, SIGTERM, SIGHUP, SIGUSR1: finish the step, save, exit with 75; a second Ctrl-C stops at once.
The command to go on with is printed. Before the first save there is nothing to go on with: the signal
ends the command, which is printed for another start. A terminal that is gone does not end a run: its
log.txt says so, and the exit code is 3.

Example:
  fullbore train configs/default.yaml data.path=novel.txt train.steps=5000
  fullbore train configs/default.yaml data.path=novel.txt train.steps=9000 --resume
  fullbore train runs/default-1 --resume
  fullbore train configs/default.yaml data.path=poems.txt model.initialize_from=runs/default-1

Exit codes: 0 done, 2 configuration, 3 data, checkpoint, full disk or lost terminal, 4 loss not finite,
5 does not fit in memory, 75 interrupted and saved, 128 + N ended by signal N with nothing saved.)");
  command.runs([arguments] { return run_train(*arguments); });
}

}  // namespace fullbore
