#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "workloads/chess/chess_record.h"
#include "workloads/chess/reward_scheme.h"

namespace fullbore::chess {

/// Fewest insertions, deletions and substitutions of bytes that make one text of the other.
int64_t edit_distance(std::string_view a, std::string_view b);
/// 1 - edit_distance / the longer length; 1 of two empty texts.
double text_similarity(std::string_view a, std::string_view b);

/// The right answer by the rules (transition.h). An illegal move leaves the position as it is, with `illegal_reward` and
/// truncated set. Failure: the FEN is no position.
Result<ArbiterAnswer> arbiter_truth(std::string_view fen, std::string_view move,
                                    double illegal_reward = -1);

/// What a text says that ought to be "FEN+reward+0|1+0|1".
struct ParsedArbiterAnswer {
  bool format_valid = false;
  ArbiterAnswer answer;  ///< where it is valid
};
ParsedArbiterAnswer parse_arbiter_answer(std::string_view completion);

/// An answer's scores, each in [0, 1] where its format is valid, and all 0 where it is not.
struct ArbiterScore {
  bool format_valid = false;
  double fen = 0;
  double reward_score = 0;
  double flags = 0;
  double reward = 0;
  // What reports count; nothing of an answer without the format.
  double similarity = 0;
  bool exact = false;         ///< all six fields of the FEN
  bool core = false;          ///< its first four
  bool reward_right = false;  ///< within 0.01
  bool terminated_right = false;
  bool truncated_right = false;
};
/// Any bytes; never throws.
ArbiterScore score_arbiter(std::string_view completion, const ArbiterAnswer& truth,
                           const RewardOptions& options = {});

}  // namespace fullbore::chess
