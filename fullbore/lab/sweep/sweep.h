#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "fullbore/lab/process/child_run.h"
#include "fullbore/lab/sweep/sweep_space.h"

namespace fullbore {

/// What became of a trial in a round: a sealed JSON file.
struct SweepRun {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  struct Point {
    int64_t step = 0;
    double value = 0;
    bool operator==(const Point&) const = default;
  };

  int64_t trial = 0;
  int64_t round = 0;
  std::string reason;         ///< why there is no value; empty: there is
  double value = kUnknown;    ///< the metric at the last evaluation
  std::vector<Point> curve;   ///< of all evaluations
  double seconds = kUnknown;  ///< from start to end of the process
  int64_t resident_peak_bytes = 0;
  bool ok() const { return reason.empty(); }
};

Status write_sweep_run(const std::string& path, const SweepRun& run);
/// Failure: there is none, or it is damaged.
Result<SweepRun> read_sweep_run(const std::string& path);
Result<SweepRun> parse_sweep_run(const std::string& text, const std::string& path);

struct SweepRequest {
  SweepSpace space;
  std::string source;  ///< text of the space's file: a folder of another is not gone on with
  std::string folder;
  bool resume = false;
  int64_t most_steps = 0;    ///< train.steps of the job
  int64_t at_once = 0;       ///< runs side by side; 0: as many as there are processors
  int64_t threads = 0;       ///< engine.threads of the job; 0: processors over at_once
  double minutes = 0;        ///< no run begins afterwards; 0: no end
  int64_t memory_bytes = 0;  ///< of all runs together; 0: any
};

struct Sweep {
  SweepTrials trials;
  std::vector<int64_t> rounds;              ///< steps
  std::vector<std::vector<SweepRun>> runs;  ///< by round, those that were made, by trial
  bool interrupted = false;
  bool out_of_time = false;
};

/// Makes all runs, each a process of its own, `at_once` side by side as far as memory allows. What was finished is kept:
/// --resume goes on. A trial that is refused, fails or is killed is a run with its reason. Of halving each round begins
/// anew with more steps: schedules depend on the number of steps, and a prefix of a longer run is another run.
/// UsageError: the folder holds a sweep and `resume` is not set, or that of another file. DataError: a file cannot be
/// written. `tell` gets what is being done, from one thread at a time.
Sweep run_sweep(const SweepRequest& request, const StopRequest& stop,
                const std::function<void(const std::string&)>& tell);

/// Trials that go on to the next round, the best first: one of `reduction`, rounded up, of those that have a value.
std::vector<int64_t> survivors(const std::vector<SweepRun>& runs, const SweepSpace& space);

}  // namespace fullbore
