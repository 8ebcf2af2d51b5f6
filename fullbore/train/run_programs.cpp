#include "fullbore/train/run_programs.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string_view>
#include <utility>

#include "fullbore/plan/written_memory.h"
#include "fullbore/train/fp8_matmuls.h"
#include "fullbore/train/stored_weights.h"
#include "fullbore/train/tensor_groups.h"

namespace fullbore {

std::vector<TracedStep> trace_steps(const TrainingJob& job) {
  std::vector<TracedStep> steps;
  for (const std::vector<BatchField>& shape : job.training->shapes()) {
    steps.push_back(trace_training_step(job.loss, shape, job.options.optimizer, job.options.parts));
    if (job.options.metrics != MetricsLevel::all)  // which leaves nothing out
      steps.back().graph = with_metrics(steps.back().graph, job.options.metrics);
  }
  return steps;
}

RunPrograms::RunPrograms(const TrainingJob& job, std::vector<TracedStep> traced, State& state,
                         const Progress& progress)
    : arena_(std::make_shared<Arena>(state.device())) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<TracedStep> evaluations;
  if (job.validation)
    evaluations = trace_evaluations(job.loss, *job.validation, job.options.evaluate);
  for (TracedStep& step : evaluations)
    step.graph = with_fp8_evaluation(step.graph, traced.front().fp8_layers);
  if (!job.options.optimizer.storage.master_weights)
    for (TracedStep& step : evaluations) step.graph = with_bf16_weights(step.graph);
  std::vector<const Graph*> graphs;
  for (const auto* list : {&traced, &evaluations})
    for (const TracedStep& step : *list) graphs.push_back(&step.graph);
  CompileOptions options = job.options.compile;
  options.on_fallbacks = {};  // the run's log has them (fallbacks())
  options.on_notices = {};    // likewise
  std::vector<PreparedProgram> prepared = prepare_programs(
      graphs, state.device(), options,
      [&](size_t done) {
        if (progress) progress(done, graphs.size());
      },
      job.planned.get());
  if (job.planned) job.planned->clear();
  const auto add = [](auto& all, const auto& more) {
    for (const auto& each : more)
      if (std::ranges::find(all, each) == all.end()) all.push_back(each);
  };
  for (const PreparedProgram& program : prepared) {
    planned_before_ += program.was_planned;
    add(fallbacks_, program.report.fallbacks);
    add(notices_, program.report.notices);
  }
  // At once as large as the largest of these needs it, or those before would be recorded twice.
  int64_t arena_bytes = 0;
  for (const PreparedProgram& program : prepared) {
    arena_bytes = std::max(arena_bytes, program.plan.arena_bytes);
    if (program.copies) arena_bytes = std::max(arena_bytes, program.copies->arena_bytes);
  }
  arena_->reserve(arena_bytes);
  for (size_t i = 0; i < traced.size(); ++i)
    steps_.emplace_back(std::move(traced[i].graph), std::move(prepared[i]), state, arena_);
  if (job.validation) {
    judge_ = job.validation->judge;
    PreparedEvaluations own{evaluations.front().metrics, {}};
    for (size_t i = traced.size(); i < prepared.size(); ++i)
      own.programs.push_back(std::move(prepared[i]));
    evaluator_.emplace(*job.validation, std::move(own), state, arena_);
    plans_ = evaluator_->plans();
  }
  for (const CompiledStep& step : steps_) plans_.push_back(&step.plan());
  compile_seconds_ =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int64_t RunPrograms::unplanned_bytes(const State& state) const {
  std::set<std::string_view> planned;
  for (const Plan* plan : plans_)
    for (const Graph::Input& input : plan->graph.inputs()) planned.insert(input.name);
  int64_t bytes = 0;
  for (const StateEntry& entry : state.entries())
    if (!planned.contains(entry.name)) bytes += entry.type.bytes();
  return bytes;
}

void RunPrograms::make_resident() const {
  for (const ByteRange& range : written_memory(plans_))
    arena_->make_resident(range.begin, range.end - range.begin);
}

RunScale RunPrograms::scale(const TrainingOptions& options, const State& state) const {
  const Plan& largest = largest_step();
  RunScale scale;
  scale.total_steps = options.steps;
  scale.parameters = parameter_count(state);
  scale.flops_per_step = largest.flops;
  scale.flops_at_most = has_open_loops(largest);
  scale.planned_bytes = planned_bytes() + unplanned_bytes(state) +
                        (options.saves.background ? saved_bytes(state) : 0);
  scale.judge = judge_;
  scale.evaluation_interval = evaluator_ ? options.evaluation_interval : 0;
  return scale;
}

const Plan& RunPrograms::largest_step() const {
  const auto flops = [](const CompiledStep& step) { return step.plan().flops; };
  return std::ranges::max_element(steps_, {}, flops)->plan();
}

}  // namespace fullbore
