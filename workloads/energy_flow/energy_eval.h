#pragma once
#include "fullbore/app/workload.h"

namespace fullbore::energy_flow {

/// How `eval` measures runs of model.name=energy_flow: a table, or JSON, of the surface errors on pairs that were held out
/// beside those of the input's own surface and of the mean surface of the training pairs' targets, with intervals, and
/// of the flows.
EvalKind add_energy_eval(Command eval);

/// `energy eval`: the same.
void add_energy_eval_command(Command energy);

}  // namespace fullbore::energy_flow
