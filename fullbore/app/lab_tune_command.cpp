#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "fullbore/app/invocation.h"
#include "fullbore/app/job_options.h"
#include "fullbore/app/json_text.h"
#include "fullbore/app/lab_commands.h"
#include "fullbore/app/output.h"
#include "fullbore/app/workload.h"
#include "fullbore/base/cache_directory.h"
#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/base/processor.h"
#include "fullbore/base/threads.h"
#include "fullbore/lab/tuning/tune.h"
#include "fullbore/lab/tuning/tuning_file.h"
#include "fullbore/lab/tuning/tuning_report.h"
#include "fullbore/monitor/console.h"
#include "fullbore/train/interrupt.h"

namespace fullbore {
namespace {

struct TuneArguments {
  TuningRequest request;
  std::optional<std::string> batch_sizes;
  std::string memory;
  std::string quality = "margin";
  bool again = false;
  bool json = false;
};

TuningQuality quality_named(const std::string& name) {
  if (name == "same") return TuningQuality::same;
  return name == "any" ? TuningQuality::any : TuningQuality::margin;
}

std::string default_folder(const Config& config) {
  return fmt::format("lab/tune-{}", config.run.name.empty() ? config.model.name : config.run.name);
}

std::string machine_text(const Config& config) {
  choose_processor(config);
  const DeviceFacts facts = open_job_device(config)->facts();
  const int processors = available_processors();
  return fmt::format("{}, {}, {} processor{}", facts.hardware,
                     processor_level_name(this_processor().level), processors,
                     processors == 1 ? "" : "s");
}

std::string now_text() {
  const std::time_t seconds = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text.data();
}

ExitCode leave_interrupted(const std::string& folder, Console& console) {
  std::vector<std::string> words = command_line();
  std::erase(words, "--again");
  if (std::ranges::find(words, "--resume") == words.end()) words.emplace_back("--resume");
  console.clear();
  console.line(fmt::format("stopped; {} keeps what was finished; go on with: {}", folder,
                           shell_command(words)));
  return ExitCode::kInterrupted;
}

void write_results(const Tuning& tuning, const TuningRequest& request) {
  const auto write = [&](const char* name, const std::string& text) {
    write_file_atomically(request.folder + name, text).take_or_throw();
  };
  make_folders(request.folder).take_or_throw();
  write("/report.json", json_text(tuning_report_json(tuning)));
  write("/report.md", tuning_markdown(tuning));
  write("/tuned.yaml", tuned_yaml(tuning, request));
}

/// What an earlier tuning left in the folder makes room for this one.
void clear_folder(const std::string& folder) {
  FileStatus status;
  if (system_files().status(folder + "/tune.json", status) != 0) return;
  for (const char* name : {"/heats", "/work", "/confirm"})
    if (system_files().status(folder + name, status) == 0)
      remove_folder_with_contents(folder + name).take_or_throw();
  if (const int error = system_files().remove(folder + "/tune.json"); error != 0)
    throw DataError(fmt::format("{}/tune.json cannot be removed: {}", folder, system_reason()));
}

ExitCode run_tune(TuneArguments arguments) {
  TuningRequest& request = arguments.request;
  if (arguments.batch_sizes) {
    if (arguments.batch_sizes->empty())
      throw UsageError(
          "lab: --batch-sizes is empty; it names those that may be chosen, as in 8,16,32");
    request.scope.batch_sizes = *arguments.batch_sizes;
  }
  if (!arguments.memory.empty())
    request.overrides.push_back("engine.memory_budget=" + arguments.memory);
  request.settings = named_config(request.config, request.overrides);
  request.quality = quality_named(arguments.quality);
  request.scope.processors = available_processors();
  if (request.folder.empty()) request.folder = default_folder(request.settings);
  const std::string machine = machine_text(request.settings);
  const std::string identity =
      tuning_identity(request.settings, request.scope, request.quality, machine);
  const std::vector<Coordinate> space = tuning_space(request.settings, request.scope);
  const std::string kept = cache_directory("tunings");
  Console console;
  const auto warn = [&](const std::string& text) { console.line("fullbore: " + text); };
  std::optional<Tuning> tuning;
  if (!arguments.again && !request.resume)
    tuning = kept_tuning(kept, identity, request.settings, space, warn);
  const bool is_kept = tuning.has_value();
  if (!is_kept) {
    if (arguments.again && !request.resume) clear_folder(request.folder);
    const InterruptGuard interrupt;
    tuning = tune(
        request, identity, declared_quality(request.settings),
        [&] { return interrupt.requested(); },
        [&](const std::string& doing) { console.live(doing); });
    if (tuning->interrupted) return leave_interrupted(request.folder, console);
    console.clear();
    tuning->machine = machine;
    tuning->when = now_text();
    keep_tuning(kept, *tuning, warn);
  }
  write_results(*tuning, request);
  if (arguments.json) {
    write_output(json_text(tuning_report_json(*tuning)));
  } else {
    if (is_kept) print_output("Measured at {}; --again measures anew.\n\n", tuning->when);
    print_output("{}\nwritten: {}/tuned.yaml, report.md, report.json\n", tuning_text(*tuning),
                 request.folder);
  }
  return ExitCode::kOk;
}

}  // namespace

void add_lab_tune_command(Command lab) {
  Command command = lab.add_subcommand(
      "tune", "The fastest settings of a job on this machine, found by measuring");
  auto arguments = std::make_shared<TuneArguments>();
  TuningRequest& request = arguments->request;
  command.add_option("CONFIG", request.config, "YAML file").required();
  command.add_option("key=value", request.overrides, "Settings that override the file's");
  command
      .add_option("--switch", request.scope.switches,
                  "A pass, a key, or key=value,value to try; repeatable; by default all there are")
      .one_value_each_time();
  command.add_option(
      "--batch-sizes", arguments->batch_sizes,
      "Batch sizes that may be chosen, as in 8,16,32; they change what a step learns");
  command
      .add_option("--quality", arguments->quality,
                  "What may change numbers: none (same), within the model's margins, or any")
      .one_of({"same", "margin", "any"})
      .shows_default();
  command.add_option("--memory", arguments->memory,
                     "Memory of a run: engine.memory_budget, of all candidates");
  command.add_option("--minutes", request.minutes, "Time for all of it")
      .between(0.05, 100'000.0)
      .shows_default();
  command.add_option("--steps", request.steps, "Steps of each run; 0: as many as there is time for")
      .between(int64_t{0}, int64_t{1'000'000'000});
  command.add_option("--out", request.folder, "Folder of results; by default lab/tune-NAME");
  command.add_flag("--resume", request.resume, "Go on with what the folder has");
  command.add_flag("--again", arguments->again, "Measure anew what was measured before");
  command.add_flag("--json", arguments->json, "Print JSON");
  command.footer(R"(
Precision, attention, recomputing and the other choices of the engine, threads, microbatches and
passes, one after the other. The candidates of each take turns with the settings so far, heat after
heat, in processes of their own; who is slower beyond its interval is dropped, who is faster beyond it
is taken. What was taken is then measured beside the defaults, with other seeds: what is not faster there
beyond its interval is declined, and the configuration stays as it was.

What changes numbers, as precision does, is taken if every metric of the model stays within its declared
margin in these short runs; `fullbore lab gate` has the last word. Batch sizes are tried if --batch-sizes
names them. A candidate that does not fit in memory, or fails, is a row with its reason.

The folder has tuned.yaml, report.md and report.json, which set the planner's predictions beside what was
measured. Results are kept for the same job, machine and build: asked again, they are told at once.
Ctrl-C or a kill loses the heat that is under way; --resume goes on.

Example:
  fullbore lab tune configs/gpt-shakespeare-cpu.yaml --minutes 10
  fullbore lab tune CONFIG --memory 2GiB --batch-sizes 8,16,32
  fullbore lab tune CONFIG --switch engine.precision --switch engine.threads --quality same
  fullbore train lab/tune-NAME/tuned.yaml

Exit codes: 0 done; 2 command line, configuration, or a folder of another tuning; 3 files, a full disk, a
job that cannot be run; 5 nothing fits in memory; 75 stopped, goes on with --resume.)");
  command.runs([arguments] { return run_tune(*arguments); });
}

}  // namespace fullbore
