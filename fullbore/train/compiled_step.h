#pragma once
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/runtime/program.h"
#include "fullbore/train/step_outputs.h"

namespace fullbore {

/// A training step compiled for one shape of batch, and what it returned, by name.
class CompiledStep {
 public:
  /// `graph`: of trace_training_step(), and what was prepared of it; State as for Program::bind().
  CompiledStep(Graph graph, PreparedProgram prepared, State& state, std::shared_ptr<Arena> arena);

  void run(std::span<const void* const> batch) { program_.run(batch); }

  const Graph& graph() const { return graph_; }
  const Plan& plan() const { return program_.plan(); }
  Program& program() { return program_; }

  // Of the last run:
  double loss() const { return read(loss_); }
  /// How many predictions the loss is the mean of; `otherwise` where the step does not tell.
  double predictions(double otherwise) const {
    return predictions_ < 0 ? otherwise : read(predictions_);
  }
  /// Was it not finite?
  bool is_bad() const;
  /// The loss scale, if gradients of a finite loss were not finite and a lower scale may mend that;
  /// else 0.
  double overflowed_scale() const;
  /// Does it leave the State alone when it is not?
  bool can_skip() const { return skipped_ >= 0; }
  /// All results but `skipped`.
  StepResults results() const;

 private:
  double read(int output) const;

  Graph graph_;
  Program program_;
  std::vector<std::pair<std::string, int>> results_;  ///< by output
  int loss_;
  int norm_;
  int predictions_;
  int skipped_;
  int loss_scale_;
};

}  // namespace fullbore
