#pragma once
#include <cstdint>

#include "fullbore/train/memory_fit.h"

namespace fullbore {

/// What the run of a language model on `tokens` distinct tokens would take: its largest step and evaluation.
PlannedRun planned_run(const Config& config, int64_t tokens);

/// fit_memory() by such plans. `decisions` are for the console: none where the configuration leaves
/// nothing open and the run fits.
FittedConfig fit_memory(const Config& config, int64_t tokens);

}  // namespace fullbore
