#pragma once
#include <span>
#include <string>

#include "fullbore/monitor/chart_picture.h"
#include "fullbore/monitor/progress.h"

namespace fullbore {

struct TextChartSize {
  int columns = 80;  ///< of the whole chart, axes included; at least 24
  int rows = 16;     ///< of the area of the curves; at least 3
};

/// The curves in characters, for a terminal: `text.title` above, then the area with the least and the largest values
/// beside it, then those of x, then what the curves are called. By the terminal's style: Braille dots, two by four in
/// a character, in colours; where curves could not be told apart by colour, or there is no Unicode, each has a letter
/// of its own, and the last one stands where several meet. Lines end with a line feed. Names are anybody's: control characters of them are
/// escaped. Values that are not finite are left out.
std::string curves_text(const ChartText& text, std::span<const ChartCurve> curves,
                        TextChartSize size = {}, TextStyle style = {});

}  // namespace fullbore
