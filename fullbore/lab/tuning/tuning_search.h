#pragma once
#include <functional>
#include <string>
#include <vector>

#include "fullbore/lab/ablation/measured_run.h"
#include "fullbore/lab/process/child_process.h"
#include "fullbore/lab/tuning/tuning.h"

namespace fullbore {

struct HeatLimits {
  double turn_seconds = 3600;
  double seconds = 3600;  ///< of all runs together
};

/// Where candidates are measured: processes of this program (tuning_bench.h), or what a test makes of it.
class TuningBench {
 public:
  virtual ~TuningBench() = default;
  virtual ArmPlan plan(const TuningPoint& point) = 0;
  /// Runs that take turns, one of each point, the incumbent's first. One whose turn lasts longer than its limit is
  /// killed, and says so; all that have not ended when the heat's time is out are. Empty: stopped.
  virtual std::vector<MeasuredRun> heat(const std::vector<TuningPoint>& points, int64_t steps,
                                        const HeatLimits& limits) = 0;
  /// Of all that was done so far, in earlier processes too.
  virtual double seconds() const = 0;
};

struct SearchOptions {
  double seconds = 420;      ///< for all heats
  int64_t steps = 0;         ///< of a run in a heat; 0: as many as there is time for
  int64_t most_steps = 0;    ///< train.steps of the job
  int64_t memory_bytes = 0;  ///< for all runs of a heat together
  TuningQuality quality = TuningQuality::margin;
};

/// What makes a job smaller, the cheapest first.
std::vector<TuningPoint> memory_ladder(const Config& config);

/// Coordinate by coordinate: the candidates of one take turns with the incumbent, heat after heat, each heat in processes of its own.
/// Who is slower beyond its interval, or cannot be faster by what is worth a change, is dropped; who is faster beyond it becomes the
/// incumbent. Of a key one value is taken; of passes one after the other, each beside those before. Where the configuration does
/// not fit in memory, the cheapest rung of the ladder that does (recomputing, then parts) is what all starts from.
///
/// What is in the result is what was found: `taken` of it waits for a confirmation. MemoryError: nothing fits; UsageError: the job
/// cannot be planned; DataError: it cannot be run.
Tuning search_tuning(const Config& config, const std::vector<Coordinate>& space,
                     const SearchOptions& options, TuningBench& bench, const StopRequest& stop,
                     const std::function<void(const std::string& doing)>& progress);

}  // namespace fullbore
