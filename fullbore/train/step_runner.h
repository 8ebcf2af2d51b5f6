#pragma once
#include <chrono>
#include <cstdint>
#include <vector>

#include "fullbore/train/run_programs.h"
#include "fullbore/train/step_batches.h"

namespace fullbore {

/// A job's training step on demand, with nothing of a run around it: for measurements. Graphs, one per
/// shape of batch, initial State, batches and their order are those of train().
class StepRunner {
 public:
  /// Traces, fills the State and compiles. Throws what train() throws. `job` is not kept.
  explicit StepRunner(const TrainingJob& job);

  struct Step {
    size_t shape = 0;         ///< of its batch
    double wait_seconds = 0;  ///< until the batch was there
    double run_seconds = 0;
    double loss = 0;
    double tokens = 0;  ///< predictions where the step tells them, else tokens_per_step()
    double seconds() const { return wait_seconds + run_seconds; }
  };
  /// The next batch, and one step on it.
  Step run();

  size_t shapes() const { return batch_shapes_.size(); }
  /// Of the first tensor of such a batch, as "[12,64]".
  const Shape& batch_shape(size_t shape) const { return batch_shapes_[shape]; }
  int64_t samples_per_step(size_t shape) const;
  /// How many steps must have been made, `least` or more, for the `following` ones to meet no shape
  /// whose program has not run before. `least` where there is one shape.
  int64_t steps_to_warm_up(int64_t least, int64_t following) const;

  Program& program(size_t shape) { return programs_.step(shape).program(); }
  const Plan& plan(size_t shape) const { return programs_.step(shape).plan(); }
  /// Of all programs together, on one State and in one arena.
  int64_t planned_bytes() const { return programs_.planned_bytes(); }
  Device& device() const { return state_.device(); }
  const State& state() const { return state_; }
  int64_t steps() const { return steps_; }                      ///< made so far
  int64_t tokens_per_step() const { return tokens_per_step_; }  ///< at most; 0: the job has none

  double trace_seconds() const { return trace_seconds_; }  ///< gradients and State included
  double compile_seconds() const { return programs_.compile_seconds(); }
  /// Trace, State, compilation and the first step together; 0 before it.
  double seconds_to_first_step() const { return seconds_to_first_step_; }

 private:
  StepRunner(const TrainingJob& job, std::chrono::steady_clock::time_point start);

  std::vector<TracedStep> traced_;  ///< until they are compiled
  State state_;
  double trace_seconds_;
  RunPrograms programs_;
  std::shared_ptr<const BatchSource> source_;
  bool ahead_;  ///< batches are known before their steps
  StepBatches batches_;
  std::vector<Shape> batch_shapes_;
  int64_t steps_ = 0;
  int64_t tokens_per_step_;
  int64_t samples_per_row_;
  double build_seconds_;
  double seconds_to_first_step_ = 0;
};

}  // namespace fullbore
