#include "fullbore/train/step_runner.h"

#include <fmt/format.h>

#include <chrono>

#include "fullbore/base/error.h"

namespace fullbore {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

TracedStep trace(const TrainingJob& job) {
  if (const size_t shapes = job.training->shapes().size(); shapes > 1)
    throw UsageError(fmt::format(
        "batches of {} shapes cannot be measured together: leave one, by data.buckets=[LENGTH]",
        shapes));
  TracedStep step = trace_training_step(job.loss, job.training->fields(), job.options.optimizer,
                                        job.options.accumulate);
  step.graph = with_metrics(step.graph, job.options.metrics);
  return step;
}

State filled_state(const TrainingJob& job, const TracedStep& step, Team& team) {
  State state = initial_state(step, job.options.seed, &team);
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
    : team_(job.options.workers > 0 ? job.options.workers : available_processors()),
      step_(trace(job)),
      state_(filled_state(job, step_, team_)),
      trace_seconds_(seconds_between(start, Clock::now())),
      program_(Program::compile(step_.graph, state_, team_, job.options.compile, &compilation_)),
      loader_(job.training, job.options.loader),
      loss_output_(program_.output("loss")),
      predictions_output_(program_.plan().graph.find_output("predictions")),
      samples_per_step_(samples_of(*job.training)),
      tokens_per_step_(job.tokens_per_step),
      build_seconds_(seconds_between(start, Clock::now())) {}

StepRunner::Step StepRunner::run() {
  const Clock::time_point start = Clock::now();
  const std::span<const void* const> batch = loader_.next();
  const Clock::time_point ready = Clock::now();
  program_.run(batch);
  const Clock::time_point done = Clock::now();
  if (steps_++ == 0) seconds_to_first_step_ = build_seconds_ + seconds_between(start, done);
  const auto read = [this](int output) {
    return double{*static_cast<const float*>(program_.result(output))};
  };
  return {.wait_seconds = seconds_between(start, ready),
          .run_seconds = seconds_between(ready, done),
          .loss = read(loss_output_),
          .tokens = predictions_output_ < 0 ? static_cast<double>(tokens_per_step_)
                                            : read(predictions_output_)};
}

}  // namespace fullbore
