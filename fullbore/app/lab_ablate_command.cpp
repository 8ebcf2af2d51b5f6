#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "fullbore/app/invocation.h"
#include "fullbore/app/job_options.h"
#include "fullbore/app/json_text.h"
#include "fullbore/app/lab_commands.h"
#include "fullbore/app/output.h"
#include "fullbore/app/workload.h"
#include "fullbore/base/files.h"
#include "fullbore/lab/ablation/ablation_claim.h"
#include "fullbore/lab/ablation/ablation_report.h"
#include "fullbore/lab/ablation/energy_meter.h"
#include "fullbore/monitor/console.h"
#include "fullbore/monitor/machine.h"
#include "fullbore/train/interrupt.h"

namespace fullbore {
namespace {

struct AblateArguments {
  AblationRequest request;
  bool confirm = false;
  bool json = false;
};

std::string default_folder(const Config& config) {
  return fmt::format("lab/ablate-{}",
                     config.run.name.empty() ? config.model.name : config.run.name);
}

std::string machine_text(const Config& config) {
  const std::shared_ptr<Device> device = open_job_device(config);
  const DeviceFacts facts = device->facts();
  return fmt::format("{}, {} thread{}", facts.hardware, facts.workers,
                     facts.workers == 1 ? "" : "s");
}

ExitCode leave_interrupted(const std::string& folder, Console& console) {
  std::vector<std::string> words = command_line();
  if (std::ranges::find(words, "--resume") == words.end()) words.emplace_back("--resume");
  console.clear();
  console.line(fmt::format("stopped; {} keeps what was finished; go on with: {}", folder,
                           shell_command(words)));
  return ExitCode::kInterrupted;
}

void write(const std::string& path, const std::string& text) {
  write_file_atomically(path, text).take_or_throw();
}

ExitCode run_confirm(const AblateArguments& arguments, const InterruptGuard& interrupt,
                     Console& console) {
  const Confirmation confirmation = confirm_claim(
      arguments.request, [&] { return interrupt.requested(); },
      [&](const std::string& doing) { console.live(doing); });
  if (confirmation.interrupted) return leave_interrupted(arguments.request.folder, console);
  console.clear();
  arguments.json ? write_output(json_text(to_json(confirmation)))
                 : print_output("{}", text(confirmation));
  return confirmation.holds ? ExitCode::kOk : ExitCode::kNumerical;
}

ExitCode run_ablate(AblateArguments arguments) {
  AblationRequest& request = arguments.request;
  request.settings = named_config(request.config, request.overrides);
  if (request.folder.empty()) request.folder = default_folder(request.settings);
  const std::string& folder = request.folder;
  Console console;
  const InterruptGuard interrupt;
  if (arguments.confirm) return run_confirm(arguments, interrupt, console);
  const Ablation ablation = ablate(
      request, [&] { return interrupt.requested(); },
      [&](const std::string& doing) { console.live(doing); },
      [&](const AblationPlan& plan) { console.line(text(plan)); });
  if (ablation.interrupted) return leave_interrupted(folder, console);
  console.clear();
  AblationReport report = report_ablation(ablation, request, declared_quality(request.settings));
  report.machine = machine_text(request.settings);
  const EnergyMeter meter(is_on_card(request.settings.engine.device));
  report.energy = meter.missing();
  report.energy_of = meter.counted();
  write(folder + "/report.json", json_text(to_json(report)));
  write(folder + "/report.md", ablation_markdown(report));
  write(folder + "/report.html", ablation_page(report));
  write(folder + "/recommended.yaml", recommended_yaml(report, ablation.plan, request));
  if (arguments.json) {
    write_output(json_text(to_json(report)));
  } else {
    print_output("{}\nwritten: {}/report.html, report.md, report.json, recommended.yaml\n",
                 ablation_text(report), folder);
  }
  return ExitCode::kOk;
}

}  // namespace

void add_lab_ablate_command(Command lab) {
  Command command = lab.add_subcommand(
      "ablate", "What each optimisation brings for a job on this machine, alone and together");
  auto arguments = std::make_shared<AblateArguments>();
  AblationRequest& request = arguments->request;
  command.add_option("CONFIG", request.config, "YAML file").required();
  command.add_option("key=value", request.overrides,
                     "Settings of all arms that override the file's");
  command
      .add_option(
          "--switch", request.switches,
          "A pass, a key, or key=value,value; repeatable; by default all passes and engine choices")
      .one_value_each_time();
  command.add_option("--minutes", request.minutes, "Time for all of it")
      .between(0.05, 100'000.0)
      .shows_default();
  command
      .add_option("--seeds", request.seeds,
                  "Runs of each arm, from run.seed on, 2 at least; 0: as many as there is time for")
      .between(int64_t{0}, int64_t{1000})
      .shows_default();
  command.add_option("--steps", request.steps, "Steps of each run; 0: as many as there is time for")
      .between(int64_t{0}, int64_t{1'000'000'000});
  command
      .add_option("--eval-batches", request.eval_batches,
                  "Of each evaluation, at most, of all arms; 0: as train.eval_batches says")
      .between(int64_t{0}, int64_t{1'000'000'000})
      .shows_default();
  command.add_option("--out", request.folder, "Folder of results; by default lab/ablate-NAME");
  command.add_flag("--resume", request.resume, "Go on with what the folder has");
  command.add_flag("--confirm", arguments->confirm,
                   "Measure what recommended.yaml claims again, by other seeds");
  command.add_flag("--json", arguments->json, "Print JSON");
  command.footer(R"(
A switch is a pass that may be left out, or another value of a setting. Arms: the base, with all
switches off; the job as configured; all switches; each alone; each left out of all; and the ladder in
the given order and in the reverse. Arms whose compiled programs are equal are measured once.

Each run is a process of its own. Those of one seed take turns of a quarter second at most, on the same
core, so that the machine's moods hit all alike; evaluations, saves and starts are not step time. First
each arm is tried for a few steps; then the steps of each run follow from --minutes. What does not fit is
dropped from the end of the list and said. Where runs take longer than their trials told, later seeds are
left out and told. A run that fails or does not fit in memory is a row with its reason.

The folder has plan.json, what every run measured, report.html, report.md, report.json and
recommended.yaml. Ctrl-C or a kill loses the group of runs that is under way; --resume goes on.

Example:
  fullbore lab ablate configs/gpt-shakespeare-cpu.yaml --minutes 15
  fullbore lab ablate CONFIG --switch fuse --switch engine.precision=bf16 --seeds 4
  fullbore lab ablate CONFIG --switch train.batch_size=12,24,48 --switch optim.name=adamw,muon
  fullbore lab ablate CONFIG --confirm

Exit codes: 0 done, or confirmed; 2 command line, configuration, or a folder of another ablation; 3 files,
a full disk, a base that cannot be run; 4 what was claimed was not confirmed; 75 stopped, goes on with
--resume.)");
  command.runs([arguments] { return run_ablate(*arguments); });
}

}  // namespace fullbore
