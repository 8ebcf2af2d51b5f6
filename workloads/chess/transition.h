#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "workloads/chess/fen.h"
#include "workloads/chess/game.h"

namespace fullbore::chess {

/// What an environment of chess answers to a move.
struct Transition {
  Position position;  ///< after the move; before it if it is illegal
  double reward = 0;  ///< of the mover: 1 mates, 0.5 draw, 0.001 the game goes on, -1 illegal move
  bool terminated =
      false;  ///< checkmate, stalemate, insufficient material, 75 moves or fivefold repetition; no claims
  bool truncated = false;  ///< the move was illegal
  GameResult result = GameResult::kOngoing;
};

/// `move`: any text; one that is no legal move in UCI notation is an illegal move. `keys`: position_key() of the
/// positions of the game up to `position`, which is the last (Game::keys()), for the fivefold repetition. Ten moves
/// cannot show one, since five occurrences are at least 16 half-moves apart: records with so short a history need none.
/// Never throws.
Transition transition(const Position& position, std::string_view move,
                      std::span<const uint64_t> keys = {}) noexcept;

/// "FEN+reward+terminated+truncated", such as "... b KQkq - 0 1+0.001+0+0"; an illegal move has `illegal_reward`.
std::string transition_text(const Transition& transition,
                            EnPassantField field = EnPassantField::kLegal,
                            double illegal_reward = -1.0);

}  // namespace fullbore::chess
