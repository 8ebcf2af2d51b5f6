#pragma once
#include "fullbore/app/workload.h"

namespace fullbore {

/// Of model.initialize_from: a run or checkpoint of ours, a safetensors file of anybody or a mapping of one
/// (train/foreign_weights.h), or what the workload reads besides. UsageError if
/// it is of another model: names, shapes and settings that differ are named; with model.initialize_partial only if
/// nothing of it fits. DataError: missing or damaged.
InitialWeights initial_weights(const Config& config, const OpenedWorkload& workload);

}  // namespace fullbore
