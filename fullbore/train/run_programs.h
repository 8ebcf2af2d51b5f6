#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fullbore/runtime/arena.h"
#include "fullbore/train/compiled_step.h"
#include "fullbore/train/evaluator.h"
#include "fullbore/train/run_reporter.h"
#include "fullbore/train/step_function.h"
#include "fullbore/train/trainer.h"

namespace fullbore {

/// The step for every shape of batch of job.training, with the results that the job asks for.
std::vector<TracedStep> trace_steps(const TrainingJob& job);

/// All programs of a run: a step and an evaluation for every shape of batch, compiled before the first
/// step, on one State and, because one runs at a time, in one arena.
class RunPrograms {
 public:
  using Progress = std::function<void(size_t done, size_t programs)>;

  /// `traced`: of trace_steps(). The State must outlive it. `progress` may be empty.
  RunPrograms(const TrainingJob& job, std::vector<TracedStep> traced, State& state,
              const Progress& progress);

  CompiledStep& step(size_t shape) { return steps_[shape]; }
  const CompiledStep& step(size_t shape) const { return steps_[shape]; }
  size_t shapes() const { return steps_.size(); }
  std::optional<Evaluator>& evaluator() { return evaluator_; }

  /// The step with the most operations.
  const Plan& largest_step() const;
  /// What all programs work in: between two runs it is anybody's.
  const Arena& arena() const { return *arena_; }
  const std::shared_ptr<Arena>& shared_arena() const { return arena_; }
  /// Others that work in the arena and count as the run's.
  void add_plans(std::span<const Plan* const> plans) {
    plans_.insert(plans_.end(), plans.begin(), plans.end());
  }
  /// Makes what every run writes of the arena resident, by all threads.
  void make_resident() const;
  size_t count() const { return plans_.size(); }
  /// State, the arena, and every program's batch, results and constants.
  int64_t planned_bytes() const { return shared_peak_bytes(plans_); }
  /// Of those that it was made with, how many TrainingJob::planned had.
  size_t planned_before() const { return planned_before_; }
  /// By the clock: passes, plans and kernels of all programs.
  double compile_seconds() const { return compile_seconds_; }
  /// Nodes of any program that have no kernel of their own; each once.
  const std::vector<KernelFallback>& fallbacks() const { return fallbacks_; }
  /// What was asked for and is done otherwise, each line once.
  const std::vector<std::string>& notices() const { return notices_; }
  /// What is known of the run before its first step; bytes are those planned, and the State's snapshot
  /// if there is one. The machine's peak is not among it.
  RunScale scale(const TrainingOptions& options, const State& state) const;

 private:
  /// Of State that none of the plans knows of, such as caches of programs that are compiled when they are needed.
  int64_t unplanned_bytes(const State& state) const;

  std::shared_ptr<Arena> arena_;
  std::vector<CompiledStep> steps_;
  std::optional<Evaluator> evaluator_;
  std::vector<const Plan*> plans_;
  size_t planned_before_ = 0;
  double compile_seconds_ = 0;
  std::vector<KernelFallback> fallbacks_;
  std::vector<std::string> notices_;
  std::string judge_;
};

}  // namespace fullbore
