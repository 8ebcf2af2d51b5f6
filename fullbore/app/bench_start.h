#pragma once
#include <string>
#include <vector>

#include "fullbore/app/measured_job.h"
#include "fullbore/base/error.h"
#include "fullbore/monitor/run_summary.h"

namespace fullbore {

/// From the start of a process to the end of its first step.
struct StartTimes {
  std::vector<StartPart> parts;  ///< in order; the last is the step
  double seconds() const;        ///< of all of them
};

/// The same start twice.
struct MeasuredStart {
  StartTimes cold;  ///< with empty caches
  StartTimes warm;  ///< with those that it left behind
};

/// Starts `fullbore bench` anew, once for each, with --one-start, in a folder for temporary files that is removed
/// afterwards: its caches, those of a card's driver too, are nobody else's. DataError if a process fails, with its last words.
MeasuredStart measure_start(const MeasuredArguments& arguments,
                            const std::vector<std::string>& settings);

/// What such a process does: trains the job up to the end of its first step in the new run folder `run`, without
/// evaluations, writes the parts as JSON to standard output and ends, whatever is under way.
[[noreturn]] void make_one_start(const MeasuredArguments& arguments, const std::string& run);

}  // namespace fullbore
