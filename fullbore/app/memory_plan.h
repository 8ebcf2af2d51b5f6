#pragma once
#include "fullbore/app/workload.h"
#include "fullbore/train/memory_fit.h"

namespace fullbore {

/// Of the machine that a run is planned for.
struct PlannedMachine {
  int workers = 1;     ///< threads of a step
  int processors = 1;  ///< threads that compile
};

/// What a run would take: its largest step and evaluation, and the process beside them. `data_bytes`: heap_bytes()
/// after the data were opened.
PlannedRun planned_run(const Config& config, const OpenedWorkload& workload,
                       const PlannedMachine& machine, int64_t data_bytes);

/// Has the job of that configuration keep to what such a run was planned to take, and take its plans over.
void set_plans(const Config& config, const PlannedRun& run, TrainingJob& job);

/// fit_memory() by such plans, and by parallel_counts() where engine.parallel_microbatches is auto. `decisions` are for
/// the console: none where the configuration leaves nothing of memory open and the run fits.
FittedConfig fit_memory(const Config& config, const OpenedWorkload& workload);

}  // namespace fullbore
