#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fullbore/lab/ablation/turn_group.h"

namespace fullbore {

/// A run of an arm as an experiment keeps it: what was measured from outside and what it said of itself. A sealed JSON file,
/// written at once or not at all, so that an experiment goes on from what it has.
struct MeasuredRun {
  std::string reason;  ///< why it counts for nothing; empty: it is complete
  double ready_seconds = 0;
  double seconds_to_first_step = 0;  ///< from its start to the end of its first step
  double finish_seconds = 0;
  double wall_seconds = 0;  ///< from its start to its end, waiting for turns included
  double tokens_per_step = 0;
  double samples_per_step = 0;
  double joules_per_sample = RunEvaluation::kUnknown;  ///< of the machine, while it made steps
  int64_t resident_peak_bytes = 0;
  int64_t planned_peak_bytes = 0;
  std::vector<double> step_seconds;
  std::vector<int64_t> turns;
  std::vector<RunEvaluation> evaluations;

  bool ok() const { return reason.empty(); }
  /// Of the steps before this one.
  double seconds_until(int64_t step) const;
  /// The median over turns of their medians; of steps but the first where there are no turns; 0 where there are none.
  double median_step_seconds() const;
};

MeasuredRun measured_run(const TurnRun& run);
/// "key=value" of every run that is measured: nothing is saved, published or stopped early.
std::vector<std::string> measured_run_settings();

/// Failure: the disk is full, say; what was there before stays.
Status write_measured_run(const std::string& path, const MeasuredRun& run);
/// Failure: there is none, or it is damaged.
Result<MeasuredRun> read_measured_run(const std::string& path);
/// Text of such a file.
Result<MeasuredRun> parse_measured_run(const std::string& text, const std::string& path);

}  // namespace fullbore
