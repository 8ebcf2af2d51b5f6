#include "fullbore/train/step_runner.h"

#include <algorithm>
#include <utility>

#include "fullbore/device/registry.h"
#include "fullbore/train/frozen_weights.h"

namespace fullbore {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

TrainingJob without_validation(TrainingJob job) {
  job.validation.reset();
  return job;
}

State filled_state(const TrainingJob& job, const TracedStep& step) {
  std::vector<LentEntry> lent;
  if (job.frozen) lent = job.frozen->lend(state_entries(step.graph));
  State state = initial_state(
      step, job.options.seed,
      open_device(job.options.device, job.options.workers, job.options.moments_in_host), lent,
      made_state_entries(job));
  if (job.initialize) {
    job.initialize(state);
    start_ema(state);
  }
  if (job.maker) job.maker->begin(state);
  return state;
}

std::vector<Shape> first_shapes(const BatchSource& source) {
  std::vector<Shape> shapes;
  for (const std::vector<BatchField>& fields : source.shapes())
    shapes.push_back(fields.front().type.shape);
  return shapes;
}

}  // namespace

// One initialiser after the other, in the order of the members; `start` is when the first began.
StepRunner::StepRunner(const TrainingJob& job)
    : StepRunner(without_validation(job), Clock::now()) {}

StepRunner::StepRunner(const TrainingJob& job, Clock::time_point start)
    : traced_(trace_steps(job)),
      state_(filled_state(job, traced_.front())),
      trace_seconds_(seconds_between(start, Clock::now())),
      programs_(job, std::move(traced_), state_, {}),
      source_(job.training),
      ahead_(!job.maker),
      batches_(job, state_, programs_),
      batch_shapes_(first_shapes(*job.training)),
      tokens_per_step_(job.tokens_per_step),
      samples_per_row_(job.samples_per_row),
      build_seconds_(seconds_between(start, Clock::now())) {}

StepRunner::Step StepRunner::run() {
  const Clock::time_point start = Clock::now();
  const auto [shape, batch] = batches_.next();
  const Clock::time_point ready = Clock::now();
  CompiledStep& step = programs_.step(shape);
  step.run(batch);
  const Clock::time_point done = Clock::now();
  batches_.step_made(step);
  if (steps_++ == 0) seconds_to_first_step_ = build_seconds_ + seconds_between(start, done);
  return {.shape = shape,
          .wait_seconds = seconds_between(start, ready),
          .run_seconds = seconds_between(ready, done),
          .loss = step.loss(),
          .tokens = step.predictions(static_cast<double>(tokens_per_step_))};
}

int64_t StepRunner::samples_per_step(size_t shape) const {
  return batch_shapes_[shape].rank() == 0 ? 1 : batch_shapes_[shape][0] * samples_per_row_;
}

int64_t StepRunner::steps_to_warm_up(int64_t least, int64_t following) const {
  // Which shapes are to come is not known of batches that are made.
  if (shapes() == 1 || !ahead_) return least;
  std::vector<bool> met(shapes(), false);
  int64_t steps = least;
  for (int64_t next = 0; next < steps + following; ++next) {
    const size_t shape = source_->shape_at(static_cast<uint64_t>(next));
    if (met[shape]) continue;
    met[shape] = true;
    steps = std::max(steps, next + 1);
    if (std::ranges::find(met, false) == met.end()) break;
  }
  return steps;
}

}  // namespace fullbore
