#include "fullbore/monitor/text_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "fullbore/base/printable.h"
#include "fullbore/monitor/chart_range.h"

namespace fullbore {
namespace {

constexpr const char* kLetters = "*o+x#@%";
constexpr std::array<int, 7> kColours = {36, 33, 32, 35, 34, 31, 37};  // of ANSI escapes
constexpr int kLabel = 10;  // columns beside the area, its border included

/// The dots of a character, from above and left: Unicode's "Braille Patterns" count them by columns, all but the
/// lowest row.
constexpr unsigned dot_of(int column, int row) {
  constexpr unsigned dots[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
  return dots[row][column];
}

std::string braille(unsigned dots) {
  const unsigned code = 0x2800 + dots;
  return {static_cast<char>(0xE0 | (code >> 12)), static_cast<char>(0x80 | ((code >> 6) & 0x3F)),
          static_cast<char>(0x80 | (code & 0x3F))};
}

struct Cell {
  unsigned dots = 0;
  int curve = -1;  // of the last one that is seen here
};

/// Where curves are drawn, in points: those of Braille characters, or one a character.
class Area {
 public:
  Area(int columns, int rows, bool is_braille)
      : columns_(columns),
        across_(is_braille ? 2 : 1),
        down_(is_braille ? 4 : 1),
        cells_(static_cast<size_t>(columns) * static_cast<size_t>(rows)) {}

  int points_across() const { return columns_ * across_; }
  int points_down() const { return static_cast<int>(cells_.size()) / columns_ * down_; }
  const Cell& at(int column, int row) const { return cells_[index(column, row)]; }

  /// All points between the two, one in each column or row of points.
  void line(double x0, double y0, double x1, double y1, int curve) {
    const int steps =
        std::max(1, static_cast<int>(std::ceil(std::max(std::abs(x1 - x0), std::abs(y1 - y0)))));
    for (int i = 0; i <= steps; ++i) {
      const double part = static_cast<double>(i) / steps;
      point(x0 + (x1 - x0) * part, y0 + (y1 - y0) * part, curve);
    }
  }

 private:
  size_t index(int column, int row) const {
    return static_cast<size_t>(row) * static_cast<size_t>(columns_) + static_cast<size_t>(column);
  }
  void point(double x, double y, int curve) {
    const int column = std::clamp(static_cast<int>(std::lround(x)), 0, points_across() - 1);
    const int row = std::clamp(static_cast<int>(std::lround(y)), 0, points_down() - 1);
    Cell& cell = cells_[index(column / across_, row / down_)];
    cell.dots |= dot_of(column % across_, row % down_);
    cell.curve = curve;
  }

  int columns_, across_, down_;
  std::vector<Cell> cells_;
};

void draw(Area& area, const ChartCurve& curve, int number, const ChartRange& x,
          const ChartRange& y) {
  const auto at_x = [&](double value) { return x.share(value) * (area.points_across() - 1); };
  const auto at_y = [&](double value) { return (1 - y.share(value)) * (area.points_down() - 1); };
  const std::pair<double, double>* last = nullptr;
  for (const auto& point : curve.points) {
    const bool is_finite = std::isfinite(point.first) && std::isfinite(point.second);
    if (is_finite) {
      const auto& from = last != nullptr ? *last : point;
      area.line(at_x(from.first), at_y(from.second), at_x(point.first), at_y(point.second), number);
    }
    last = is_finite ? &point : nullptr;
  }
}

std::string axis_label(double value) {
  const std::string text = fmt::format("{:.4g}", value);
  return text.size() < kLabel ? text : fmt::format("{:.3g}", value);
}

/// Not one byte of a character's more than `columns` characters.
std::string cut(const std::string& text, int columns) {
  int seen = 0;
  for (size_t i = 0; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80 && ++seen > columns)
      return text.substr(0, i);
  return text;
}

}  // namespace

std::string curves_text(const ChartText& text, std::span<const ChartCurve> curves,
                        TextChartSize size, TextStyle style) {
  const int columns = std::max(24, size.columns), rows = std::max(3, size.rows);
  const int width = columns - kLabel;
  const bool is_braille = style.unicode && (style.colour || curves.size() < 2);
  ChartRange x, y;
  for (const ChartCurve& curve : curves)
    for (const auto& [at, value] : curve.points)
      if (std::isfinite(at) && std::isfinite(value)) {
        x.take(at);
        y.take(value);
      }
  x.settle();
  y.settle();
  Area area(width, rows, is_braille);
  for (size_t i = 0; i < curves.size(); ++i) draw(area, curves[i], static_cast<int>(i), x, y);

  const auto coloured = [&](int curve, const std::string& what) {
    const int colour = kColours[static_cast<size_t>(curve) % kColours.size()];
    return style.colour ? fmt::format("\x1b[{}m{}\x1b[0m", colour, what) : what;
  };
  const char* const wall = style.unicode ? "│" : "|";
  std::string out = cut(printable_name(text.title), columns) + '\n';
  for (int row = 0; row < rows; ++row) {
    const std::string label = row == 0          ? axis_label(y.most)
                              : row == rows - 1 ? axis_label(y.least)
                              : row == rows / 2 && rows % 2 == 1
                                  ? axis_label(y.least / 2 + y.most / 2)
                                  : std::string();
    std::string line = fmt::format("{:>{}}{}", label, kLabel - 1, wall);
    int blank = 0;  // columns that have nothing so far: none at the end of a line
    for (int column = 0; column < width; ++column) {
      const Cell& cell = area.at(column, row);
      if (cell.curve < 0) {
        ++blank;
        continue;
      }
      line.append(static_cast<size_t>(blank), ' ');
      blank = 0;
      line += coloured(cell.curve,
                       is_braille ? braille(cell.dots) : std::string(1, kLetters[cell.curve % 7]));
    }
    out += line + '\n';
  }
  const std::string least = fmt::format("{:.6g}", x.least), most = fmt::format("{:.6g}", x.most);
  std::string name =
      cut(printable_name(text.x), width - 4 - static_cast<int>(least.size() + most.size()));
  const int name_columns = display_width(name);
  const int space = width - static_cast<int>(least.size() + most.size()) - name_columns;
  out += fmt::format("{:>{}}{}", "", kLabel - 1, style.unicode ? "└" : "+");
  for (int i = 0; i < width; ++i) out += style.unicode ? "─" : "-";
  out += fmt::format("\n{:>{}}{}{:>{}}{}{:>{}}{}\n", "", kLabel, least, "", space / 2, name, "",
                     space - space / 2, most);
  for (size_t i = 0; i < curves.size(); ++i) {
    const int curve = static_cast<int>(i);
    const std::string mark = !is_braille     ? std::string(1, kLetters[curve % 7])
                             : style.unicode ? "━"
                                             : "-";
    out += fmt::format("{:>{}}{} {}\n", "", kLabel, coloured(curve, mark),
                       cut(printable_name(curves[i].name), width - 2));
  }
  return out;
}

}  // namespace fullbore
