#include "fullbore/train/run_programs.h"

#include <algorithm>
#include <utility>

namespace fullbore {

std::vector<TracedStep> trace_steps(const TrainingJob& job) {
  std::vector<TracedStep> steps;
  for (const std::vector<BatchField>& shape : job.training->shapes()) {
    steps.push_back(
        trace_training_step(job.loss, shape, job.options.optimizer, job.options.accumulate));
    steps.back().graph = with_metrics(steps.back().graph, job.options.metrics);
  }
  return steps;
}

RunPrograms::RunPrograms(const TrainingJob& job, std::vector<TracedStep> traced, State& state,
                         Team& team, const Progress& progress) {
  const auto arena = std::make_shared<Arena>();
  const CompileOptions& options = job.options.compile;
  const size_t evaluations = job.validation ? job.validation->source->shapes().size() : 0;
  const size_t programs = traced.size() + evaluations;
  for (TracedStep& step : traced) {
    if (progress) progress(steps_.size(), programs);
    CompileReport report;
    steps_.emplace_back(std::move(step.graph), state, team, options, arena, &report);
    compile_seconds_ += report.passes_seconds + report.plan_seconds;
  }
  if (job.validation) {
    if (progress) progress(steps_.size(), programs);
    judge_ = job.validation->judge;
    evaluator_.emplace(job.loss, *job.validation, state, team, options, job.options.evaluate,
                       arena);
    plans_ = evaluator_->plans();
  }
  for (const CompiledStep& step : steps_) plans_.push_back(&step.plan());
}

RunScale RunPrograms::scale(const TrainingOptions& options, const State& state,
                            const Machine& machine) const {
  const Plan& largest = largest_step();
  RunScale scale;
  scale.total_steps = options.steps;
  scale.parameters = parameter_count(state);
  scale.flops_per_step = largest.flops;
  scale.peak_flops = peak_flops(options.compile.precision, machine.peaks);
  scale.planned_bytes = planned_bytes() + (options.saves.background ? largest.state_bytes : 0);
  scale.judge = judge_;
  scale.evaluation_interval = evaluator_ ? options.evaluation_interval : 0;
  return scale;
}

const Plan& RunPrograms::largest_step() const {
  const auto flops = [](const CompiledStep& step) { return step.plan().flops; };
  return std::ranges::max_element(steps_, {}, flops)->plan();
}

}  // namespace fullbore
