#include "workloads/energy_flow/flow_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "fullbore/base/svg_text.h"

namespace fullbore::energy_flow {
namespace {

constexpr double kMargin = 24, kTop = 84, kPictureWidth = 1152;
constexpr double kViewHeight = 320, kSideWidth = 520, kAboveWidth = 320;
constexpr double kSecondRow = kTop + kViewHeight + 96, kMap = 208, kBarsWidth = 320;
constexpr int kShades = 20;         ///< on either side of none
constexpr int64_t kMostCells = 64;  ///< of a map's side: beyond, means of blocks

// Told apart by readers who see red and green alike. Source: Okabe, Ito 2008, "Color universal design".
constexpr const char* kStays = "#56b4e9";
constexpr const char* kLeft = "#009e73";
constexpr const char* kProjected = "#e69f00";
constexpr const char* kDead = "#333333";
constexpr const char* kSpawned = "#cc79a7";

/// From blue by white to vermilion.
std::string shade_colour(int shade) {
  constexpr std::array<double, 3> kLow = {0, 114, 178}, kHigh = {213, 94, 0};
  const double share = std::abs(shade) / static_cast<double>(kShades);
  const auto& end = shade < 0 ? kLow : kHigh;
  std::string colour = "#";
  for (const double channel : end)
    colour += fmt::format("{:02x}", std::lround(247 + (channel - 247) * share));
  return colour;
}

int shade_of(double value, double largest) {
  if (!std::isfinite(value)) return 0;
  const double share = largest > 0 ? std::clamp(value / largest, -1.0, 1.0) : 0;
  return static_cast<int>(std::lround(share * kShades));
}

double mean_square(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum / static_cast<double>(std::max<size_t>(1, a.size()));
}

/// 1, 2 or 5 times a power of ten, so that about four are in `most`.
double tick_of(double most) {
  const double raw = std::max(most / 4, 1.0);
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= raw) return factor * power;
  return 10 * power;
}

class Picture {
 public:
  Picture(const FlowHistory& history, size_t most_paths) : history_(history) {
    const size_t count = history.paths.size();
    const size_t every = count > most_paths ? (count + most_paths - 1) / most_paths : 1;
    for (size_t i = 0; i < count; i += every) shown_.push_back(&history.paths[i]);
    for (const auto* surface : {&history.input, &history.output, &history.target})
      for (const double value : *surface)
        if (std::isfinite(value)) largest_ = std::max(largest_, std::abs(value));
  }

  std::string draw(const std::string& about) {
    const double height = kSecondRow + kMap + 72;
    svg_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"system-ui, sans-serif\" font-size=\"13\" "
        "fill=\"#222\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        kPictureWidth, height);
    text(kMargin, 30, "start", "Flows through the lattice", "#222", 17);
    text(kMargin, 52, "start", about);
    side(kMargin + 40, kTop);
    above(kMargin + 40 + kSideWidth + 72, kTop);
    legend(kPictureWidth - 144, kTop);
    bars(kMargin + 40, kSecondRow);
    double x = kMargin + 40 + kBarsWidth + 48;
    const auto error = [&](const std::vector<double>& surface) {
      return fmt::format("error {:.4f}", mean_square(surface, history_.target));
    };
    map(x, "input's surface", history_.input, error(history_.input));
    map(x += kMap + 24, "what comes out", history_.output, error(history_.output));
    map(x += kMap + 24, "target's surface", history_.target, "");
    return svg_ + "</svg>\n";
  }

