#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "fullbore/app/commands.h"
#include "fullbore/app/job_options.h"
#include "fullbore/app/json_text.h"
#include "fullbore/app/memory_plan.h"
#include "fullbore/app/output.h"
#include "fullbore/app/parameter_report.h"
#include "fullbore/app/workload.h"
#include "fullbore/base/hash.h"
#include "fullbore/base/text.h"
#include "fullbore/device/registry.h"
#include "fullbore/ir/print.h"
#include "fullbore/monitor/machine.h"
#include "fullbore/passes/pass.h"
#include "fullbore/plan/cast_report.h"
#include "fullbore/plan/report.h"
#include "fullbore/plan/timeline.h"
#include "fullbore/train/batch_rows.h"
#include "fullbore/train/fp8_matmuls.h"
#include "fullbore/train/storage_keys.h"
#include "fullbore/train/stored_weights.h"

namespace fullbore {
namespace {

struct PlanArguments {
  std::string config;
  std::vector<std::string> overrides;
  int64_t vocabulary = 0;
  bool graph = false;
  bool launches = false;
  bool timeline = false;
  bool casts = false;
  bool parameters = false;
  bool json = false;
};

/// Passes and planning, without the code and the memory that Program::compile would make.
Plan plan_of(const Graph& graph, Device& device, const CompileOptions& options) {
  return compile_plan(graph, device, *device.compiler(), options);
}

struct ParameterCounts {
  int64_t all = 0;
  int64_t frozen = 0;  ///< of those

  std::string text() const {
    return frozen > 0 ? fmt::format("{} parameters, of which {} are frozen", all, frozen)
                      : fmt::format("{} parameters", all);
  }
};

ParameterCounts parameter_counts(const Graph& graph) {
  ParameterCounts counts;
  for (const StateEntry& entry : state_entries(graph)) {
    const bool frozen = entry.role == Role::frozen;
    if (frozen || entry.role == Role::parameter) counts.all += entry.type.elements();
    if (frozen) counts.frozen += entry.type.elements();
  }
  return counts;
}

/// The same where two configurations make the same programs of the same data.
std::string fingerprint(const std::vector<const Plan*>& plans, const CompileOptions& options) {
  // Kernels that a plan does not tell apart.
  const int less = static_cast<int>(CompileEffort::full) - static_cast<int>(options.compile);
  uint64_t hash = static_cast<uint64_t>(2 * less) + (options.row_invariant ? 1 : 0);
  for (const Plan* plan : plans)
    hash = hash_text(plan_text(*plan), hash_text(print(plan->graph), hash));
  return hash_hex(hash);
}

/// The programs of a run: a step and an evaluation for every shape of batch.
struct RunPlans {
  std::vector<std::vector<BatchField>> shapes;
  std::vector<Plan> steps;
  std::vector<Plan> evaluations;
  std::vector<Plan> others = {};  ///< OpenedWorkload::beside

