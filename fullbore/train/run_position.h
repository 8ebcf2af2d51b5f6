#pragma once
#include <cstdint>
#include <limits>

#include "fullbore/ckpt/run_record.h"

namespace fullbore {

/// Where a run stands. Holds no times, so that the checkpoint of a resumed run equals, byte by byte,
/// the uninterrupted run's.
struct RunPosition {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  int64_t step = 0;             ///< steps made, skipped ones included; the position in the data
  int64_t evaluated_step = -1;  ///< of the last evaluation
  int64_t best_step = -1;
  int64_t evaluations_since_best = 0;
  int64_t skipped_steps = 0;   ///< whose loss or gradients were not finite
  int64_t skipped_in_row = 0;  ///< the last ones
  int64_t restores = 0;        ///< to a checkpoint, as too many were skipped
  double train_loss = kUnknown;
  double validation_loss = kUnknown;
  double best_validation_loss = kUnknown;
  double best_score = kUnknown;  ///< Evaluation::score of the best

  /// The State at `step` was evaluated: true if it is the best so far, by score and then by loss.
  bool evaluated(double loss, double score);
  bool evaluated(double loss) { return evaluated(loss, loss); }
};

/// The part of a checkpoint's record that says where the run stands.
RunRecord to_record(const RunPosition& position);
/// What the record lacks, or has out of range, is taken as not known.
RunPosition to_position(const RunRecord& record);

}  // namespace fullbore
