#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "fullbore/app/invocation.h"
#include "fullbore/app/job_options.h"
#include "fullbore/app/json_text.h"
#include "fullbore/app/lab_commands.h"
#include "fullbore/app/margins.h"
#include "fullbore/app/output.h"
#include "fullbore/lab/quality/gate_training.h"
#include "fullbore/monitor/console.h"
#include "fullbore/train/default_job.h"
#include "fullbore/train/interrupt.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;

struct GateArguments {
  std::vector<std::string> words;  ///< the sides, and settings of both
  std::vector<std::string> with;
  JudgeArguments judge;
  int64_t seeds = 16;
  int64_t pilot = 4;
  double minutes = 0;
  std::string folder;
  bool resume = false;
  bool despite = false;
  bool json = false;
};

/// The words taken apart.
struct Sides {
  std::vector<std::string> names;
  std::vector<std::string> settings;
};

Sides sides_of(const GateArguments& arguments) {
  Sides sides;
  for (const std::string& word : arguments.words) {
    std::error_code error;
    const bool is_setting = word.find('=') != word.npos && !fs::exists(word, error);
    (is_setting ? sides.settings : sides.names).push_back(word);
  }
  if (sides.names.size() > 2)
    throw UsageError(fmt::format(
        "lab gate: A and B were expected, and {} names came: put a pattern of several runs in "
        "quotes, as in 'runs/mine-*'",
        sides.names.size()));
  // A program of its own has a job without a file.
  if (sides.names.empty() && !arguments.with.empty() && default_job() != nullptr)
    sides.names.emplace_back(kDefaultJob);
  if (sides.names.empty())
    throw UsageError("lab gate: two configurations, or runs of two, were expected");
  if (sides.names.size() == 1 && arguments.with.empty())
    throw UsageError(
        fmt::format("lab gate: {} is A; name B, or what it has otherwise by --with key=value",
                    sides.names.front()));
  if (sides.names.size() == 1) sides.names.push_back(sides.names.front());
  return sides;
}

ExitCode tell(const GateReport& report, bool json) {
  if (json)
    write_output(json_text(gate_json(report)));
  else
    print_output("{}", gate_text(report));
  return exit_code_of(report.test.verdict);
}

GateSide finished_side(const std::string& named) {
  GateSide side{named, {}};
  for (const std::string& folder : run_folders(named))
    side.runs.push_back(read_completed_run(folder));
  return side;
}

ExitCode gate_finished(const GateArguments& arguments, const Sides& sides) {
  if (!sides.settings.empty() || !arguments.with.empty())
    throw UsageError("lab gate: settings are for configurations that are trained; these are runs");
  const GateSide a = finished_side(sides.names[0]), b = finished_side(sides.names[1]);
  const QualityMetrics metrics = judged_metrics(a.runs.front().config, arguments.judge);
  return tell(gate(a, b, metrics, arguments.judge.options, arguments.despite), arguments.json);
}

GateArm arm(const std::string& config, std::vector<std::string> settings,
            const std::vector<std::string>& with) {
  GateArm arm{config, config, std::move(settings), {}};
  arm.settings.insert(arm.settings.end(), with.begin(), with.end());
  for (const std::string& each : with) arm.name += " " + each;
  for (const std::string& each : arm.settings)
    if (each.starts_with("run.seed=") || each.starts_with("run.dir="))
      throw UsageError(
          fmt::format("lab gate: {}: seeds and folders of the runs are the gate's; "
                      "seeds begin at run.seed of A's file",
                      each));
  arm.settled = named_config(config, arm.settings);
  return arm;
}

