#pragma once
#include "apps/workload.h"
#include "fullbore/train/memory_fit.h"

namespace fullbore {

/// What a run would take: its largest step and evaluation, and the process beside them. `data_bytes`: heap_bytes()
/// after the data were opened.
PlannedRun planned_run(const Config& config, const Workload& workload, int64_t data_bytes);

/// fit_memory() by such plans, and engine.shards=auto: shard_count() of them if those fit, else one. `decisions` are
/// for the console: none where the configuration leaves nothing of memory open and the run fits.
FittedConfig fit_memory(const Config& config, const Workload& workload);

}  // namespace fullbore
