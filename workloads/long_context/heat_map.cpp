#include "workloads/long_context/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "fullbore/base/check.h"
#include "fullbore/base/svg_text.h"

namespace fullbore::long_context {
namespace {

struct Colour {
  int red;
  int green;
  int blue;
};

// From nothing to all: orange-red, pale yellow, blue. Told apart by readers who see red and green alike.
constexpr std::array<Colour, 5> kRamp = {
    {{215, 48, 39}, {252, 141, 89}, {254, 224, 144}, {145, 191, 219}, {69, 117, 180}}};

Colour colour_of(double share) {
  const double place = std::clamp(share, 0.0, 1.0) * (kRamp.size() - 1);
  const size_t from = std::min(static_cast<size_t>(place), kRamp.size() - 2);
  const double part = place - static_cast<double>(from);
  const auto mixed = [&](int Colour::*channel) {
    const double low = kRamp[from].*channel;
    return static_cast<int>(std::lround(low + part * (kRamp[from + 1].*channel - low)));
  };
  return {mixed(&Colour::red), mixed(&Colour::green), mixed(&Colour::blue)};
}

/// Is black to be read on it?
bool is_light(const Colour& colour) {
  return 0.299 * colour.red + 0.587 * colour.green + 0.114 * colour.blue > 140;
}

std::string percent(double share) { return share < 0 ? "-" : fmt::format("{:.0f}", 100 * share); }

size_t widest(const std::vector<std::string>& names) {
  size_t most = 0;
  for (const std::string& name : names) most = std::max(most, name.size());
  return most;
}

std::string cell_text(const HeatMap::Cell& cell, size_t width, TextStyle style) {
  std::string number = fmt::format("{:^{}}", percent(cell.share), width);
  if (!style.colour || cell.share < 0) return number;
  const Colour colour = colour_of(cell.share);
  return fmt::format("\x1b[48;2;{};{};{}m\x1b[38;5;{}m{}\x1b[0m", colour.red, colour.green,
                     colour.blue, is_light(colour) ? 16 : 231, number);
}

}  // namespace

std::string heat_map_text(const HeatMap& map, TextStyle style) {
  FB_CHECK(map.cells.size() == map.rows.size() * map.columns.size(), "{} cells", map.cells.size());
  const size_t margin = std::max<size_t>(widest(map.rows), 5);
  const size_t width = std::max<size_t>(widest(map.columns) + 2, 6);
  std::string text = map.title + "\n";
  if (!map.subtitle.empty()) text += map.subtitle + "\n";
  text += fmt::format("{:>{}} ", "depth", margin);
  for (const std::string& column : map.columns) text += fmt::format("{:^{}}", column, width);
  text += "  tokens; per cent found\n";
  for (size_t row = 0; row < map.rows.size(); ++row) {
    text += fmt::format("{:>{}} ", map.rows[row], margin);
    for (size_t column = 0; column < map.columns.size(); ++column)
      text += cell_text(map.cells[row * map.columns.size() + column], width, style);
    while (text.ends_with(' ')) text.pop_back();
    text += '\n';
  }
  return text;
}

std::string heat_map_svg(const HeatMap& map) {
  FB_CHECK(map.cells.size() == map.rows.size() * map.columns.size(), "{} cells", map.cells.size());
  constexpr size_t kCellWidth = 72;
  constexpr size_t kCellHeight = 36;
  constexpr size_t kTop = 104;
  const size_t left = 40 + 8 * std::max<size_t>(widest(map.rows), 5);
  const size_t grid_width = kCellWidth * map.columns.size();
  const size_t grid_height = kCellHeight * map.rows.size();
  // Letters of the widest common fonts, bold of 17 pixels and plain of 13.
  const size_t titles = std::max(12 * map.title.size(), 9 * map.subtitle.size()) + 32;
  const size_t width = std::max({left + grid_width + 32, titles, size_t{360}});
  const size_t height = kTop + grid_height + 88;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" "
      "font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"#222\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
      "<text x=\"16\" y=\"28\" font-size=\"17\" font-weight=\"600\">{2}</text>\n"
      "<text x=\"16\" y=\"50\" fill=\"#666\">{3}</text>\n",
      width, height, svg_text(map.title), svg_text(map.subtitle));
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#666\">depth</text>\n",
                     left - 10, kTop - 10);
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#666\">tokens</text>\n",
                     left + grid_width / 2, kTop - 28);
  for (size_t column = 0; column < map.columns.size(); ++column)
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                       left + column * kCellWidth + kCellWidth / 2, kTop - 10,
                       svg_text(map.columns[column]));
  for (size_t row = 0; row < map.rows.size(); ++row) {
    const size_t y = kTop + row * kCellHeight;
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", left - 10,
                       y + kCellHeight / 2 + 5, svg_text(map.rows[row]));
    for (size_t column = 0; column < map.columns.size(); ++column) {
      const HeatMap::Cell& cell = map.cells[row * map.columns.size() + column];
      const size_t x = left + column * kCellWidth;
      const bool measured = cell.share >= 0;
      const Colour colour = measured ? colour_of(cell.share) : Colour{238, 238, 238};
      svg += fmt::format(
          "<g><title>{}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" "
          "fill=\"#{:02x}{:02x}{:02x}\" stroke=\"#fff\"/>"
          "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"{}\">{}</text></g>\n",
          svg_text(cell.note), x, y, kCellWidth, kCellHeight, colour.red, colour.green, colour.blue,
          x + kCellWidth / 2, y + kCellHeight / 2 + 5, is_light(colour) ? "#111" : "#fff",
          percent(cell.share));
    }
  }
  // The key: what the colours mean.
  const size_t key = kTop + grid_height + 28;
  constexpr size_t kSteps = 21;
  for (size_t step = 0; step < kSteps; ++step) {
    const Colour colour = colour_of(static_cast<double>(step) / (kSteps - 1));
    svg += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"10\" height=\"12\" fill=\"#{:02x}{:02x}{:02x}\"/>\n",
        left + step * 10, key, colour.red, colour.green, colour.blue);
  }
  svg += fmt::format(
      "<text x=\"{}\" y=\"{}\" fill=\"#666\">0 %</text><text x=\"{}\" y=\"{}\" fill=\"#666\" "
      "text-anchor=\"end\">100 % found</text>\n</svg>\n",
      left, key + 30, left + kSteps * 10, key + 30);
  return svg;
}

}  // namespace fullbore::long_context
