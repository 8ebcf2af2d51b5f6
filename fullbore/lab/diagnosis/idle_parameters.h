#pragma once
#include <string>
#include <vector>

#include "fullbore/ckpt/checkpoint_folder.h"
#include "fullbore/runtime/state.h"

namespace fullbore {

/// Parameters whose gradient has been 0 in every element of every step so far: those of which all moments are 0, in the
/// order of the State. Optimizers without moments tell nothing: none.
std::vector<std::string> idle_parameters(const State& state);
/// The same of a checkpoint, in the order of its files; averages of checkpoints without moments tell nothing either.
/// Failure: it cannot be read.
Result<std::vector<std::string>> idle_parameters(const CheckpointFolder& checkpoint);

}  // namespace fullbore
