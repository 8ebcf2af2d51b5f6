#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "workloads/latentwire/latent_report.h"

namespace fullbore::latentwire {
namespace {

constexpr double kWidth = 640, kHeight = 360, kLeft = 56, kRight = 150, kTop = 24, kBottom = 48;
constexpr std::array<const char*, 4> kColors = {"#1f6feb", "#d1562b", "#2a8c4a", "#7d4fb3"};

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='{}'>{}</text>\n", x, y, anchor,
                     text);
}

}  // namespace

std::string report_svg(const LatentReport& report) {
  double most = 1;
  for (const LatentReport::OfReceiver& each : report.receivers)
    for (const BitsResult& bits : each.bits) most = std::max(most, static_cast<double>(bits.bytes));
  const double right = kWidth - kRight, bottom = kHeight - kBottom;
  const auto x_of = [&](double bytes) { return kLeft + bytes / most * (right - kLeft); };
  const auto y_of = [&](double f1) { return bottom - f1 * (bottom - kTop); };
  std::string svg = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0} {1}' width='{0}' height='{1}' "
      "font-family='sans-serif' font-size='12'>\n<rect width='{0}' height='{1}' fill='white'/>\n",
      kWidth, kHeight);
  for (int i = 0; i <= 5; ++i) {
    const double f1 = i / 5.0;
    svg += fmt::format("<line x1='{}' x2='{}' y1='{:.1f}' y2='{:.1f}' stroke='#ddd'/>\n", kLeft,
                       right, y_of(f1), y_of(f1));
    svg += text_at(kLeft - 6, y_of(f1) + 4, "end", fmt::format("{:.1f}", f1));
  }
  for (int i = 0; i <= 4; ++i)
    svg += text_at(x_of(most * i / 4), bottom + 18, "middle", fmt::format("{:.0f}", most * i / 4));
  svg += text_at((kLeft + right) / 2, kHeight - 10, "middle", "bytes of a prompt's wire");
  svg += text_at(kLeft, kTop - 8, "start", "F1");
  size_t line = 0;
  for (size_t i = 0; i < report.receivers.size(); ++i) {
    const LatentReport::OfReceiver& receiver = report.receivers[i];
    const char* const color = kColors[i % kColors.size()];
    std::string points;
    for (const BitsResult& bits : receiver.bits) {
      const double x = x_of(static_cast<double>(bits.bytes)), y = y_of(bits.f1);
      points += fmt::format("{:.1f},{:.1f} ", x, y);
      svg += fmt::format(
          "<circle cx='{:.1f}' cy='{:.1f}' r='4' fill='{}'><title>{} bits: "
          "{:.3f}</title></circle>\n",
          x, y, color, bits.bits, bits.f1);
    }
    svg += fmt::format("<polyline points='{}' fill='none' stroke='{}' stroke-width='2'/>\n", points,
                       color);
    if (i > 0) ++line;
    // Names of receivers are letters, digits, - and _.
    for (size_t system = 0; system < receiver.systems.size(); ++system) {
      const SystemScores& scores = receiver.systems[system];
      const double f1 = scores.mean_f1();
      if (scores.system != System::latent)
        svg += fmt::format(
            "<line x1='{}' x2='{}' y1='{:.1f}' y2='{:.1f}' stroke='{}' stroke-dasharray='{}'/>\n",
            kLeft, right, y_of(f1), y_of(f1), color, scores.system == System::text ? "8 3" : "2 4");
      svg += fmt::format("<text x='{}' y='{:.1f}' fill='{}'>{} {}: {:.2f}</text>\n", right + 8,
                         kTop + 14 * static_cast<double>(line++) + 8, color, receiver.name,
                         scores.name(report.budgets.front()), f1);
    }
  }
  return svg + "</svg>\n";
}

}  // namespace fullbore::latentwire
