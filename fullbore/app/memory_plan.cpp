#include "fullbore/app/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <numeric>
#include <optional>

#include "fullbore/base/processor.h"
#include "fullbore/base/text.h"
#include "fullbore/base/threads.h"
#include "fullbore/device/registry.h"
#include "fullbore/monitor/machine.h"
#include "fullbore/runtime/planned_programs.h"
#include "fullbore/train/batch_rows.h"
#include "fullbore/train/fp8_matmuls.h"
#include "fullbore/train/least_memory.h"
#include "fullbore/train/parallel_count.h"
#include "fullbore/train/step_function.h"
#include "fullbore/train/storage_keys.h"
#include "fullbore/train/stored_weights.h"
#include "fullbore/train/updated_state.h"

namespace fullbore {
namespace {

// Of a step whose workers share launches instead of taking microbatches side by side, as a factor
// (bench/results/2026-11-24-shards-by-job.txt: 1.12 and 1.25).
constexpr double kFewerThreadGroupsTime = 1.2;

// For comparing one plan with another; no figure is shown in seconds.
MachinePeaks some_machine() {
  return {.fp32_flops = 200e9,
          .bf16_flops = this_processor().avx512_bf16 ? 400e9 : 200e9,
          .bytes_per_second = 30e9};
}

/// The same of a card: an RTX 4090, whose figures stand for those of others as far as their ratios matter here.
MachinePeaks some_card() {
  return {.fp32_flops = 82.6e12,
          .bf16_flops = 165.2e12,
          .bytes_per_second = 1008e9,
          .tf32_flops = 82.6e12,
          .host_bytes_per_second = 31.5e9};
}

/// What was measured of the device, if anybody did.
MachinePeaks peaks_of(Device& device, const Config& config) {
  if (!own_memory_bytes(config.engine.device)) return some_machine();
  const std::optional<Machine> kept = kept_machine(device.facts());
  return kept && kept->peaks.host_bytes_per_second > 0 ? kept->peaks : some_card();
}

int64_t batch_elements(const std::vector<BatchField>& shape) {
  return shape.front().type.shape.elements();
}

}  // namespace

namespace {

int64_t node_count(const Graph& graph) {
  int64_t count = 0;
  for (const Node& node : graph.nodes()) count += 1 + (node.body ? node_count(*node.body) : 0);
  return count;
}

/// Of frozen parameters that are read where they lie: no snapshot is taken of them.
int64_t lent_bytes(const OpenedWorkload& workload, const TracedStep& step) {
  int64_t bytes = 0;
  if (workload.frozen)
    for (const StateEntry& entry : state_entries(step.graph))
      if (entry.role == Role::frozen && workload.frozen->find(entry.name) != nullptr)
        bytes += entry.type.bytes();
  return bytes;
}

/// Of a batch of each field at its largest.
int64_t largest_batch_bytes(const std::vector<std::vector<BatchField>>& shapes) {
  int64_t sum = 0;
  for (size_t field = 0; field < shapes.front().size(); ++field) {
    int64_t largest = 0;
    for (const std::vector<BatchField>& shape : shapes)
      largest = std::max(largest, shape[field].type.bytes());
    sum += largest;
  }
  return sum;
}

}  // namespace

PlannedRun planned_run(const Config& config, const OpenedWorkload& workload,
                       const PlannedMachine& machine, int64_t data_bytes) {
  const LossFunction loss = workload.loss(config);
  const std::vector<std::vector<BatchField>> shapes = workload.shapes(config);
  const std::vector<BatchField> fields = *std::ranges::max_element(shapes, {}, batch_elements);
  const bool validates = workload.validates(config);
  TracedStep traced =
      trace_training_step(loss, fields, optimizer_options(config), microbatches(config));
  Graph evaluated;
  if (validates)
    evaluated = with_recurrent_states_given(
        trace_evaluation(loss, fields, training_options(config).evaluate).graph);
  evaluated = with_fp8_evaluation(evaluated, traced.fp8_layers);
  if (!has_master_weights(config)) evaluated = with_bf16_weights(evaluated);
  // A step and an evaluation for every shape; each has a loader with batches of its own.
  const int64_t programs = validates ? 2 : 1;
  const int64_t kept = config.data.workers == 0 ? 1 : config.data.prefetch + 1;
  PlannedRun run;
  const bool in_host_memory = !own_memory_bytes(config.engine.device);
  if (in_host_memory)
    run.process = process_memory({.nodes = (node_count(traced.graph) + node_count(evaluated)) *
                                           static_cast<int64_t>(shapes.size()),
                                  .workers = machine.workers,
                                  .processors = machine.processors,
                                  .loaders = programs * config.data.workers,
                                  .batch_bytes = programs * kept * largest_batch_bytes(shapes),
                                  .data_bytes = data_bytes,
                                  .saves_in_background = config.train.background_saves});
  CompileOptions options = compile_options(config);
  options.memory_bytes = plan_memory_bytes(config, run.process);
  run.lent_state_bytes = options.lent_state_bytes = lent_bytes(workload, traced);
  const std::shared_ptr<Device> device = open_device(
      config.engine.device, static_cast<int>(machine.workers), has_moments_in_host(config));
  const auto plan_of = [&](const Graph& graph) { return plan_program(graph, *device, options); };
  // Beside one another: a start waits for both. With the graphs that the run will have, which takes the plans over.
  std::future<PlannedProgram> evaluation;
  if (validates)
    // Deferred, where the system has no thread for it.
    evaluation =
        std::async(std::launch::async | std::launch::deferred, [&] { return plan_of(evaluated); });
  PlannedProgram step = plan_of(traced.graph);
  for (const std::vector<BatchField>& shape : shapes)
    run.rows = std::gcd(run.rows, batch_rows(shape));
  run.thread_groups = most_thread_groups(step.plan);
  run.seconds = roofline_seconds(step.plan, peaks_of(*device, config));
  if (run.thread_groups < std::min<int64_t>(microbatches(config).parallel, machine.workers))
    run.seconds *= kFewerThreadGroupsTime;
  std::vector<PlannedProgram> others;
  if (evaluation.valid()) others.push_back(evaluation.get());
  if (workload.beside)
    for (const Graph& graph : workload.beside(config)) others.push_back(plan_of(graph));
  std::vector<const Plan*> plans = {&step.plan};
  for (const PlannedProgram& other : others) plans.push_back(&other.plan);
  run.bytes = shared_peak_bytes(plans);
  if (config.train.background_saves) run.bytes += step.plan.state_bytes - run.lent_state_bytes;
  run.host_bytes = step.plan.host_bytes * (config.train.background_saves ? 2 : 1);
  // What is free of a card's own memory, which plans keep to, is another number when the run begins.
  if (in_host_memory) {
    run.programs = std::make_shared<PlannedPrograms>();
    run.programs->add(std::move(traced.graph), *device, options, std::move(step));
    if (validates)
      run.programs->add(std::move(evaluated), *device, options, std::move(others.front()));
  }
  return run;
}

void set_plans(const Config& config, const PlannedRun& run, TrainingJob& job) {
  job.options.compile.memory_bytes = plan_memory_bytes(config, run.process);
  job.options.compile.lent_state_bytes = run.lent_state_bytes;
  job.planned = run.programs;
}

FittedConfig fit_memory(const Config& config, const OpenedWorkload& workload) {
  check_least_memory(config);
  // Before graphs and plans are made: of the data and their tokenizer.
  const int64_t data_bytes = heap_bytes();
  RunPlanning planning;
  planning.here = [&](const Config& each) {
    return planned_run(each, workload, {worker_count(each), available_processors()}, data_bytes);
  };
  // Tables of the data are not counted either: how much was allocated for them depends on threads.
  planning.least = [&](const Config& each) { return planned_run(each, workload, {}, 0); };
  planning.parallel_counts = [&](const Config& each) -> std::vector<int64_t> {
    // Side by side they would only take memory of a card, which one launch fills.
    if (each.optim.noise_scale || own_memory_bytes(each.engine.device)) return {1};
    return parallel_counts(workload.loss(each), workload.shapes(each), each.engine.accumulate);
  };
  planning.needs_whole_batch = [&](const Config& each) {
    return !updated_state(workload.loss(each), workload.shapes(each).front()).names.empty();
  };
  FittedConfig fitted = fit_memory(config, planning);
  const int64_t thread_groups =
      std::min<int64_t>(fitted.config.engine.parallel_microbatches, worker_count(fitted.config));
  if (fitted.run.thread_groups < thread_groups && !own_memory_bytes(config.engine.device))
    fitted.decisions.push_back(fmt::format(
        "{} of {} microbatches at a time, not {}, to keep to {}: to the same bits, but slower",
        fitted.run.thread_groups, fitted.config.engine.parallel_microbatches, thread_groups,
        bytes_text(static_cast<double>(memory_budget_bytes(config)))));
  return fitted;
}

}  // namespace fullbore
