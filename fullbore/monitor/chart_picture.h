#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fullbore {

/// A line of a chart: (x, y) by x. Values that are not finite are left out, and the line is broken there.
struct ChartCurve {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

/// What stands beside the axes; any text.
struct ChartText {
  std::string title, x, y;
};

/// An SVG document that stands alone, without script: the curves over common axes, with a legend. Colours repeat after
/// seven curves.
std::string curves_svg(const ChartText& text, std::span<const ChartCurve> curves);

/// The same of how many values lie in each of `bars` equal ranges between the least and the largest. Values that are not
/// finite are counted in the title. `bars` is at least 1.
std::string histogram_svg(const ChartText& text, std::span<const double> values, int bars = 20);

}  // namespace fullbore
