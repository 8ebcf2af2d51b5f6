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

PlannedRun planned_run(const Config& config, const Workload& workload) {
  const LossFunction loss = workload.loss(config);
  const std::vector<std::vector<BatchField>> shapes = workload.shapes(config);
  const std::vector<BatchField> fields = *std::ranges::max_element(shapes, {}, batch_elements);
  const CompileOptions options = compile_options(config);
  const int workers = worker_count(config);
  const auto plan_of = [&](const Graph& graph) {
    return compile_plan(graph, *make_backend(options.backend), options, workers);
  };
  // Beside one another: a start waits for both. With the graphs that the run will have, whose plans are kept for it.
  std::future<Plan> evaluation;
  if (workload.validates(config)) {
    const Weights weights = training_options(config).evaluate;
    evaluation = std::async(std::launch::async, [&, weights] {
      return plan_of(with_streams_given(trace_evaluation(loss, fields, weights).graph));
    });
  }
  const Plan step = plan_of(
      trace_training_step(loss, fields, optimizer_options(config), batch_parts(config)).graph);
  PlannedRun run;
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
  const RunPlanner plan = [&](const Config& each) { return planned_run(each, workload); };
  if (config.engine.shards > 0) return fit_memory(config, plan);
  const int64_t budget = memory_budget_bytes(config);
  const bool is_open = config.train.batch_size == 0 || config.engine.accumulate == 0;
  Config sharded = config;
  if (!is_open) {
    sharded.engine.shards = shards_for(config, workload);
    const PlannedRun run = plan(sharded);
    if (run.bytes <= budget) return {sharded, run, {}};
    if (sharded.engine.shards == 1) return fit_memory(sharded, plan);
  }
  sharded.engine.shards = 1;
  FittedConfig fitted = fit_memory(sharded, plan);
  sharded = fitted.config;
  sharded.engine.shards = shards_for(sharded, workload);
  if (sharded.engine.shards == 1) return fitted;
  const PlannedRun run = plan(sharded);
  if (run.bytes <= budget) return {sharded, run, fitted.decisions};
  fitted.decisions.push_back(fmt::format(
      "engine.shards=1: {} would take {}, {} are allowed", sharded.engine.shards,
      bytes_text(static_cast<double>(run.bytes)), bytes_text(static_cast<double>(budget))));
  return fitted;
}

}  // namespace fullbore
