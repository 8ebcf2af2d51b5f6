#include "fullbore/monitor/chart_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "fullbore/base/svg_text.h"
#include "fullbore/monitor/chart_range.h"

namespace fullbore {
namespace {

constexpr double kWidth = 720, kHeight = 400, kLeft = 64, kRight = 160, kTop = 44, kBottom = 52;
// Told apart by readers who see red and green alike. Source: Okabe, Ito 2008, "Color universal design".
constexpr std::array<const char*, 7> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                 "#e69f00", "#56b4e9", "#333333"};

class Chart {
 public:
  Chart(const ChartText& text, ChartRange x, ChartRange y) : x_(x), y_(y) {
    x_.settle();
    y_.settle();
    svg_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"system-ui, sans-serif\" font-size=\"12\" "
        "fill=\"#222\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        kWidth, kHeight);
    words(kLeft, 20, "start", text.title, "#222");
    words(kLeft, kTop - 8, "start", text.y);
    words((kLeft + kWidth - kRight) / 2, kHeight - 12, "middle", text.x);
    ticks();
  }

  double x(double value) const { return kLeft + x_.share(value) * (kWidth - kRight - kLeft); }
  double y(double value) const {
    return kHeight - kBottom - y_.share(value) * (kHeight - kBottom - kTop);
  }
  double floor() const { return kHeight - kBottom; }
  void add(const std::string& element) { svg_ += element + '\n'; }
  void words(double at_x, double at_y, const char* anchor, const std::string& text,
             const char* fill = "#666") {
    add(fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\">{}</text>",
                    at_x, at_y, anchor, fill, svg_text(text)));
  }
  std::string document() const { return svg_ + "</svg>\n"; }

 private:
  void ticks() {
    const auto each = [](const ChartRange& range, const auto& draw) {
      const double tick = range.tick();
      const double first = std::ceil(range.least / tick);
      for (int i = 0; i < 12; ++i) {
        const double value = (first + i) * tick;
        if (!std::isfinite(value) || value > range.most) return;
        draw(value, fmt::format("{:.6g}", value));
      }
    };
    each(y_, [&](double value, const std::string& label) {
      add(fmt::format("<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#ddd\"/>",
                      kLeft, kWidth - kRight, y(value), y(value)));
      words(kLeft - 8, y(value) + 4, "end", label);
    });
    each(x_, [&](double value, const std::string& label) {
      words(x(value), floor() + 18, "middle", label);
    });
    add(fmt::format("<path d=\"M{} {}V{}H{}\" fill=\"none\" stroke=\"#999\"/>", kLeft, kTop,
                    floor(), kWidth - kRight));
  }

  ChartRange x_, y_;
  std::string svg_;
};

}  // namespace

std::string curves_svg(const ChartText& text, std::span<const ChartCurve> curves) {
  ChartRange x, y;
  for (const ChartCurve& curve : curves)
    for (const auto& [at, value] : curve.points)
      if (std::isfinite(at) && std::isfinite(value)) {
        x.take(at);
        y.take(value);
      }
  Chart chart(text, x, y);
  for (size_t i = 0; i < curves.size(); ++i) {
    const char* const colour = kColours[i % kColours.size()];
    std::string path;
    bool broken = true;
    for (const auto& [at, value] : curves[i].points) {
      if (std::isfinite(at) && std::isfinite(value))
        path += fmt::format("{}{:.1f} {:.1f}{}", broken ? 'M' : 'L', chart.x(at), chart.y(value),
                            broken ? "h0" : "");  // a point alone is a dot, by the round cap
      broken = !(std::isfinite(at) && std::isfinite(value));
    }
    if (!path.empty())
      chart.add(
          fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" "
                      "stroke-linecap=\"round\"/>",
                      path, colour));
    chart.words(kWidth - kRight + 10, kTop + 12 + 17 * static_cast<double>(i), "start",
                curves[i].name, colour);
  }
  return chart.document();
}

std::string histogram_svg(const ChartText& text, std::span<const double> values, int bars) {
  ChartRange x;
  int64_t left_out = 0;
  for (const double value : values) {
    x.take(value);
    left_out += std::isfinite(value) ? 0 : 1;
  }
  x.settle();
  std::vector<int64_t> counts(static_cast<size_t>(bars));
  for (const double value : values)
    if (std::isfinite(value))
      ++counts[static_cast<size_t>(std::min(bars - 1, static_cast<int>(x.share(value) * bars)))];
  ChartRange y;
  y.take(0);
  for (const int64_t count : counts) y.take(static_cast<double>(count));
  ChartText named = text;
  if (left_out > 0) named.title += fmt::format(" ({} not finite)", left_out);
  Chart chart(named, x, y);
  for (int i = 0; i < bars; ++i) {
    const int64_t count = counts[static_cast<size_t>(i)];
    const auto edge = [&](int at) {
      const double share = static_cast<double>(at) / bars;
      return x.least * (1 - share) + x.most * share;
    };
    const double left = chart.x(edge(i)), right = chart.x(edge(i + 1));
    const double top = chart.y(static_cast<double>(count));
    chart.add(
        fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
                    "fill=\"{}\"><title>{:.4g} to {:.4g}: {}</title></rect>",
                    left + 0.5, top, std::max(0.5, right - left - 1), chart.floor() - top,
                    kColours[0], edge(i), edge(i + 1), count));
  }
  return chart.document();
}

}  // namespace fullbore
