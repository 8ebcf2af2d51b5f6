#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/base/result.h"
#include "fullbore/lab/process/child_process.h"
#include "fullbore/monitor/run_summary.h"

namespace fullbore {

/// An evaluation of a run, as its metrics.jsonl has it.
struct RunEvaluation {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  int64_t step = 0;
  double seconds = kUnknown;  ///< since the start of the command
  /// Every number of the line, without "validation_": {"loss", 1.88}, {"accuracy", 0.4}.
  std::vector<std::pair<std::string, double>> metrics;
  double metric(const std::string& name) const;  ///< kUnknown where there is none
};

/// What a run left in its folder.
struct RunOutcome {
  std::string status;  ///< of summary.json: "completed"
  int64_t steps = 0;
  double seconds_to_first_step = RunEvaluation::kUnknown;
  double wall_seconds = RunEvaluation::kUnknown;
  double final_train_loss = RunEvaluation::kUnknown;
  double tokens_per_step = RunEvaluation::kUnknown;  ///< counted, mean of the steps since its start
  double samples_per_second = RunEvaluation::kUnknown;  ///< where samples have a unit
  int64_t parameters = 0;
  int64_t planned_peak_bytes = 0;
  int64_t resident_peak_bytes = 0;
  std::vector<StartPart> start;            ///< to its first step, in order of the summary
  std::vector<RunEvaluation> evaluations;  ///< in order of steps
};
/// Failure: summary.json or metrics.jsonl is missing or damaged.
Result<RunOutcome> read_run_outcome(const std::string& folder);

/// A training run to be made by a process of its own.
struct TrainingRequest {
  std::string config;                 ///< file
  std::vector<std::string> settings;  ///< "key=value", the last of a key wins
  std::string folder;                 ///< run.dir; what was there of an earlier attempt is removed
  bool cold = false;  ///< with a cache of compiled programs of its own, which begins empty
  double deadline_seconds = 0;  ///< 0: none
};

struct TrainingResult {
  ChildEnd end;
  RunOutcome outcome;  ///< as far as it came
  std::string reason;  ///< why it is none to count with; "" if it is complete
  bool ok() const { return reason.empty(); }
};

/// `train CONFIG run.dir=FOLDER settings...`: runs, waits and reads. A run that fails, is refused or is killed is a result
/// with its reason. DataError only where no process can be started, or the folder's parent cannot be written.
TrainingResult run_training(const TrainingRequest& request, const StopRequest& stop = {});

/// The disk is none of a run's settings: nothing is concluded from what it has cost. DataError: a process ended for this
/// reason, and it is a full disk, a quota of it or a limit of a file's size.
void refuse_full_disk(const std::string& reason);

// The two halves of that, for who waits himself.
/// What of an earlier attempt is there is removed. Standard output and error go to FOLDER.out and FOLDER.err.
ChildCommand training_command(const TrainingRequest& request);
/// What it left, and how it ended.
TrainingResult training_result(const TrainingRequest& request, const ChildEnd& end);

}  // namespace fullbore