  size_t programs() const { return steps.size() + evaluations.size() + others.size(); }
  size_t largest() const {
    const auto step =
        std::ranges::max_element(steps, {}, [](const Plan& plan) { return plan.flops; });
    return static_cast<size_t>(step - steps.begin());
  }
  int64_t lent_state_bytes = 0;  ///< PlannedRun has it
  /// As the trainer has them: on one State, in one arena.
  int64_t bytes(bool snapshot) const {
    return shared_peak_bytes(all()) + (snapshot ? steps[0].state_bytes - lent_state_bytes : 0);
  }
  /// Pinned memory of the host.
  int64_t host_bytes(bool snapshot) const { return steps[0].host_bytes * (snapshot ? 2 : 1); }
  std::vector<const Plan*> all() const {
    std::vector<const Plan*> plans;
    for (const auto* part : {&steps, &evaluations, &others})
      for (const Plan& plan : *part) plans.push_back(&plan);
    return plans;
  }
};

void print_shapes(const RunPlans& plans, const Machine& machine) {
  print_output("{:<16}{:>14}{:>16}{:>16}\n", "batch", "FLOP", "arena", "roofline ms");
  for (size_t i = 0; i < plans.shapes.size(); ++i) {
    const Plan& plan = plans.steps[i];
    print_output("{:<16}{:>14}{:>16}{:>16.3f}\n", plans.shapes[i][0].type.shape.text(),
                 count_text(plan.flops), bytes_text(static_cast<double>(plan.arena_bytes)),
                 1e3 * roofline_seconds(plan, machine.peaks));
  }
  print_output("\n");
}

/// "12 x 64 tokens".
std::string batch_words(const Config& config, const OpenedWorkload& workload, const Shape& batch) {
  if (workload.batch_size)
    if (std::string own = workload.batch_size(config); !own.empty()) return own;
  return fmt::format("{} {}", fmt::join(batch.dims(), " x "), workload.unit);
}

/// What a batch has in units of its rates.
double unit_count(const OpenedWorkload& workload, const std::vector<BatchField>& batch) {
  const bool is_of_rows = !workload.sample.empty() && workload.sample == workload.unit;
  return static_cast<double>(is_of_rows ? batch_rows(batch) : batch.front().type.elements());
}

void print_text(const Config& config, const OpenedWorkload& workload,
                const ParameterCounts& parameters, const ProcessMemory& process,
                const Machine& machine, const RunPlans& plans, const PlanReport& step,
                const PlanReport& evaluation) {
  const int64_t total_bytes = plans.bytes(config.train.background_saves);
  const std::vector<BatchField>& batch = plans.shapes[plans.largest()];
  print_output("{}: {}\n", config.model.name, parameters.text());
  print_output("{} bytes ({}) for the run: one State, and one arena for all {} programs\n",
               total_bytes, bytes_text(static_cast<double>(total_bytes)), plans.programs());
  const std::string allowed = bytes_text(static_cast<double>(memory_budget_bytes(config)));
  if (own_memory_bytes(config.engine.device)) {
    print_output("of {} allowed of {}'s memory\n", allowed, config.engine.device);
    if (const int64_t pinned = plans.host_bytes(config.train.background_saves); pinned > 0)
      print_output("and {} bytes ({}) of the host's memory, pinned, for moments{}\n", pinned,
                   bytes_text(static_cast<double>(pinned)),
                   config.train.background_saves ? " and their second copy" : "");
  } else {
    print_output("and at most for the process beside it, {} ({} in all, of {} allowed)\n",
                 text(process), bytes_text(static_cast<double>(total_bytes + process.bytes())),
                 allowed);
  }
  const bool tf32 = config.engine.precision == "tf32";
  print_output("machine: {} GFLOP/s {}, {} GB/s, {} workers\n",
               static_cast<int64_t>(peak_flops(DType::f32, machine.peaks, tf32) / 1e9),
               tf32 ? "tf32" : "fp32", static_cast<int64_t>(machine.peaks.bytes_per_second / 1e9),
               machine.workers);
  if (machine.fp32_method == "published")
    print_output("an estimate: peaks are those published for {}, and no step was measured on it\n",
                 config.engine.device);
  print_output("\n");
  if (plans.shapes.size() > 1) print_shapes(plans, machine);
  const int64_t parallel = microbatches(config).parallel;
  print_output("Training step, {}{}, at most {} {}/s\n{}\n",
               batch_words(config, workload, batch[0].type.shape),
               parallel > 1 ? fmt::format(" in {} parallel microbatches", parallel) : "",
               count_text(unit_count(workload, batch) / step.roofline_seconds),
               workload.unit == "tokens" ? "tok" : workload.unit, text(step));
  print_output("Evaluation step\n{}", text(evaluation));
}

ExitCode run_plan(const PlanArguments& arguments) {
  Config config = named_config(arguments.config, arguments.overrides);
  choose_processor(config);
  choose_caches(config);
  Console console;
  const OpenedWorkload workload =
      open_workload(config, console, {.vocabulary = arguments.vocabulary, .allowed = true});
  const FittedConfig fitted = fit_memory(config, workload);
  config = fitted.config;
  const LossFunction loss = workload.loss(config);
  if (arguments.parameters) {
    const OptimizerOptions optimizer = optimizer_options(config);
    const TracedStep step =
        trace_training_step(loss, workload.shapes(config).front(), optimizer, microbatches(config));
    print_output("{}", parameters_text(step, optimizer, static_cast<uint64_t>(config.run.seed)));
    return ExitCode::kOk;
  }
  const std::shared_ptr<Device> device = open_training_device(config);
  CompileOptions options = compile_options(config);
  options.memory_bytes = plan_memory_bytes(config, fitted.run.process);
  options.lent_state_bytes = fitted.run.lent_state_bytes;
  const MetricsLevel metrics = training_options(config).metrics;  // as the run has it
  RunPlans plans{.shapes = workload.shapes(config), .steps = {}, .evaluations = {}};
  plans.lent_state_bytes = options.lent_state_bytes;
  std::vector<std::string> fp8_layers;
  for (const std::vector<BatchField>& shape : plans.shapes) {
    const TracedStep traced =
        trace_training_step(loss, shape, optimizer_options(config), microbatches(config));
    fp8_layers = traced.fp8_layers;
    plans.steps.push_back(plan_of(with_metrics(traced.graph, metrics), *device, options));
  }
  const Plan& step = plans.steps[plans.largest()];
  if (arguments.graph) {
    print_output("{}", print(step.graph));
    return ExitCode::kOk;
  }
  if (arguments.launches) {
    print_output("{}", plan_text(step));
    return ExitCode::kOk;
  }
  if (arguments.casts) {
    print_output("{}", casts_text(step.graph));
    return ExitCode::kOk;
  }
  if (arguments.timeline) {
    print_output("{}", timeline_text(step));
    return ExitCode::kOk;
  }
  for (const std::vector<BatchField>& shape : plans.shapes) {
    const Graph evaluation = with_fp8_evaluation(trace_evaluation(loss, shape).graph, fp8_layers);
    plans.evaluations.push_back(plan_of(
        has_master_weights(config) ? evaluation : with_bf16_weights(evaluation), *device, options));
  }
  if (workload.beside)
    for (const Graph& graph : workload.beside(config))
      plans.others.push_back(plan_of(graph, *device, options));
  const Machine machine = known_machine(*device);
  const PlanReport step_report = report_plan(step, machine.peaks);
  const PlanReport evaluation_report =
      report_plan(plans.evaluations[plans.largest()], machine.peaks);
  const ParameterCounts parameters = parameter_counts(step.graph);
  if (arguments.json) {
    nlohmann::ordered_json json = {
        {"model", config.model.name},
        {"parameters", parameters.all},
        {"frozen_parameters", parameters.frozen},
        {"decisions", fitted.decisions},
        {"planned_peak_bytes", plans.bytes(config.train.background_saves)},
        {"process_bytes", fitted.run.process.bytes()},
        {"pinned_host_bytes", plans.host_bytes(config.train.background_saves)},
        {"fingerprint", fingerprint(plans.all(), options)},
        {"unit", workload.sample.empty() ? "tokens" : workload.sample},
        {"train", to_json(step_report)},
        {"evaluate", to_json(evaluation_report)}};
    if (workload.sample.empty())
      json["tokens_per_step"] = plans.shapes[plans.largest()][0].type.elements();
    write_output(json_text(json));
  } else {
    for (const std::string& decision : fitted.decisions) print_output("{}\n", decision);
    if (const std::string_view note = precision_note(config); !note.empty())
      print_output("{}\n", note);
    print_text(config, workload, parameters, fitted.run.process, machine, plans, step_report,
               evaluation_report);
  }
  return ExitCode::kOk;
}

}  // namespace

void add_plan_command(Command root) {
  Command command =
      root.add_subcommand("plan", "Tell what a step computes, moves and needs, before it runs");
  auto arguments = std::make_shared<PlanArguments>();
  command.add_option("CONFIG", arguments->config, "YAML file").required();
  command.add_option("key=value", arguments->overrides, "Settings that override the file's");
  command
      .add_option("--vocabulary", arguments->vocabulary,
                  "Number of distinct tokens, where there is no text to count them in")
      .between(int64_t{1}, int64_t{1} << 31);
  command.add_flag("--graph", arguments->graph, "Print the graph that is run, after all passes");
  command.add_flag("--launches", arguments->launches, "Print every launch and every buffer");
  command.add_flag("--casts", arguments->casts,
                   "Print every change of precision, and why it is made");
  command.add_flag("--parameters", arguments->parameters,
                   "Print every parameter, how it starts, and how it is updated");
  command.add_flag("--timeline", arguments->timeline, "Print what lives when in the arena");
  command.add_flag("--json", arguments->json, "Print JSON");
  command.footer(
      "\nParameters, FLOPs and bytes per step, memory to the byte, and the time that no replay "
      "can\n"
      "beat on this machine. Nothing is allocated or trained.\n"
      "\nExample:\n"
      "  fullbore plan configs/default.yaml data.path=novel.txt model.width=512\n"
      "  fullbore plan configs/default.yaml --vocabulary 65 --timeline\n"
      "  fullbore plan configs/default.yaml --vocabulary 65 engine.precision=bf16 --casts\n"
      "  fullbore plan configs/default.yaml --vocabulary 65 --parameters\n"
      "  fullbore plan configs/default.yaml --vocabulary 65 --json");
  command.runs([arguments] { return run_plan(*arguments); });
}

}  // namespace fullbore
