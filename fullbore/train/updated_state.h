#pragma once
#include <string>
#include <vector>

#include "fullbore/train/step_function.h"

namespace fullbore {

/// What a model leaves behind beside its loss.
struct UpdatedState {
  /// State of role `control` that it updates with every batch it sees (Trace::update): running statistics of
  /// nn::batch_norm.
  std::vector<std::string> names;
  /// Does it leave anything else: results of its own, sequences' states, Loss::carried?
  bool others = false;
};

/// Traces the loss once, and once more where it leaves anything behind.
UpdatedState updated_state(const LossFunction& loss, const std::vector<BatchField>& fields);

/// State that a model that has just been traced may have updated: all that it has asked for but parameters and the count
/// of replays. Empty where it leaves nothing behind.
std::vector<std::string> possibly_updated(Trace& trace);

/// A training step's graph in which State of these names keeps its bits where the result `skipped` is not 0, as
/// parameters do: what is not finite would stay in running means for ever.
Graph with_state_kept_when_skipped(const Graph& graph, const std::vector<std::string>& names);

}  // namespace fullbore
