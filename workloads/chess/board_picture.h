#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "workloads/chess/position.h"

namespace fullbore::chess {

/// An arrow from square to square.
struct BoardArrow {
  Move move;
  std::string colour = "#009e73";  ///< as SVG has it
};

struct BoardDrawing {
  Position position;
  std::vector<BoardArrow> arrows = {};
  std::string caption = {};  ///< below the board; any text
  Side below = Side::kWhite;
};

/// An SVG document that stands alone, without script or fonts of pieces: boards side by side, `columns` in a row, with
/// ranks, files and the king in check marked; each has its FEN as its title. A text of the same: board_text().
std::string boards_svg(std::span<const BoardDrawing> boards, int columns = 1);

}  // namespace fullbore::chess
