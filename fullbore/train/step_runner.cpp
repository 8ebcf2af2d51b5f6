#include "fullbore/train/step_runner.h"

#include <chrono>

namespace fullbore {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

TracedStep trace(const TrainingJob& job) {
  TracedStep step = trace_training_step(job.loss, job.training->fields(), job.options.optimizer);
  step.graph = with_metrics(step.graph, job.options.metrics);
  return step;
}

State filled_state(const TrainingJob& job, const TracedStep& step) {
  State state = initial_state(step, job.options.seed);
  if (job.initialize) {
    job.initialize(state);
    start_averages(state);
  }
  return state;
}

int64_t samples_of(const BatchSource& source) {
  const Shape& shape = source.fields().front().type.shape;
  return shape.rank() == 0 ? 1 : shape[0];
}

}  // namespace

// One initialiser after the other, in the order of the members; `start` is when the first began.
StepRunner::StepRunner(const TrainingJob& job) : StepRunner(job, Clock::now()) {}

StepRunner::StepRunner(const TrainingJob& job, Clock::time_point start)
    : step_(trace(job)),
      state_(filled_state(job, step_)),
      team_(job.options.workers > 0 ? job.options.workers : available_processors()),
      trace_seconds_(seconds_between(start, Clock::now())),
      program_(Program::compile(step_.graph, state_, team_, job.options.compile, &compilation_)),
      loader_(job.training, job.options.loader),
      loss_output_(program_.output("loss")),
      samples_per_step_(samples_of(*job.training)),
      tokens_per_step_(job.tokens_per_step) {}

StepRunner::Step StepRunner::run() {
  const Clock::time_point start = Clock::now();
  const std::span<const void* const> batch = loader_.next();
  const Clock::time_point ready = Clock::now();
  program_.run(batch);
  const Clock::time_point done = Clock::now();
  ++steps_;
  return {seconds_between(start, ready), seconds_between(ready, done),
          double{*static_cast<const float*>(program_.result(loss_output_))}};
}

int64_t StepRunner::parameters() const {
  int64_t count = 0;
  for (const StateEntry& entry : state_.entries())
    if (entry.role == Role::parameter || entry.role == Role::frozen) count += entry.type.elements();
  return count;
}

}  // namespace fullbore
