#pragma once
#include <cstddef>
#include <span>

#include "fullbore/train/rollout.h"
#include "fullbore/train/step_outputs.h"
#include "workloads/chess/chess_tokens.h"
#include "workloads/chess/record_score.h"

namespace fullbore::chess {

/// One completion of a step, and what it earned.
struct StepCompletion {
  RolloutRow row;
  RecordScore score;
  double reward = 0;   ///< by reward.control, or the score's own
  bool counts = true;  ///< in the loss
};

/// Are the rewards of this group all alike? Groups of `samples` stand one behind the other.
bool is_equal_group(std::span<const StepCompletion> completions, size_t group, size_t samples);

/// Means over completions, all of them and by task, as metrics.
StepResults completion_figures(std::span<const StepCompletion> completions, size_t samples,
                               const ChessTokens& tokens);

}  // namespace fullbore::chess