ExitCode gate_trained(const GateArguments& arguments, const Sides& sides) {
  if (arguments.despite)
    throw UsageError("lab gate: --despite is for runs that are there; these will be equal");
  GatePlan plan{.a = arm(sides.names[0], sides.settings, {}),
                .b = arm(sides.names[1], sides.settings, arguments.with)};
  const Config& config = plan.a.settled;
  if (config.train.steps != plan.b.settled.train.steps)
    throw UsageError(fmt::format("lab gate: A makes {} steps and B {}: equal ones were expected",
                                 config.train.steps, plan.b.settled.train.steps));
  plan.folder = arguments.folder;
  if (plan.folder.empty())
    plan.folder = "lab/gate-" + (config.run.name.empty() ? config.model.name : config.run.name);
  plan.resume = arguments.resume;
  plan.first_seed = config.run.seed;
  plan.pilot = arguments.pilot;
  plan.most_seeds = arguments.seeds;
  plan.minutes = arguments.minutes;
  plan.metrics = judged_metrics(config, arguments.judge);
  plan.options = arguments.judge.options;
  Console console;
  const InterruptGuard interrupt;
  const GateTraining done = train_gate(
      plan, [&] { return interrupt.requested(); },
      [&](const std::string& doing) {
        console.terminal() ? console.live(doing) : console.line(doing);
      });
  console.clear();
  if (done.interrupted) {
    std::vector<std::string> words = command_line();
    if (!arguments.resume) words.emplace_back("--resume");
    console.line(fmt::format("stopped; {} keeps what was finished; go on with: {}", plan.folder,
                             shell_command(words)));
    return ExitCode::kInterrupted;
  }
  return tell(done.report, arguments.json);
}

ExitCode run_gate(const GateArguments& arguments) {
  const Sides sides = sides_of(arguments);
  if (arguments.seeds < 2 || arguments.pilot < 2)
    throw UsageError(
        fmt::format("lab gate: --{} {}: one pair of runs tells no spread; at least 2 were expected",
                    arguments.seeds < 2 ? "seeds" : "pilot",
                    arguments.seeds < 2 ? arguments.seeds : arguments.pilot));
  const bool a = names_runs(sides.names[0]), b = names_runs(sides.names[1]);
  if (a != b)
    throw UsageError(
        fmt::format("lab gate: {} is of runs and {} a configuration: two of a kind were expected",
                    sides.names[a ? 0 : 1], sides.names[a ? 1 : 0]));
  return a ? gate_finished(arguments, sides) : gate_trained(arguments, sides);
}

}  // namespace

void add_lab_gate_command(Command lab) {
  Command command = lab.add_subcommand(
      "gate", "Is B no worse than A? By pairs of seeds, for every metric the model is judged by");
  auto arguments = std::make_shared<GateArguments>();
  command
      .add_option("A_B", arguments->words,
                  "Two configurations, or two of: a run, a folder of runs, a pattern of them in "
                  "quotes; key=value sets both configurations")
      .required();
  command
      .add_option("--with", arguments->with,
                  "key=value that B has besides; of one configuration it makes B")
      .one_value_each_time();
  add_judge_options(command, arguments->judge);
  command
      .add_option("--seeds", arguments->seeds,
                  "Pairs of runs at most, from run.seed on; at least 2")
      .between(int64_t{0}, int64_t{10'000})
      .shows_default();
  command
      .add_option("--pilot", arguments->pilot,
                  "Pairs that tell the spread, from which follows how many are made")
      .between(int64_t{0}, int64_t{10'000})
      .shows_default();
  command.add_option("--minutes", arguments->minutes, "Time for all of it; 0: as long as it takes")
      .between(0.0, 1e6);
  command.add_option("--out", arguments->folder, "Folder of the runs; by default lab/gate-NAME");
  command.add_flag("--resume", arguments->resume, "Go on with what the folder has");
  command.add_flag("--despite", arguments->despite,
                   "Compare runs of other steps or data all the same, and say so");
  command.add_flag("--json", arguments->json, "Print JSON");
  command.footer(R"(
That B is worse than A by the margin or more is what has to be refuted, at --alpha, by one-sided paired
t-tests over seeds. Margins are the model's own, from its specification (--margin sets others). All
metrics must pass. Too few seeds for the power wanted are "undecided", never "passed"; a better figure
never fails.

Configurations are trained, A and B in turns. The pairs of --pilot tell the spread, that tells how many
are needed, and the test is made once. Runs that are there are paired by run.seed.

Example:
  fullbore lab gate configs/default.yaml --with engine.precision=bf16 --minutes 30
  fullbore lab gate a.yaml b.yaml train.steps=500 --seeds 8
  fullbore lab gate 'runs/base-*' 'runs/bf16-*' --json
  fullbore lab gate 'runs/base-*' 'runs/bf16-*' --margin loss=0.01

Exit codes: 0 no worse, 4 worse, 7 undecided; 2 command line or runs that do not go together, 3 files, 75
stopped, goes on with --resume.)");
  command.runs([arguments] { return run_gate(*arguments); });
}

}  // namespace fullbore
