#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/chess/chess_record.h"
#include "workloads/chess/move.h"
#include "workloads/chess/reward_scheme.h"

namespace fullbore::chess {

/// The truth about one position, made once and asked by every answer to its prompt.
struct PolicyTruth {
  std::vector<Move> legal;
  std::vector<Move> top;      ///< best first, at most 5; none: there was no engine
  std::vector<double> evals;  ///< of `top`, in pawns

  bool is_legal(Move move) const;
  /// Place of a move in `top`, from 0; top.size() of one that is not there.
  size_t rank(Move move) const;
};
/// Failure: the FEN is no position, a move of `top` is not legal there, or stands twice.
Result<PolicyTruth> policy_truth(std::string_view fen, std::span<const RankedMove> top);

/// What a text says that ought to be "M: moves E: numbers B: move".
struct PolicyAnswer {
  static constexpr size_t kMost =
      64;  ///< moves and numbers that are looked at; more count, and earn nothing
  std::array<Move, kMost> moves{};
  std::array<double, kMost> evals{};
  size_t move_count = 0;
  size_t eval_count = 0;
  std::optional<Move> best;
  bool has_labels = false;    ///< M:, E: and B: stand in this order
  bool format_valid = false;  ///< the whole text is of the grammar (section 3 of the specification)
};
/// `text`: from "M:" on. Takes any bytes.
PolicyAnswer parse_policy_answer(std::string_view text);

/// An answer's scores, each in [0, 1] where its format is valid, and all 0 where it is not.
struct PolicyScore {
  bool format_valid = false;
  double best = 0;
  double candidates = 0;
  double evals = 0;
  double reward = 0;
  // What reports count; nothing of an answer without the format.
  bool best_legal = false;
  bool best_is_first = false;  ///< the engine's first move
  bool best_in_top = false;
  double legal_share = 0;  ///< of the listed moves; 0 of none
  double eval_error =
      0;  ///< mean |E - t| in pawns over listed moves of the truth, of `eval_errors` of them
  int64_t eval_errors = 0;
  std::optional<Move> best_move;  ///< behind "B:", legal or not
};
/// `completion`: what the model wrote behind `prompt`, without the end token; any bytes. Where the prompt ends in "M:",
/// this label is given back to it. Never throws; without an engine's truth an all-legal answer earns 0.212353.
PolicyScore score_policy(std::string_view prompt, std::string_view completion,
                         const PolicyTruth& truth, const RewardOptions& options = {});

}  // namespace fullbore::chess
