#pragma once
#include "workloads/chess/board.h"

namespace fullbore::chess {

/// The outline of a piece within 100 by 100, y downwards, as the path data of SVG; drawn for this program.
const char* piece_outline(PieceKind kind);
/// Lines within it that are drawn in the other colour; "" for none.
const char* piece_details(PieceKind kind);

}  // namespace fullbore::chess
