#pragma once
#include <string>
#include <vector>

#include "fullbore/monitor/progress.h"

namespace fullbore::long_context {

/// Shares over lengths and depths, to be looked at.
struct HeatMap {
  std::string title;
  std::string subtitle;
  std::vector<std::string> columns;  ///< names of the lengths
  std::vector<std::string> rows;     ///< names of the depths
  struct Cell {
    double share = -1;  ///< 0 to 1; negative: not measured
    std::string note;   ///< "7 of 10, 0.40 to 0.89"
  };
  std::vector<Cell> cells;  ///< [rows, columns]
};

/// For a terminal: per cent, on cells of colour where it has any.
std::string heat_map_text(const HeatMap& map, TextStyle style);
/// An SVG document that stands alone, without script; each cell tells its note under the pointer.
std::string heat_map_svg(const HeatMap& map);

}  // namespace fullbore::long_context
