#pragma once
#include "fullbore/app/workload.h"

namespace fullbore::energy_flow {

/// How `eval` measures runs of model.name=energy_bridge: on texts that were held out, greedily: how near the encoder comes
/// to the mapper's surfaces, and how many words are written right, from these and from the encoder's.
/// At most `pairs` pairs, 0: as many as the run held out.
ExitCode eval_bridge(const EvalRequest& request, int64_t pairs);

}  // namespace fullbore::energy_flow
