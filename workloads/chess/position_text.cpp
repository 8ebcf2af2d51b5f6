#include "workloads/chess/position_text.h"

#include <fmt/format.h>

namespace fullbore::chess {

char piece_letter(const Position& position, Square square) {
  const PieceKind kind = position.board[square];
  if (kind == PieceKind::kNone) return '.';
  const bool white = (position.of(Side::kWhite) & bit_of(square)) != 0;
  return (white ? "PNBRQK" : "pnbrqk")[index_of(kind)];
}

std::string board_text(const Position& position) {
  std::string text;
  for (int rank = 7; rank >= 0; --rank) {
    text += fmt::format("{} ", rank + 1);
    for (int file = 0; file < 8; ++file)
      text += fmt::format(" {}", piece_letter(position, square_at(file, rank)));
    text += '\n';
  }
  return text + "   a b c d e f g h\n";
}

}  // namespace fullbore::chess
