#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/lab/diagnosis/launch_totals.h"
#include "fullbore/monitor/phase_clock.h"
#include "fullbore/monitor/run_summary.h"

namespace fullbore {

/// One thing that the wall time of a run goes to.
struct AttributionRow {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  RunPhase phase = RunPhase::step;
  std::string what;  ///< "matmul", "compile", "between launches"; within a phase each once
  double seconds = 0;
  double roofline_seconds = kUnknown;  ///< of kernels
  double memory_seconds = kUnknown;    ///< the part of the roofline that memory bounds
  double launches = kUnknown;          ///< of kernels, all together
};

/// Where all of the wall time of a run went: rows by phase, in the order of RunPhase, the longest of a phase first.
struct Attribution {
  double wall_seconds = 0;  ///< by a clock of its own, not by adding up the rows
  std::vector<AttributionRow> rows;

  double seconds() const;  ///< of all rows together
  double seconds(RunPhase phase) const;
  double seconds(RunPhase phase, std::string_view what) const;  ///< 0: there is no such row
  /// Of the phases that each step goes through: data, rollouts, step, host.
  double loop_seconds() const;
};

inline constexpr const char* kIdle = "between launches";
inline constexpr const char* kStep = "the step";
inline constexpr const char* kSave = "save";
inline constexpr const char* kLastSave = "wait for the last save";

/// Kernels of some of a run's steps.
struct RecordedSteps {
  double step_seconds = 0;  ///< of these steps together; 0: none was recorded
  std::vector<KernelClass> kernels = {};
  double idle_seconds = 0;
};

/// `start`: parts of the phase of this name; what is left of it measures the machine. What was recorded of some steps is
/// taken to be so of all. `save_stall_seconds`: for which saves held the loop up; the rest of the phase waits for the last
/// one, at the end.
Attribution attribute(double wall_seconds, const PhaseSeconds& phases,
                      const std::vector<StartPart>& start, const RecordedSteps& recorded,
                      double save_stall_seconds);

/// A run whose steps go like those of another attribution, which has their kernels: the same seconds of its steps, in the
/// other's rows and with their shares of the roofline. Where the other has no steps the run stays as it is.
Attribution with_steps_of(const Attribution& run, const Attribution& measured);

/// What happens how often in a run.
struct RunCounts {
  double steps = 0;              ///< beyond the first, which belongs to the start
  double evaluated_batches = 0;  ///< in all evaluations together
  double saves = 0;              ///< that hold the loop up
};
/// A run of `counts` that goes like the one that was measured, of `measured`.
Attribution project(const Attribution& attribution, const RunCounts& measured,
                    const RunCounts& counts);

}  // namespace fullbore
