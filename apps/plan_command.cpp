#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/commands.h"
#include "apps/language_model.h"
#include "fullbore/base/text.h"
#include "fullbore/ir/print.h"
#include "fullbore/monitor/machine.h"
#include "fullbore/passes/pass.h"
#include "fullbore/plan/report.h"

namespace fullbore {
namespace {

struct PlanArguments {
  std::string config;
  std::vector<std::string> overrides;
  int64_t vocabulary = 0;
  bool graph = false;
  bool launches = false;
  bool json = false;
};

/// Passes and planning, without the memory that Program::compile would take.
Plan plan_of(const Graph& graph, const CompileOptions& options, int workers) {
  const std::unique_ptr<Backend> backend = make_backend(options.backend);
  const Target target = compile_target(*backend, options, workers);
  return make_plan(run_passes(graph, target, options.passes), *backend,
                   {.workers = workers, .reuse_memory = options.reuse_memory});
}

int64_t vocabulary_of(const Config& config, int64_t given) {
  if (given > 0) return given;
  if (config.data.path.empty() && config.model.vocabulary > 0) return config.model.vocabulary;
  if (config.data.path.empty())
    throw UsageError(
        "plan: the vocabulary is not known without a text: name it by data.path=FILE, "
        "or pass --vocabulary N, or set model.vocabulary");
  return open_text(config).tokenizer->vocabulary_size();
}

int64_t parameter_count(const Graph& graph) {
  int64_t count = 0;
  for (const StateEntry& entry : state_entries(graph))
    if (entry.role == Role::parameter || entry.role == Role::frozen) count += entry.type.elements();
  return count;
}

void print_text(const Config& config, int64_t parameters, const Machine& machine,
                const PlanReport& step, const PlanReport& evaluation, int64_t total_bytes) {
  const auto tokens = static_cast<double>(config.train.batch_size * config.model.context);
  fmt::print("{}: {} parameters\n", config.model.name, parameters);
  fmt::print("{} bytes ({}) for the run: one State, and the arenas of both programs\n", total_bytes,
             bytes_text(static_cast<double>(total_bytes)));
  fmt::print("machine: {} GFLOP/s fp32, {} GB/s, {} workers\n\n",
             static_cast<int64_t>(machine.peaks.fp32_flops / 1e9),
             static_cast<int64_t>(machine.peaks.bytes_per_second / 1e9), machine.workers);
  fmt::print("Training step, {} x {} tokens, at most {} tok/s\n{}\n", config.train.batch_size,
             config.model.context, count_text(tokens / step.roofline_seconds), text(step));
  fmt::print("Evaluation step\n{}", text(evaluation));
}

ExitCode run_plan(const PlanArguments& arguments) {
  const Config config = load_config(arguments.config, arguments.overrides);
  const LossFunction loss = model_loss(config, vocabulary_of(config, arguments.vocabulary));
  const Graph graph =
      with_metrics(trace_training_step(loss, batch_fields(config), optimizer_options(config)).graph,
                   metrics_level(config.log.metrics));
  const int workers = worker_count(config);
  const Plan step = plan_of(graph, compile_options(config), workers);
  if (arguments.graph) {
    fmt::print("{}", print(step.graph));
    return ExitCode::kOk;
  }
  if (arguments.launches) {
    fmt::print("{}", plan_text(step));
    return ExitCode::kOk;
  }
  const Plan evaluation =
      plan_of(trace_evaluation(loss, batch_fields(config)).graph, compile_options(config), workers);
  Team team(workers);
  const Machine machine = known_machine(team);
  const PlanReport step_report = report_plan(step, machine.peaks);
  const PlanReport evaluation_report = report_plan(evaluation, machine.peaks);
  int64_t total = step.peak_bytes() + evaluation.peak_bytes() - evaluation.state_bytes;
  if (config.train.background_saves) total += step.state_bytes;  // the snapshot
  if (arguments.json) {
    const nlohmann::ordered_json json = {
        {"model", config.model.name},
        {"parameters", parameter_count(graph)},
        {"tokens_per_step", config.train.batch_size * config.model.context},
        {"planned_peak_bytes", total},
        {"train", to_json(step_report)},
        {"evaluate", to_json(evaluation_report)}};
    fmt::print("{}\n", json.dump(2));
  } else {
    print_text(config, parameter_count(graph), machine, step_report, evaluation_report, total);
  }
  return ExitCode::kOk;
}

}  // namespace

void add_plan_command(CLI::App& app, ChosenCommand& chosen) {
  CLI::App* command =
      app.add_subcommand("plan", "Tell what a step computes, moves and needs, before it runs");
  auto arguments = std::make_shared<PlanArguments>();
  command->add_option("CONFIG", arguments->config, "YAML file")->required();
  command->add_option("key=value", arguments->overrides, "Settings that override the file's");
  command
      ->add_option("--vocabulary", arguments->vocabulary,
                   "Number of distinct tokens, where there is no text to count them in")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 31));
  command->add_flag("--graph", arguments->graph, "Print the graph that is run, after all passes");
  command->add_flag("--launches", arguments->launches, "Print every launch and every buffer");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->footer(
      "\nParameters, FLOPs and bytes per step, memory to the byte, and the time that no replay "
      "can\n"
      "beat on this machine. Nothing is allocated or trained.\n"
      "\nExample:\n"
      "  fullbore plan configs/default.yaml data.path=novel.txt model.width=512\n"
      "  fullbore plan configs/default.yaml --vocabulary 65 --json");
  command->callback(
      [&chosen, arguments] { chosen = [arguments] { return run_plan(*arguments); }; });
}

}  // namespace fullbore
