#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fullbore/app/job_options.h"
#include "fullbore/app/json_text.h"
#include "fullbore/app/measured_job.h"
#include "fullbore/app/memory_plan.h"
#include "fullbore/app/output.h"
#include "fullbore/app/workload.h"
#include "fullbore/base/error.h"
#include "fullbore/base/text.h"
#include "fullbore/monitor/console.h"
#include "workloads/latentwire/latent_command.h"
#include "workloads/latentwire/switch_bench.h"

namespace fullbore::latentwire {
namespace {

// At a larger one what rounding differs by grows from step to step, until any two paths differ by more than is allowed.
constexpr double kMostRate = 5e-5;

struct Arguments {
  std::string config;
  std::vector<std::string> settings;
  std::vector<std::string> tried;
  int64_t steps = 100;
  int64_t samples = 100;
  std::string json;
};

std::vector<std::string> names_of(const std::vector<const Switch*>& switches) {
  std::vector<std::string> names;
  for (const Switch* each : switches) names.emplace_back(each->name);
  return names;
}

// NAME of each NAME=FOLDER.
std::vector<std::string> receiver_names(const Config& config) {
  std::vector<std::string> names;
  for (const std::string& each : latent_keys(config).receivers.folders)
    names.push_back(each.substr(0, each.find('=')));
  return names;
}

ExitCode bench(const Arguments& arguments) {
  check_output_file(arguments.json);
  Config config = named_config(arguments.config, arguments.settings);
  if (config.model.name != kLatentModel)
    throw UsageError(
        fmt::format("latentwire bench: {} is a configuration of model.name={}; {} was expected",
                    arguments.config, config.model.name, kLatentModel));
  SwitchBenchOptions options{.steps = arguments.steps};
  if (!arguments.tried.empty())
    std::erase_if(options.tried, [&](const Switch* each) {
      return std::ranges::find(arguments.tried, each->name) == arguments.tried.end();
    });
  config.get<LatentKeys>().data.training_prompts = arguments.samples;
  config.optim.learning_rate = std::min(config.optim.learning_rate, kMostRate);
  config.optim.minimum_learning_rate = std::min(config.optim.minimum_learning_rate, kMostRate);
  choose_processor(config);
  choose_caches(config);
  Console console;
  const OpenedWorkload workload = open_workload(config, console);
  const Config fitted = fit_memory(config, workload).config;
  const std::vector<SwitchStage> stages = run_switch_bench(
      fitted, receiver_names(config), workload.job, options,
      [&](const std::string& doing, double seconds_left) {
        if (!console.live_due()) return;
        console.live(seconds_left < 0
                         ? doing
                         : fmt::format("{}, {} left", doing, duration_text(seconds_left)));
      });
  console.clear();
  for (const SwitchStage& each : stages)
    if (!each.kept) print_message("switch {} is turned off: {}\n", each.added->name, each.reason);
  if (arguments.json != "-") print_output("{}", switch_table(stages));
  if (arguments.json.empty()) return ExitCode::kOk;
  const nlohmann::ordered_json json = {
      {"config", arguments.config},   {"settings", arguments.settings},
      {"samples", arguments.samples}, {"steps", arguments.steps},
      {"seed", config.run.seed},      {"batch_size", fitted.train.batch_size},
      {"stages", switch_json(stages)}};
  write_output_file(arguments.json, json_text(json));
  return ExitCode::kOk;
}

}  // namespace

void add_bench_switches_command(Command latentwire) {
  Command command = latentwire.add_subcommand(
      "bench", "Try what makes steps faster, one switch after the other, and compare the losses");
  auto arguments = std::make_shared<Arguments>();
  command.add_option("CONFIG", arguments->config, "YAML file").required();
  command.add_option("key=value", arguments->settings, "Settings that override the file's");
  command.add_option("--steps", arguments->steps, "Steps of each stage")
      .between(int64_t{2}, int64_t{1'000'000})
      .shows_default();
  command.add_option("--samples", arguments->samples, "Prompts, the same in each stage")
      .between(int64_t{1}, int64_t{1'000'000'000})
      .shows_default();
  command.add_option("--switch", arguments->tried, "Only this one of switches.*; repeatable")
      .one_of(names_of(rollout()))
      .one_value_each_time();
  command.add_option("--json", arguments->json, "File to write all figures to; -: stdout");
  command.footer(R"(
All switches are off at first; then one more is on each time. A switch is turned off again, with a message, where a
loss differs from that of all-off by more than 1e-5 (in bf16 1e-2) of itself, or the first tokens are right less often
by more than a point. The learning rate is 5e-5 at most: at a large one the differences of rounding grow from step to
step, whatever the path. `ms models` is the time of a step in the frozen models.

Example:
  fullbore latentwire bench configs/latentwire-ci.yaml --json switches.json
  fullbore latentwire bench configs/latentwire-smoke.yaml --steps 20 --switch one_pass --switch head_rows)");
  command.runs([arguments] { return bench(*arguments); });
}

}  // namespace fullbore::latentwire
