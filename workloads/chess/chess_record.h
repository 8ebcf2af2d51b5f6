#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/result.h"

namespace fullbore::chess {

/// The two tasks of one model, told apart by the first letter of the prompt.
enum class ChessTask {
  policy,  ///< P: a position -> candidate moves, their evaluations and the best move
  arbiter  ///< A: a position and a move -> the next position, the reward and two flags
};

/// A move with what it is worth to the side to move, in pawns. A mate in n moves is (100000 - n) / 100, being mated the
/// negative of that.
struct RankedMove {
  std::string move;  ///< as UCI writes it: "e2e4", "e7e8q"
  double eval = 0;
  bool operator==(const RankedMove&) const = default;
};

/// What an A completion says.
struct ArbiterAnswer {
  std::string fen;
  double reward = 0;
  bool terminated = false;
  bool truncated = false;
  bool operator==(const ArbiterAnswer&) const = default;
};

/// How records are written.
struct RecordFormat {
  bool padded = true;  ///< columns of 90, 30 and 40 characters; the prompt of P ends behind the FEN
  int eval_decimals = 2;  ///< 0 to 4
  double eval_limit =
      std::numeric_limits<double>::infinity();  ///< evaluations beyond it are cut to it
  int64_t history = 10;                         ///< most moves in an A prompt, its own included
  bool expanded_board =
      false;  ///< '.' for every empty square in P prompts: each square has its column
  bool force_prefix = false;  ///< padding and "M:" belong to the prompt of P
};

/// As the published corpora have it.
RecordFormat published_format();
/// Without padding, evaluations of one decimal within 20 pawns, at most four moves of history; P prompts end in " M:".
RecordFormat short_format();

/// One example of either task. Prompt and completion are two texts, so that a tokenizer of bytes takes them apart and no
/// boundary is ever searched for; the completion is without the end token.
struct ChessRecord {
  ChessTask task = ChessTask::policy;
  std::string prompt;
  std::string completion;
  std::string fen;   ///< of the position that the prompt shows, not expanded
  std::string move;  ///< A: the prompt's; P: ""
  /// P: the best moves, best first, evaluations cut to the format's limit; A: none.
  std::vector<RankedMove> top;
  bool operator==(const ChessRecord&) const = default;

  std::string text() const { return prompt + completion; }
};

/// The board field of a FEN with '.' for every empty square, the other fields as they are: 71 characters of board.
std::string expanded_fen(std::string_view fen);
/// The opposite.
std::string compact_fen(std::string_view fen);

/// What a P record asks, without an answer.
ChessRecord policy_prompt(std::string_view fen, const RecordFormat& format);
/// A P record. `order` are the indices of `top` in the order in which they are listed, each once.
ChessRecord policy_record(std::string_view fen, std::vector<RankedMove> top,
                          std::span<const size_t> order, const RecordFormat& format);
/// An A record. `history`: the moves before `move`, oldest first; of them the last format.history - 1 are kept.
ChessRecord arbiter_record(std::string_view fen, std::string_view move,
                           std::span<const std::string> history, const ArbiterAnswer& answer,
                           const RecordFormat& format);

/// A number of pawns as records write it: cut to the limit, never "-0.0".
std::string eval_text(double eval, const RecordFormat& format);
/// "0.001", "1.0", "0.5", "-1.0".
std::string reward_text(double reward);
std::string answer_text(const ArbiterAnswer& answer);

}  // namespace fullbore::chess
