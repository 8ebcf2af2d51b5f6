#pragma once
#include <string>
#include <vector>

#include "fullbore/lab/diagnosis/run_facts.h"

namespace fullbore {

/// A run by what it left in its folder.
struct FinishedRun {
  RunFacts facts;
  std::string status;                       ///< of summary.json: "completed"
  double utilisation = RunFacts::kUnknown;  ///< of the machine's measured peak
  std::vector<std::string> notes;           ///< for people: what was missing or damaged
};

/// Reads summary.json, metrics.jsonl, the settings and the moments of the last checkpoint; computes nothing. Components
/// of a step are known of runs with log.detail=debug-performance. DataError: there is no run, its summary cannot be read,
/// or an older version wrote it, without phases.
FinishedRun read_finished_run(const std::string& run);

}  // namespace fullbore
