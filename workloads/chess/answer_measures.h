#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "workloads/chess/record_score.h"

namespace fullbore::chess {

/// Positions of which the recorded runs of recipe E count different best moves.
inline constexpr int64_t kDistinctOf = 200;

/// Of P answers. Shares are of all answers, in [0, 1]: one without the format counts as wrong everywhere.
struct PolicyMeasures {
  int64_t answers = 0;
  double format = 0;
  double legal_best = 0;    ///< the move behind "B:" is legal
  double legal_moves = 0;   ///< mean share of legal moves behind "M:"
  double best_move = 0;     ///< the engine's first
  double top_moves = 0;     ///< one of the engine's five
  double eval_error = 0;    ///< mean |E - t| in pawns over listed moves of the truth; 0 of none
  int64_t eval_errors = 0;  ///< how many those are
  double reward = 0;
  /// Different moves behind "B:" / answers that have one, 0 of none. Mean over each kDistinctOf of these in their order (what
  /// is left over behind the last is not counted): the more answers, the fewer moves can be new.
  double distinct_best = 0;
  double unique_completions = 0;  ///< different texts / answers
};

/// Of A answers, likewise.
struct ArbiterMeasures {
  int64_t answers = 0;
  double format = 0;
  double exact = 0;       ///< all six fields
  double core = 0;        ///< the first four
  double similarity = 0;  ///< mean
  double flags = 0;       ///< both right
  double reward_right = 0;
  double reward = 0;
  double unique_completions = 0;
};

/// Of one scored answer for reports and intervals.
struct ScoredAnswer {
  RecordScore score;
  std::string completion;
};

PolicyMeasures measure_policy(std::span<const ScoredAnswer> answers);
ArbiterMeasures measure_arbiter(std::span<const ScoredAnswer> answers);

/// What a model that has learnt nothing of positions would reach: a rising curve below this proves nothing.
struct ConstantMove {
  std::string move;  ///< "" without records
  double legal = 0;  ///< share of positions in which it is legal
  double reward =
      0;  ///< mean, were it the whole answer: listed alone with an evaluation of 0, and called the best
};
struct PolicyBaselines {
  int64_t positions = 0;
  ConstantMove always;  ///< the move that is legal most often
  /// The best choice of one move for White and one for Black: the share of all positions in which it is legal.
  ConstantMove white;
  ConstantMove black;
  double by_colour = 0;
};
PolicyBaselines policy_baselines(std::span<const ChessRecord> records,
                                 const RewardOptions& options = {});

/// The prompt's FEN as the answer, "+0.001+0+0" behind it.
struct CopyBaseline {
  int64_t answers = 0;
  double reward = 0;
  double exact = 0;
  double similarity = 0;
};
CopyBaseline copy_baseline(std::span<const ChessRecord> records, const RewardOptions& options = {});

}  // namespace fullbore::chess
