#pragma once
#include <cstddef>

#include "fullbore/monitor/phase_clock.h"
#include "fullbore/train/step_outputs.h"

namespace fullbore {

class RunPrograms;
class State;

/// Watches a run from within, for measurements (TrainingJob::observer). What it does between its calls takes time of the
/// run, as RunPhase::host; nothing that is computed may depend on it.
class RunObserver {
 public:
  virtual ~RunObserver() = default;

  /// Everything is compiled and nothing has run. Both live until ended(), and no longer.
  virtual void begun(RunPrograms& programs, const State& state) = 0;
  /// A step on this shape of batch was made; of the first one, `seconds` belong to the start.
  virtual void step_made(size_t shape, double seconds, const StepResults& results) = 0;
  /// The run has completed, and all is saved. `seconds`: up to now.
  virtual void ended(const PhaseSeconds& seconds) = 0;
};

}  // namespace fullbore
