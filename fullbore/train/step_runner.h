#pragma once
#include <chrono>
#include <cstdint>

#include "fullbore/data/loader.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/step_function.h"
#include "fullbore/train/trainer.h"

namespace fullbore {

/// A job's training step on demand, with nothing of a run around it: for measurements. Graph,
/// initial State, batches and their order are those of train().
class StepRunner {
 public:
  /// Traces, fills the State and compiles. Throws what train() throws, and UsageError where batches
  /// come in several shapes: figures of a mixture would depend on which were met. `job` is not kept.
  explicit StepRunner(const TrainingJob& job);

  struct Step {
    double wait_seconds = 0;  ///< until the batch was there
    double run_seconds = 0;
    double loss = 0;
    double tokens = 0;  ///< predictions where the step tells them, else tokens_per_step()
    double seconds() const { return wait_seconds + run_seconds; }
  };
  /// The next batch, and one step on it.
  Step run();

  Program& program() { return program_; }
  const Program& program() const { return program_; }
  Team& team() { return team_; }
  const State& state() const { return state_; }
  int64_t steps() const { return steps_; }  ///< made so far
  int64_t samples_per_step() const { return samples_per_step_; }
  int64_t tokens_per_step() const { return tokens_per_step_; }  ///< at most; 0: the job has none

  double trace_seconds() const { return trace_seconds_; }  ///< gradients and State included
  const CompileReport& compilation() const { return compilation_; }
  /// Trace, State, compilation and the first step together; 0 before it.
  double seconds_to_first_step() const { return seconds_to_first_step_; }

 private:
  StepRunner(const TrainingJob& job, std::chrono::steady_clock::time_point start);

  Team team_;
  TracedStep step_;
  State state_;
  double trace_seconds_;
  CompileReport compilation_;
  Program program_;
  Loader loader_;
  int loss_output_;
  int predictions_output_;  ///< or -1
  int64_t steps_ = 0;
  int64_t samples_per_step_;
  int64_t tokens_per_step_;
  double build_seconds_;
  double seconds_to_first_step_ = 0;
};

}  // namespace fullbore
