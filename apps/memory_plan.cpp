#include "apps/memory_plan.h"

#include <array>
#include <numeric>

#include "apps/language_batches.h"

namespace fullbore {
namespace {

// For comparing one plan with another; no figure is shown in seconds.
constexpr MachinePeaks kSomeMachine = {
    .fp32_flops = 200e9, .bf16_flops = 400e9, .bytes_per_second = 30e9};

}  // namespace

PlannedRun planned_run(const Config& config, int64_t tokens) {
  const LossFunction loss = model_loss(config, tokens);
  const std::vector<BatchField> fields = batch_fields(config);
  const CompileOptions options = compile_options(config);
  const int workers = worker_count(config);
  const auto plan_of = [&](const Graph& graph) {
    return compile_plan(graph, *make_backend(options.backend), options, workers);
  };
  const Plan step = plan_of(
      trace_training_step(loss, fields, optimizer_options(config), config.engine.accumulate).graph);
  PlannedRun run;
  for (const std::vector<BatchField>& shape : batch_shapes(config))
    run.rows = std::gcd(run.rows, shape.front().type.shape[0]);
  run.seconds = roofline_seconds(step, kSomeMachine);
  if (config.data.validation_fraction > 0) {
    const Plan evaluation = plan_of(trace_evaluation(loss, fields).graph);
    run.bytes = shared_peak_bytes(std::array{&step, &evaluation});
  } else {
    run.bytes = step.peak_bytes();
  }
  if (config.train.background_saves) run.bytes += step.state_bytes;
  return run;
}

FittedConfig fit_memory(const Config& config, int64_t tokens) {
  return fit_memory(config, [tokens](const Config& each) { return planned_run(each, tokens); });
}

}  // namespace fullbore
