#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "workloads/chess/position.h"

namespace fullbore::chess {

/// How a game stands without any claim.
enum class GameResult : uint8_t {
  kOngoing,
  kCheckmate,             ///< the side to move has lost
  kInsufficientMaterial,  ///< K-K, K and a minor piece-K, or bishops on squares of one colour only
  kStalemate,
  kSeventyFiveMoves,    ///< 150 half-moves without capture or pawn move
  kFivefoldRepetition,  ///< the position occurs for the fifth time
};

/// "ongoing", "checkmate", "insufficient material", ...
const char* result_name(GameResult result);

bool has_insufficient_material(const Position& position);

/// `earlier`: position_key() of the positions before this one, in the order of the game; those before the last capture
/// or pawn move make no difference. Without them no repetition is seen. Checked in the order of GameResult.
/// Source: FIDE Laws of Chess 5 and 9.
GameResult game_result(const Position& position, std::span<const uint64_t> earlier = {});

/// What the side to move may claim a draw by.
struct DrawClaims {
  bool fifty_moves = false;  ///< 100 half-moves without capture or pawn move, and a legal move
  bool threefold_repetition = false;  ///< the position occurs for the third time or more
};
DrawClaims draw_claims(const Position& position, std::span<const uint64_t> earlier = {});

/// A game from its first position on.
class Game {
 public:
  explicit Game(const Position& start = start_position())
      : start_(start), position_(start), keys_{position_key(start)} {}

  /// False, and nothing happens, if the move is not legal.
  bool play(Move move);
  bool play(std::string_view uci);

  const Position& start() const { return start_; }
  const Position& position() const { return position_; }
  const std::vector<Move>& moves() const { return moves_; }
  /// position_key() of all positions, the one before the first move first and position() last.
  std::span<const uint64_t> keys() const { return keys_; }
  /// The same without position().
  std::span<const uint64_t> earlier() const { return keys().first(moves_.size()); }
  GameResult result() const { return game_result(position_, earlier()); }
  DrawClaims claims() const { return draw_claims(position_, earlier()); }

 private:
  Position start_, position_;
  std::vector<Move> moves_;
  std::vector<uint64_t> keys_;
};

}  // namespace fullbore::chess
