#pragma once
#include <string>
#include <vector>

#include "fullbore/train/step_function.h"

namespace fullbore {

/// What the sums over microbatches begin with must be there before a loop's body asks for the parameters: the model
/// is traced once for these alone.
struct Rehearsal {
  size_t terms = 0;        ///< of the loss, dead ones left out
  std::vector<bool> dead;  ///< of all its terms
  std::vector<std::string> dead_names;
  bool counted = false;
  std::vector<Metric> metrics;  ///< their names and kinds: the tensors are another trace's
  std::vector<CarriedState::Entry> updated;  ///< State that the model updates, as the step finds it
};

/// Traces the loss of one microbatch, of `fields`, and declares the State that it asks for in `trace`. UsageError: the
/// model leaves behind what microbatches, so many, have no place for (microbatches.h).
Rehearsal declare_state(Trace& trace, const LossFunction& loss,
                        const std::vector<BatchField>& fields, const Microbatches& counts);

}  // namespace fullbore
