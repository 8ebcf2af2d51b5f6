#pragma once
#include <chrono>
#include <optional>
#include <string>

#include "fullbore/lab/diagnosis/run_facts.h"
#include "fullbore/monitor/console.h"
#include "fullbore/monitor/machine.h"
#include "fullbore/train/trainer.h"

namespace fullbore {

/// How much of a run is measured.
struct RecordedRunOptions {
  int64_t steps = 30;               ///< 2 or more: the first belongs to the start
  uint64_t evaluation_batches = 8;  ///< at most, of the evaluation at the end
};

/// A run that was measured, whose folder may go.
struct RecordedRun {
  RunFacts facts;
  RunCounts counts;               ///< of what was measured
  RunCounts planned;              ///< of what the configuration asks for
  double evaluation_batches = 0;  ///< of one whole evaluation; 0: there is none
  double launches_per_step = 0;
  int64_t parameters = 0;
  int64_t unrecorded_launches = 0;
  Machine machine;
};

/// Trains `job`, of `config`, for a few steps in the new folder `run`, as train() does, with an evaluation and a save at the
/// end, and records every launch of its steps. Progress goes to `console`, the run's own words nowhere. `start`: when
/// the command was given. None if a signal stopped it. Throws what train() throws.
std::optional<RecordedRun> record_run(TrainingJob job, const Config& config,
                                      const RecordedRunOptions& options, const std::string& run,
                                      Console& console,
                                      std::chrono::steady_clock::time_point start);

/// What the passes do to the job's step, without keeping a plan, for inactive_switches().
SwitchFacts switch_facts(const TrainingJob& job, const Config& config, const Machine& machine);

}  // namespace fullbore