 private:
  void text(double x, double y, const char* anchor, const std::string& words,
            const char* fill = "#666", int size = 13) {
    svg_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\" "
        "font-size=\"{}\">{}</text>\n",
        x, y, anchor, fill, size, svg_text(words));
  }
  void line(double x1, double y1, double x2, double y2, const char* style) {
    svg_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1,
                        y1, x2, y2, style);
  }
  void rectangle(double x, double y, double width, double height, const std::string& style) {
    svg_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" {}/>\n",
                        x, y, width, height, style);
  }

  // Where a flow ended, by its fate.
  void mark(double x, double y, FlowFate fate) {
    switch (fate) {
      case FlowFate::left:
        svg_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.4\" fill=\"{}\"/>\n", x, y,
                            kLeft);
        break;
      case FlowFate::projected:
        svg_ += fmt::format(
            "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.2\" fill=\"none\" stroke=\"{}\"/>\n", x, y,
            kProjected);
        break;
      case FlowFate::stayed:
        rectangle(x - 2, y - 2, 4, 4, fmt::format("fill=\"none\" stroke=\"{}\"", kStays));
        break;
      case FlowFate::died:
        svg_ += fmt::format("<path d=\"M{:.1f} {:.1f}l5 5m0-5l-5 5\" stroke=\"{}\"/>\n", x - 2.5,
                            y - 2.5, kDead);
        break;
    }
  }

  // The shown ways: place -> point of the page. A flow's line has the colour of its energy at the end; a child's is dashed.
  template <class Point>
  void ways(const Point& point) {
    for (const FlowPath* path : shown_) {
      std::string points;
      for (const std::array<double, 3>& place : path->places) {
        const auto [x, y] = point(place);
        points += fmt::format("{:.1f},{:.1f} ", x, y);
      }
      points.pop_back();
      svg_ += fmt::format(
          "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-opacity=\"0.8\"{}/>\n",
          points, line_colour(path->energies.back()),
          path->born > 0 ? " stroke-dasharray=\"3 2\"" : "");
    }
    for (const FlowPath* path : shown_) {
      const auto [x, y] = point(path->places.back());
      mark(x, y, path->fate);
    }
  }
  // Lines in the palest shades would not be seen.
  static std::string line_colour(double energy) {
    const int shade = shade_of(energy, 1);
    const int least = kShades / 3;
    return shade_colour(shade < 0 ? std::min(shade, -least) : std::max(shade, least));
  }

  void side(double left, double top) {
    const auto depth = static_cast<double>(history_.depth);
    const double last_plane = history_.mode == FlowMode::absolute ? depth - 1 : depth;
    const double cells = std::max<double>(1, static_cast<double>(history_.width - 1));
    const auto x = [&](double z) { return left + std::min(z, depth) / depth * kSideWidth; };
    const auto y = [&](double cell) { return top + (1 - cell / cells) * kViewHeight; };
    rectangle(left, top, kSideWidth, kViewHeight, "fill=\"#fafafa\"");
    const char* const plane = "stroke=\"#009e73\" stroke-width=\"2\"";
    if (history_.mode == FlowMode::relative) line(x(0), top, x(0), top + kViewHeight, plane);
    line(x(last_plane), top, x(last_plane), top + kViewHeight, plane);
    const double start = history_.mode == FlowMode::absolute ? 0 : std::floor(depth / 2);
    line(x(start), top, x(start), top + kViewHeight, "stroke=\"#999\" stroke-dasharray=\"4 3\"");
    text(x(start), top - 6, start > 0 ? "middle" : "start", "start");
    for (const double each : {0.0, last_plane})
      text(x(each), top + kViewHeight + 18, "middle", fmt::format("{:.0f}", each));
    text(left + kSideWidth / 2, top + kViewHeight + 18, "middle", "plane z");
    text(left - 8, y(0) + 4, "end", "0");
    text(left - 8, y(cells) + 4, "end", fmt::format("{:.0f}", cells));
    text(left - 8, top + kViewHeight / 2, "end", "x");
    ways([&](const std::array<double, 3>& place) { return std::pair(x(place[2]), y(place[0])); });
    text(left, top + kViewHeight + 40, "start",
         fmt::format("from the side: {} of {} flows, {} step{}", shown_.size(),
                     history_.paths.size(), history_.steps, history_.steps == 1 ? "" : "s"),
         "#222");
  }

  void above(double left, double top) {
    const auto extent = [](int64_t cells) {
      return std::max<double>(1, static_cast<double>(cells - 1));
    };
    const double scale =
        std::min(kAboveWidth / extent(history_.width), kViewHeight / extent(history_.height));
    const double width = scale * extent(history_.width), height = scale * extent(history_.height);
    rectangle(left, top, width, height, "fill=\"#fafafa\"");
    ways([&](const std::array<double, 3>& place) {
      return std::pair(left + scale * place[0], top + scale * place[1]);
    });
    text(left + width / 2, top + height + 18, "middle", "x");
    text(left - 8, top + height / 2, "end", "y");
    text(left, top + kViewHeight + 40, "start", "along z: cells of the surface", "#222");
  }

  void legend(double left, double top) {
    const std::array<std::pair<FlowFate, const char*>, 4> marks = {
        {{FlowFate::left, "left"},
         {FlowFate::projected, "projected"},
         {FlowFate::died, "died"},
         {FlowFate::stayed, "active at the end"}}};
    double y = top + 6;
    for (const auto& [fate, name] : marks) {
      mark(left, y, fate);
      text(left + 12, y + 4, "start", name);
      y += 20;
    }
    line(left - 6, y, left + 6, y, "stroke=\"#666\" stroke-dasharray=\"3 2\"");
    text(left + 12, y + 4, "start", "spawned");
    y += 28;
    text(left - 6, y, "start", "energy");
    for (int shade = -kShades; shade <= kShades; shade += 2)
      rectangle(left - 6 + 2.5 * (shade + kShades), y + 8, 5.2, 10,
                fmt::format("fill=\"{}\"", shade_colour(shade)));
    text(left - 6, y + 32, "start", "-1", "#666", 11);
    text(left + 99, y + 32, "end", "1", "#666", 11);
  }

  // A bar for each step: what became of the flows that it began with, and those that it added.
  void bars(double left, double top) {
    const auto count = [](const std::vector<int64_t>& step, FlowCount which) {
      return static_cast<double>(step[static_cast<size_t>(which)]);
    };
    double most = 1;
    for (const auto& step : history_.by_step)
      most = std::max(most, count(step, FlowCount::in) + count(step, FlowCount::made));
    const auto y = [&](double flows) { return top + kMap - flows / most * kMap; };
    for (double tick = 0; tick <= most; tick += tick_of(most)) {
      line(left, y(tick), left + kBarsWidth, y(tick), "stroke=\"#e5e5e5\"");
      text(left - 6, y(tick) + 4, "end", fmt::format("{:.0f}", tick), "#666", 11);
    }
    const double pitch =
        kBarsWidth / std::max<double>(1, static_cast<double>(history_.by_step.size()));
    const double width = std::min(0.75 * pitch, 40.0);
    for (size_t i = 0; i < history_.by_step.size(); ++i) {
      const std::vector<int64_t>& step = history_.by_step[i];
      double dead = 0;
      for (size_t cause = 0; cause < history_.causes.size(); ++cause)
        dead += static_cast<double>(step[static_cast<size_t>(FlowCount::dead) + cause]);
      const double left_by = count(step, FlowCount::exits),
                   projected = count(step, FlowCount::projected);
      const double x = left + pitch * (static_cast<double>(i) + 0.5) - width / 2;
      double below = 0;
      const auto part = [&](double flows, const char* colour, const char* name) {
        if (flows <= 0) return;
        svg_ += fmt::format(
            "<rect x=\"{:.1f}\" y=\"{:.2f}\" width=\"{:.1f}\" height=\"{:.2f}\" fill=\"{}\">"
            "<title>step {}: {:.0f} {}</title></rect>\n",
            x, y(below + flows), width, flows / most * kMap, colour, i + 1, flows, name);
        below += flows;
      };
      part(count(step, FlowCount::in) - left_by - projected - dead, kStays, "stay");
      part(left_by, kLeft, "leave");
      part(projected, kProjected, "are projected");
      part(dead, kDead, "die");
      part(count(step, FlowCount::made), kSpawned, "are spawned");
      if (history_.by_step.size() <= 20 || i % 5 == 4)
        text(x + width / 2, top + kMap + 18, "middle", fmt::format("{}", i + 1), "#666", 11);
    }
    text(left, top - 26, "start", "flows in each step", "#222");
    double x = left;
    for (const auto& [colour, name] :
         std::array<std::pair<const char*, const char*>, 5>{{{kStays, "stay"},
                                                             {kLeft, "leave"},
                                                             {kProjected, "projected"},
                                                             {kDead, "die"},
                                                             {kSpawned, "spawned"}}}) {
      rectangle(x, top - 18, 9, 9, fmt::format("fill=\"{}\"", colour));
      text(x + 12, top - 9, "start", name, "#666", 11);
      x += 20 + 6.2 * static_cast<double>(std::string_view(name).size());
    }
    text(left, top + kMap + 40, "start",
         fmt::format("{} dropped for want of room, {} projected when steps ended", history_.dropped,
                     history_.projected_on_stop),
         "#666", 11);
  }

  // One path for all cells of a shade.
  void map(double left, const char* name, const std::vector<double>& surface,
           const std::string& below) {
    const int64_t block = std::max<int64_t>(
        1, (std::max(history_.width, history_.height) + kMostCells - 1) / kMostCells);
    const int64_t columns = (history_.width + block - 1) / block,
                  rows = (history_.height + block - 1) / block;
    std::array<std::string, 2 * kShades + 1> cells;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column)
        cells[static_cast<size_t>(
            shade_of(block_mean(surface, row * block, column * block, block), largest_) +
            kShades)] += fmt::format("M{} {}h1v1h-1z", column, row);
    text(left, kSecondRow - 8, "start", name, "#222");
    const double scale = kMap / static_cast<double>(std::max(columns, rows));
    svg_ += fmt::format(
        "<g transform=\"translate({:.1f} {:.1f}) scale({:.4f})\" shape-rendering=\"crispEdges\">\n",
        left, kSecondRow, scale);
    for (int shade = -kShades; shade <= kShades; ++shade)
      if (const std::string& path = cells[static_cast<size_t>(shade + kShades)]; !path.empty())
        svg_ += fmt::format("<path fill=\"{}\" d=\"{}\"/>\n", shade_colour(shade), path);
    svg_ += "</g>\n";
    if (!below.empty()) text(left, kSecondRow + kMap + 18, "start", below);
  }
  double block_mean(const std::vector<double>& surface, int64_t row, int64_t column,
                    int64_t block) const {
    double sum = 0;
    int64_t count = 0;
    for (int64_t y = row; y < std::min(row + block, history_.height); ++y)
      for (int64_t x = column; x < std::min(column + block, history_.width); ++x, ++count)
        sum += surface[static_cast<size_t>(y * history_.width + x)];
    return sum / static_cast<double>(count);
  }

  const FlowHistory& history_;
  std::vector<const FlowPath*> shown_;
  double largest_ = 0;  ///< of all surfaces
  std::string svg_;
};

}  // namespace

std::string flow_picture_svg(const FlowHistory& history, const std::string& about,
                             size_t most_paths) {
  return Picture(history, most_paths).draw(about);
}

}  // namespace fullbore::energy_flow
