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

}  // namespace fullbore
