#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "fullbore/monitor/machine.h"
#include "fullbore/train/compiled_step.h"
#include "fullbore/train/evaluator.h"
#include "fullbore/train/run_reporter.h"
#include "fullbore/train/trainer.h"

namespace fullbore {

/// All programs of a run: a step and an evaluation for every shape of batch, compiled before the first
/// step, on one State and, because one runs at a time, in one arena.
class RunPrograms {
 public:
  using Progress = std::function<void(size_t done, size_t programs)>;

  /// `graphs`: of the step, one per shape of job.training, as traced. State and Team must outlive it.
  RunPrograms(const TrainingJob& job, std::vector<Graph> graphs, State& state, Team& team,
              const Progress& progress);

  CompiledStep& step(size_t shape) { return steps_[shape]; }
  size_t shapes() const { return steps_.size(); }
  std::optional<Evaluator>& evaluator() { return evaluator_; }

  /// The step with the most operations.
  const Plan& largest_step() const;
  size_t count() const { return plans_.size(); }
  /// What is known of the run before its first step; bytes are State, its snapshot if there is one,
  /// the arena, and every program's batch, results and constants.
  RunScale scale(const TrainingOptions& options, const State& state, const Machine& machine) const;

 private:
  std::vector<CompiledStep> steps_;
  std::optional<Evaluator> evaluator_;
  std::vector<const Plan*> plans_;
};

}  // namespace fullbore
