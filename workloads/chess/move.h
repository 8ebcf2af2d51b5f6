#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "workloads/chess/board.h"

namespace fullbore::chess {

/// From one square to another. Castling is the king's step of two files (e1g1); an en passant capture goes to the
/// square behind the pawn.
struct Move {
  Square from = 0;
  Square to = 0;
  PieceKind promotion = PieceKind::kNone;  ///< a knight, bishop, rook or queen, or kNone

  bool operator==(const Move&) const = default;
};

/// Text in UCI's long algebraic notation, such as "e2e4" or "e7e8q": [a-h][1-8][a-h][1-8][qrbn]? and nothing else.
/// Empty for any other text; whether the move is legal somewhere is not asked. Never throws.
std::optional<Move> parse_uci_move(std::string_view text) noexcept;

/// "e2e4", "e1g1", "e7e8q".
std::string uci_text(Move move);
/// The same in the first 4 or 5 of `out`; how many.
int write_uci_move(Move move, char* out) noexcept;

/// "e4" as a square; kNoSquare for any other text.
Square parse_square(std::string_view text) noexcept;
std::string square_text(Square square);

}  // namespace fullbore::chess
