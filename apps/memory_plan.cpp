#include "apps/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <future>
#include <numeric>

#include "fullbore/base/processor.h"
#include "fullbore/base/text.h"
#include "fullbore/train/least_memory.h"
#include "fullbore/train/shard_count.h"
#include "fullbore/train/step_function.h"

namespace fullbore {
namespace {

// For comparing one plan with another; no figure is shown in seconds.
MachinePeaks some_machine() {
  return {.fp32_flops = 200e9,
          .bf16_flops = this_processor().bf16_products ? 400e9 : 200e9,
          .bytes_per_second = 30e9};
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

PlannedRun planned_run(const Config& config, const Workload& workload, int64_t data_bytes) {
  const LossFunction loss = workload.loss(config);
  const std::vector<std::vector<BatchField>> shapes = workload.shapes(config);
  const std::vector<BatchField> fields = *std::ranges::max_element(shapes, {}, batch_elements);
  const int workers = worker_count(config);
  const bool validates = workload.validates(config);
  const TracedStep traced =
      trace_training_step(loss, fields, optimizer_options(config), batch_parts(config));
  Graph evaluated;
  if (validates)
    evaluated =
        with_streams_given(trace_evaluation(loss, fields, training_options(config).evaluate).graph);
  // A step and an evaluation for every shape; each has a loader with batches of its own.
  const int64_t programs = validates ? 2 : 1;
  const int64_t kept = config.data.workers == 0 ? 1 : config.data.prefetch + 1;
  PlannedRun run;
  run.process = process_memory({.nodes = (node_count(traced.graph) + node_count(evaluated)) *
                                         static_cast<int64_t>(shapes.size()),
                                .workers = workers,
                                .processors = available_processors(),
                                .loaders = programs * config.data.workers,
                                .batch_bytes = programs * kept * largest_batch_bytes(shapes),
                                .data_bytes = data_bytes,
                                .saves_in_background = config.train.background_saves});
  CompileOptions options = compile_options(config);
  options.memory_bytes = plan_memory_bytes(config, run.process);
  const auto plan_of = [&](const Graph& graph) {
    return compile_plan(graph, *make_backend(options.backend), options, workers);
  };
  // Beside one another: a start waits for both. With the graphs that the run will have, whose plans are kept for it.
  std::future<Plan> evaluation;
  if (validates)
    // Deferred, where the system has no thread for it.
    evaluation =
        std::async(std::launch::async | std::launch::deferred, [&] { return plan_of(evaluated); });
  const Plan step = plan_of(traced.graph);
  for (const std::vector<BatchField>& shape : shapes)
    run.rows = std::gcd(run.rows, shape.front().type.shape[0]);
  run.seconds = roofline_seconds(step, some_machine());
  if (evaluation.valid()) {
    const Plan held_out = evaluation.get();
    run.bytes = shared_peak_bytes(std::array{&step, &held_out});
  } else {
    run.bytes = step.peak_bytes();
  }
  if (config.train.background_saves) run.bytes += step.state_bytes;
  return run;
}

namespace {

int64_t shards_for(const Config& config, const Workload& workload) {
  if (config.optim.noise_scale) return 1;
  return shard_count(workload.loss(config), workload.shapes(config), config.engine.accumulate);
}

}  // namespace

// Shards are decided last, for they depend on the batch and never make a run fit; first, where nothing else is open, for
// that is one plan less.
FittedConfig fit_memory(const Config& config, const Workload& workload) {
  check_least_memory(config);
  const int64_t data_bytes =
      heap_bytes();  // before graphs and plans are made: of the data and their tokenizer
  const RunPlanner plan = [&](const Config& each) {
    return planned_run(each, workload, data_bytes);
  };
  if (config.engine.shards > 0) return fit_memory(config, plan);
  const int64_t budget = memory_budget_bytes(config);
  const bool is_open = config.train.batch_size == 0 || config.engine.accumulate == 0;
  Config sharded = config;
  if (!is_open) {
    sharded.engine.shards = shards_for(config, workload);
    const PlannedRun run = plan(sharded);
    if (run.resident_bytes() <= budget) return {sharded, run, {}};
    if (sharded.engine.shards == 1) return fit_memory(sharded, plan);
  }
  sharded.engine.shards = 1;
  FittedConfig fitted = fit_memory(sharded, plan);
  sharded = fitted.config;
  sharded.engine.shards = shards_for(sharded, workload);
  if (sharded.engine.shards == 1) return fitted;
  const PlannedRun run = plan(sharded);
  if (run.resident_bytes() <= budget) return {sharded, run, fitted.decisions};
  fitted.decisions.push_back(fmt::format("engine.shards=1: {} would take {}, {} are allowed",
                                         sharded.engine.shards,
                                         bytes_text(static_cast<double>(run.resident_bytes())),
                                         bytes_text(static_cast<double>(budget))));
  return fitted;
}

}  // namespace fullbore
