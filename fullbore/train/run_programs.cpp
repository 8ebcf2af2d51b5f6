#include "fullbore/train/run_programs.h"

#include <algorithm>
#include <utility>

namespace fullbore {

RunPrograms::RunPrograms(const TrainingJob& job, std::vector<Graph> graphs, State& state,
                         Team& team, const Progress& progress) {
  const auto arena = std::make_shared<Arena>();
  const CompileOptions& options = job.options.compile;
  const size_t evaluations = job.validation ? job.validation->source->shapes().size() : 0;
  const size_t programs = graphs.size() + evaluations;
  for (Graph& graph : graphs) {
    progress(steps_.size(), programs);
    steps_.emplace_back(std::move(graph), state, team, options, arena);
  }
  if (job.validation) {
    progress(steps_.size(), programs);
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
  scale.planned_bytes =
      shared_peak_bytes(plans_) + (options.saves.background ? largest.state_bytes : 0);
  scale.evaluation_interval = evaluator_ ? options.evaluation_interval : 0;
  return scale;
}

const Plan& RunPrograms::largest_step() const {
  const auto flops = [](const CompiledStep& step) { return step.plan().flops; };
  return std::ranges::max_element(steps_, {}, flops)->plan();
}

}  // namespace fullbore
