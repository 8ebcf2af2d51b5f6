#pragma once
#include <string>

#include "workloads/chess/position.h"

namespace fullbore::chess {

/// The board as eight lines of text, rank 8 first, with ranks and files: "8  r n b q k b n r". Capitals are White's
/// pieces, a dot is an empty square.
std::string board_text(const Position& position);

/// The letter of a piece, "PNBRQK" or "pnbrqk"; '.' for an empty square.
char piece_letter(const Position& position, Square square);

}  // namespace fullbore::chess
