#include "workloads/long_context/usable_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "fullbore/base/check.h"
#include "fullbore/base/svg_text.h"

namespace fullbore::long_context {
namespace {

// Told apart by readers who see red and green alike. Source: Okabe, Ito 2008, "Color universal design".
constexpr std::array<const char*, 7> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                 "#e69f00", "#56b4e9", "#333333"};
constexpr std::array<const char*, 3> kDashes = {"", "7 4", "2 3"};  // beyond seven models

constexpr double kLeft = 64, kTop = 72, kPlotWidth = 560, kPlotHeight = 280;
constexpr double kLegendRow = 22;

std::string length_label(double tokens) {
  const auto whole = static_cast<int64_t>(std::llround(tokens));
  return whole % 1024 == 0 ? fmt::format("{}K", whole / 1024) : fmt::format("{}", whole);
}

class Chart {
 public:
  Chart(const std::vector<AccuracyCurve>& curves, double threshold)
      : curves_(curves), threshold_(threshold) {
    for (const AccuracyCurve& curve : curves) {
      FB_CHECK(!curve.accuracies.empty(), "no accuracies of {}", curve.name);
      for (const LengthAccuracy& each : curve.accuracies) lengths_.insert(each.length);
    }
    low_ = std::log(static_cast<double>(*lengths_.begin()));
    high_ = std::log(static_cast<double>(*lengths_.rbegin()));
  }

  std::string draw() {
    size_t longest = 0;
    for (const AccuracyCurve& curve : curves_) longest = std::max(longest, curve.name.size());
    const double width =
        std::max(kLeft + kPlotWidth + 32, 300 + 8.0 * static_cast<double>(longest));
    const double height =
        kTop + kPlotHeight + 72 + kLegendRow * static_cast<double>(curves_.size());
    svg_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"system-ui, sans-serif\" font-size=\"13\" "
        "fill=\"#222\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
        "<text x=\"16\" y=\"28\" font-size=\"17\" font-weight=\"600\">Usable length</text>\n"
        "<text x=\"16\" y=\"50\" fill=\"#666\">where accuracy falls below {2:.4g} %, interpolated "
        "on the logarithm of the length</text>\n",
        width, height, 100 * threshold_);
    axes();
    for (size_t i = 0; i < curves_.size(); ++i) curve(i);
    return svg_ + "</svg>\n";
  }

 private:
  double x(double length) const {
    // A single length stands in the middle.
    return high_ > low_ ? kLeft + (std::log(length) - low_) / (high_ - low_) * kPlotWidth
                        : kLeft + kPlotWidth / 2;
  }
  static double y(double accuracy) { return kTop + (1 - accuracy) * kPlotHeight; }

  void line(double x1, double y1, double x2, double y2, const std::string& style) {
    svg_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1,
                        y1, x2, y2, style);
  }
  void text(double at_x, double at_y, const std::string& anchor, const std::string& words,
            const std::string& fill = "#666") {
    svg_ +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\">{}</text>\n",
                    at_x, at_y, anchor, fill, svg_text(words));
  }

  void axes() {
    for (int percent = 0; percent <= 100; percent += 20) {
      line(kLeft, y(percent / 100.0), kLeft + kPlotWidth, y(percent / 100.0), "stroke=\"#e5e5e5\"");
      text(kLeft - 8, y(percent / 100.0) + 4, "end", fmt::format("{} %", percent));
    }
    // Lengths that lie too close to the one before go without a name.
    double taken = -1e9;
    for (const int64_t length : lengths_) {
      const double at = x(static_cast<double>(length));
      line(at, kTop + kPlotHeight, at, kTop + kPlotHeight + 5, "stroke=\"#999\"");
      if (at - taken < 40) continue;
      text(at, kTop + kPlotHeight + 20, "middle", length_label(static_cast<double>(length)));
      taken = at;
    }
    text(kLeft + kPlotWidth / 2, kTop + kPlotHeight + 40, "middle", "tokens");
    line(kLeft, y(threshold_), kLeft + kPlotWidth, y(threshold_),
         "stroke=\"#222\" stroke-dasharray=\"6 4\"");
    text(kLeft + kPlotWidth - 4, y(threshold_) - 6, "end",
         fmt::format("threshold {:.4g} %", 100 * threshold_), "#222");
  }

  void curve(size_t number) {
    const AccuracyCurve& curve = curves_[number];
    const std::string colour = kColours[number % kColours.size()];
    const std::string dash = kDashes[number / kColours.size() % kDashes.size()];
    const std::string stroke =
        fmt::format("stroke=\"{}\" stroke-width=\"2\" fill=\"none\"{}", colour,
                    dash.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", dash));
    std::string points;
    for (const LengthAccuracy& each : curve.accuracies)
      points +=
          fmt::format("{:.1f},{:.1f} ", x(static_cast<double>(each.length)), y(each.accuracy));
    svg_ += fmt::format("<polyline points=\"{}\" {}/>\n", points, stroke);
    for (const LengthAccuracy& each : curve.accuracies)
      svg_ += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\"><title>{}: {} tokens, {:.1f} "
          "%</title></circle>\n",
          x(static_cast<double>(each.length)), y(each.accuracy), colour, svg_text(curve.name),
          each.length, 100 * each.accuracy);
    const UsableLength usable = usable_length(curve.accuracies, threshold_);
    std::string words = "0: below it at the shortest";
    if (usable.length > 0) {
      words = fmt::format("{}{:.0f} tokens", usable.at_least ? "at least " : "", usable.length);
      if (!usable.at_least)
        line(x(usable.length), y(threshold_), x(usable.length), kTop + kPlotHeight,
             fmt::format("stroke=\"{}\" stroke-dasharray=\"2 3\"", colour));
    }
    const double at = kTop + kPlotHeight + 64 + kLegendRow * static_cast<double>(number);
    line(kLeft, at - 4, kLeft + 24, at - 4, stroke);
    text(kLeft + 34, at, "start", fmt::format("{}: {}", curve.name, words), "#222");
  }

  const std::vector<AccuracyCurve>& curves_;
  double threshold_;
  std::set<int64_t> lengths_;
  double low_ = 0, high_ = 0;
  std::string svg_;
};

}  // namespace

std::string usable_length_svg(const std::vector<AccuracyCurve>& curves, double threshold) {
  FB_CHECK(!curves.empty(), "no curves");
  return Chart(curves, threshold).draw();
}

}  // namespace fullbore::long_context
