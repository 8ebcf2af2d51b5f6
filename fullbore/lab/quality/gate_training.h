#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fullbore/lab/process/child_run.h"
#include "fullbore/lab/quality/gate.h"

namespace fullbore {

/// A setting whose runs a gate makes.
struct GateArm {
  std::string name;                   ///< for people
  std::string config;                 ///< file
  std::vector<std::string> settings;  ///< "key=value"
  Config settled;                     ///< what both give
};

struct GatePlan {
  GateArm a, b;
  std::string folder = {};  ///< of all runs: <folder>/a-1, b-1, a-2, ...
  bool resume = false;      ///< the folder is there, with runs of the same plan
  int64_t first_seed = 1;   ///< run.seed of the first pair
  int64_t pilot = 4;        ///< pairs that tell the spread, at least 2
  int64_t most_seeds = 16;  ///< pairs at most
  double minutes = 0;       ///< no pair is begun that would not be done by then; 0: no end
  QualityMetrics metrics = {};
  EquivalenceOptions options = {};
};

struct GateTraining {
  GateReport report;
  bool interrupted = false;  ///< what was finished is kept
};

/// Trains both settings by the same seeds, a process for each run, A and B in turns. The first `pilot` pairs tell the spread,
/// that tells how many are needed, and when these are made the test is made, once: looking after each pair and stopping
/// when it suits would let through more than alpha. Only what is plainly worse ends it early, and what would need
/// more seeds than there may be is left undecided at once.
///
/// Runs that are complete are kept and not made again. UsageError: the folder is there and `resume` is not set, or holds
/// another plan, and what differs. `tell` gets what is being done.
GateTraining train_gate(const GatePlan& plan, const StopRequest& stop,
                        const std::function<void(const std::string&)>& tell);

}  // namespace fullbore
