#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "fullbore/app/invocation.h"
#include "fullbore/app/json_text.h"
#include "fullbore/app/lab_commands.h"
#include "fullbore/app/output.h"
#include "fullbore/base/files.h"
#include "fullbore/lab/sweep/sweep_report.h"
#include "fullbore/monitor/console.h"
#include "fullbore/monitor/process.h"
#include "fullbore/train/config.h"
#include "fullbore/train/interrupt.h"

namespace fullbore {
namespace {

struct SweepArguments {
  std::string space;
  std::string folder;
  bool resume = false;
  double minutes = 0;
  int64_t at_once = 0;
  bool json = false;
};

/// Of the machine's memory, for all runs together.
constexpr double kMemoryShare = 0.9;

std::string default_folder(const std::string& space) {
  return "lab/sweep-" + std::filesystem::path(space).stem().string();
}

SweepRequest request_of(const SweepArguments& arguments) {
  SweepRequest request;
  request.source = read_file(arguments.space).take_or_throw();
  request.space = parse_sweep_space(request.source, arguments.space);
  const Config config = load_config(request.space.config, request.space.settings);
  request.folder = arguments.folder.empty() ? default_folder(arguments.space) : arguments.folder;
  request.resume = arguments.resume;
  request.most_steps = config.train.steps;
  request.at_once = arguments.at_once;
  request.threads = config.engine.threads;
  request.minutes = arguments.minutes;
  request.memory_bytes =
      static_cast<int64_t>(kMemoryShare * static_cast<double>(memory_limit_bytes()));
  return request;
}

ExitCode leave_interrupted(const std::string& folder, Console& console) {
  std::vector<std::string> words = command_line();
  if (std::ranges::find(words, "--resume") == words.end()) words.emplace_back("--resume");
  console.clear();
  console.line(fmt::format("stopped; {} keeps what was finished; go on with: {}", folder,
                           shell_command(words)));
  return ExitCode::kInterrupted;
}

/// The configuration of the best trial; none where no trial has a value.
std::string best_yaml(const Sweep& sweep, const SweepSpace& space) {
  const std::vector<SweepRow> rows = ranked(sweep, space);
  if (rows.empty() || !rows.front().run->ok()) return "";
  const SweepRow& best = rows.front();
  return fmt::format("# The best of {} trials of a sweep: trial {}, {} {:.6g}.\n",
                     sweep.trials.size(), best.trial, printable_name(space.metric),
                     best.run->value) +
         config_yaml(load_config(
             space.config, trial_settings(space, sweep.trials[static_cast<size_t>(best.trial)])));
}

ExitCode run(const SweepArguments& arguments) {
  const SweepRequest request = request_of(arguments);
  Console console;
  const InterruptGuard interrupt;
  const Sweep sweep = run_sweep(
      request, [&] { return interrupt.requested(); },
      [&](const std::string& doing) { console.live(doing); });
  if (sweep.interrupted) return leave_interrupted(request.folder, console);
  console.clear();
  const auto write = [&](const char* name, const std::string& text) {
    write_file_atomically(request.folder + name, text).take_or_throw();
  };
  write("/report.json", json_text(to_json(sweep, request.space)));
  write("/report.md", sweep_markdown(sweep, request.space));
  write("/report.html", sweep_page(sweep, request.space));
  const std::string best = best_yaml(sweep, request.space);
  if (!best.empty()) write("/best.yaml", best);
  if (arguments.json) {
    write_output(json_text(to_json(sweep, request.space)));
  } else {
    constexpr size_t kShown = 20;
    print_output("{}\n\n{}\nwritten: {}/report.html, report.md, report.json{}\n",
                 sweep_headline(sweep, request.space),
                 table_text(sweep_table(sweep, request.space, kShown)), request.folder,
                 best.empty() ? "; no trial has a value" : ", best.yaml");
  }
  return ExitCode::kOk;
}

}  // namespace

void add_lab_sweep_command(Command lab) {
  Command command =
      lab.add_subcommand("sweep", "Search settings: all, drawn, or by successive halving");
  auto arguments = std::make_shared<SweepArguments>();
  command.add_option("SPACE", arguments->space, "YAML file: the job, and what varies").required();
  command.add_option("--out", arguments->folder,
                     "Folder of results; by default lab/sweep-NAME of NAME.yaml");
  command.add_flag("--resume", arguments->resume, "Go on with what the folder has");
  command.add_option("--minutes", arguments->minutes, "No run begins afterwards; 0: all are made")
      .between(0.0, 100'000.0)
      .shows_default();
  command
      .add_option("--at-once", arguments->at_once,
                  "Runs side by side; 0: as many as there are processors")
      .between(int64_t{0}, int64_t{1024})
      .shows_default();
  command.add_flag("--json", arguments->json, "Print JSON");
  command.footer(R"(
SPACE has a section `sweep`, and keys of the configuration: a list holds values to choose from, a text
draws from a range.

  sweep:
    config: configs/default.yaml
    settings: [data.path=play.txt, train.steps=400]
    method: halving            # or random, or grid: all combinations of lists
    samples: 12
    metric: loss               # as evaluation lines have it, lowest (goal: highest)
  optim:
    learning_rate: log 1e-4 1e-2
    beta2: uniform 0.9 0.999
  model:
    width: [64, 128]
    layers: whole 1 4

Halving gives all trials a few steps, and one of `reduction: 3` three times as many, until train.steps
are reached. Each run is a process of its own; together they keep to the machine's memory and processors.
A run that fails is a row with its reason. Ctrl-C or a kill loses the runs under way; --resume goes on.

Example:
  fullbore lab sweep space.yaml
  fullbore lab sweep space.yaml --minutes 30 --out lab/rates

Exit codes: 0 done; 2 command line, space, configuration; 3 files, a full disk; 75 stopped, goes on with
--resume.)");
  command.runs([arguments] { return run(*arguments); });
}

}  // namespace fullbore
