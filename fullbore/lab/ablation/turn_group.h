#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "fullbore/lab/process/child_run.h"

namespace fullbore {

struct TurnOptions {
  int64_t steps = 0;           ///< of each run: train.steps
  double turn_seconds = 0.25;  ///< that the fastest run's turns take, roughly
  uint64_t seed = 1;           ///< of the order within rounds
  /// The run that is started first finds the machine's memory as others left it, and may be 1 to 2 % slower for all of its
  /// life: whoever measures a group again has it started the other way round.
  bool last_first = false;
  double start_seconds =
      900;  ///< in which a run must be ready for its first step, else it is killed
  std::function<double()> joules = {};  ///< taken so far by the machine; empty, or NaN: not known
  double turn_limit_seconds = 3600;     ///< in which a turn must be done, with what is due in it
  /// In which all runs must have ended: those that have not are killed behind the round, as if their turns had lasted
  /// too long.
  double seconds = std::numeric_limits<double>::infinity();
};

/// A run of the group, and what was measured of it from outside.
struct TurnRun {
  TrainingResult result;
  double ready_seconds = 0;  ///< from its start to ready for its first step
  double finish_seconds =
      0;  ///< of its last turn and its end, steps left out: the last evaluation, the last save
  double samples = 0;         ///< of all steps
  double joules = 0;          ///< of turns that had steps alone, no evaluation
  double joules_samples = 0;  ///< of these turns; 0: nothing is known
  int64_t resident_peak_bytes = 0;
  std::vector<double> step_seconds;  ///< of every step, the wait for its batch included
  std::vector<int64_t> turns;        ///< the first step of each

  double samples_per_step() const;
};

/// Makes the runs side by side, by turns: each is started and makes its first step, then all make as many steps each in every
/// round, so many that the fastest takes `turn_seconds`, or fewer, for at least 64 rounds; an order is drawn for each two
/// rounds, of which the second has it backwards. A turn begins on the core of the processor on which the one before ended.
/// Who waits sleeps. One that fails, or is refused, is a
/// result with its reason, and the others go on. Where `stop` says so all are stopped; their results say that.
/// `progress`, if set, is told the steps made, of all runs together.
std::vector<TurnRun> run_in_turns(std::span<const TrainingRequest> requests,
                                  const TurnOptions& options, const StopRequest& stop = {},
                                  const std::function<void(int64_t steps)>& progress = {});

/// How the times of two runs of a group differ, by turn: the median over its steps of log(b's seconds / a's), the same steps
/// compared. The first step of a turn, for which caches hold another's data, is left out where a turn has three or more; and so
/// are the first `warm_up` turns: the first step, and the trial of how long steps take. `turns`: the first step of each of a's.
std::vector<double> log_time_ratios(std::span<const double> a, std::span<const int64_t> turns,
                                    std::span<const double> b, size_t warm_up = 2);
/// A run's own steps, likewise: the median of each turn, in seconds.
std::vector<double> turn_medians(std::span<const double> seconds, std::span<const int64_t> turns,
                                 size_t warm_up = 2);

}  // namespace fullbore
