#include "workloads/chess/game.h"

#include <algorithm>

#include "workloads/chess/legal_moves.h"

namespace fullbore::chess {
namespace {

// How often the position occurs, itself included, up to `most`. It cannot occur before the last capture or pawn move,
// nor less than four half-moves ago.
int occurrences(const Position& position, std::span<const uint64_t> earlier, int most) {
  const auto reversible =
      std::min<size_t>(static_cast<size_t>(position.half_moves), earlier.size());
  if (reversible < 4) return 1;
  const uint64_t key = position_key(position);
  int found = 1;
  for (size_t back = 4; back <= reversible && found < most; back += 2)
    found += earlier[earlier.size() - back] == key ? 1 : 0;
  return found;
}

}  // namespace

const char* result_name(GameResult result) {
  switch (result) {
    case GameResult::kCheckmate: return "checkmate";
    case GameResult::kInsufficientMaterial: return "insufficient material";
    case GameResult::kStalemate: return "stalemate";
    case GameResult::kSeventyFiveMoves: return "75 moves";
    case GameResult::kFivefoldRepetition: return "fivefold repetition";
    case GameResult::kOngoing: break;
  }
  return "ongoing";
}

bool has_insufficient_material(const Position& position) {
  if ((position.of(PieceKind::kPawn) | position.of(PieceKind::kRook) |
       position.of(PieceKind::kQueen)) != 0)
    return false;
  const Bitboard bishops = position.of(PieceKind::kBishop);
  if (position.of(PieceKind::kKnight) != 0) return std::popcount(position.occupied()) == 3;
  return (bishops & kDarkSquares) == 0 || (bishops & ~kDarkSquares) == 0;
}

GameResult game_result(const Position& position, std::span<const uint64_t> earlier) {
  const bool can_move = has_legal_move(position);
  if (!can_move && in_check(position)) return GameResult::kCheckmate;
  if (has_insufficient_material(position)) return GameResult::kInsufficientMaterial;
  if (!can_move) return GameResult::kStalemate;
  if (position.half_moves >= 150) return GameResult::kSeventyFiveMoves;
  if (occurrences(position, earlier, 5) >= 5) return GameResult::kFivefoldRepetition;
  return GameResult::kOngoing;
}

DrawClaims draw_claims(const Position& position, std::span<const uint64_t> earlier) {
  return {position.half_moves >= 100 && has_legal_move(position),
          occurrences(position, earlier, 3) >= 3};
}

bool Game::play(Move move) {
  if (!is_legal(position_, move)) return false;
  make_move(position_, move);
  moves_.push_back(move);
  keys_.push_back(position_key(position_));
  return true;
}

bool Game::play(std::string_view uci) {
  const std::optional<Move> move = parse_uci_move(uci);
  return move && play(*move);
}

}  // namespace fullbore::chess
