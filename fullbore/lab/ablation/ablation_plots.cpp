#include "fullbore/lab/ablation/ablation_plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string_view>
#include <vector>

#include "fullbore/lab/report_table.h"
#include "fullbore/monitor/chart_picture.h"
#include "fullbore/monitor/chart_range.h"

namespace fullbore {
namespace {

constexpr double kWidth = 760;
constexpr double kLabels = 250;  ///< room for names
constexpr double kRight = 740;
constexpr double kRow = 20;

bool is_shown(const ArmReport& arm) {
  return arm.reason.empty() && arm.same_as.empty() && std::isfinite(arm.step_seconds);
}

const char* colour_of(const ArmReport& arm) {
  if (!arm.time.is_shown()) return "plain";
  return arm.time.difference < 0 ? "better" : "worse";
}

std::string open_svg(double height, const std::string& title) {
  return fmt::format(
      "<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\"><title>{}</title>\n",
      kWidth, height, html_text(title), html_text(title));
}

std::string label(double x, double y, const char* anchor, const std::string& text,
                  const char* kind = "note") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n",
                     x, y, anchor, kind, html_text(text));
}

std::string line(double x1, double y1, double x2, double y2, const char* kind) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2,
      y2, kind);
}

std::string shortened(const std::string& name) {
  constexpr size_t kMost = 36;
  if (name.size() <= kMost) return name;
  return fmt::format("{}...", std::string_view(name).substr(0, kMost - 3));
}

/// Vertical lines at speeds that people think in.
std::string speed_grid(const ChartRange& range, double height,
                       const std::function<double(double)>& place) {
  std::string out;
  for (const double speed : {0.125, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 1.5, 2.0,
                             3.0, 4.0, 6.0, 8.0, 12.0, 16.0}) {
    const double value = std::log(speed);
    if (value < range.least || value > range.most) continue;
    const double x = place(value);
    out += line(x, 18, x, height - 4, speed == 1 ? "base" : "grid");
    // Labels that would touch are left out.
    const bool crowded =
        range.most - range.least > 1 && (speed == 0.95 || speed == 1.05 || speed == 0.9 ||
                                         speed == 1.1 || speed == 0.8 || speed == 1.25);
    if (!crowded) out += label(x, 12, "middle", fmt::format("{:g}x", speed));
  }
  return out;
}

/// Arms of a ladder from its first rung, those that others stand for included.
std::vector<const ArmReport*> rungs_of(const AblationReport& report, bool reverse) {
  std::vector<const ArmReport*> rungs = {report.arms.data()};
  // A rung has one switch more than the one before; earlier arms may have its name.
  std::vector<std::string> order = report.ladder;
  if (reverse) std::ranges::reverse(order);
  std::set<std::string> on;
  for (const std::string& name : order) {
    on.insert(name);
    const auto found = std::ranges::find_if(report.arms, [&](const ArmReport& arm) {
      return std::set<std::string>(arm.on.begin(), arm.on.end()) == on;
    });
    if (found == report.arms.end() || !found->reason.empty() || !std::isfinite(found->step_seconds))
      return {};
    rungs.push_back(&*found);
  }
  return rungs;
}

}  // namespace

std::string speed_forest(const AblationReport& report) {
  std::vector<const ArmReport*> arms;
  ChartRange range;
  range.take(0);
  for (const ArmReport& arm : report.arms) {
    if (!is_shown(arm)) continue;
    arms.push_back(&arm);
    range.take(-arm.time.low);
    range.take(-arm.time.high);
    range.take(-arm.time.difference);
  }
  range.settle();
  const double height = 30 + kRow * static_cast<double>(arms.size());
  const auto place = [&](double value) {
    return kLabels + (kRight - kLabels - 20) * range.share(value) + 10;
  };
  std::string out =
      open_svg(height, "Speed of each arm against the base") + speed_grid(range, height, place);
  double y = 34;
  for (const ArmReport* arm : arms) {
    const double x = place(-arm->time.difference);
    out += label(kLabels - 8, y + 4, "end", shortened(arm->name), "name");
    if (std::isfinite(arm->time.low))
      out += line(place(-arm->time.high), y, place(-arm->time.low), y, colour_of(*arm));
    out += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" class=\"{}\"><title>{}: "
        "{:.3f}x</title></circle>\n",
        x, y, colour_of(*arm), html_text(arm->name), arm->speed());
    y += kRow;
  }
  return out + "</svg>\n";
}

std::string quality_against_speed(const AblationReport& report) {
  ChartRange across;
  ChartRange up;
  for (const ArmReport& arm : report.arms)
    if (is_shown(arm) && !arm.metrics.empty() && std::isfinite(arm.metrics[0].at_equal_steps)) {
      across.take(-arm.time.difference);
      up.take(arm.metrics[0].at_equal_steps);
    }
  if (!(up.least <= up.most)) return "";
  across.settle();
  up.settle();
  constexpr double kHeight = 300;
  const auto x_of = [&](double value) { return 70 + (kRight - 90) * across.share(value); };
  const auto y_of = [&](double value) { return kHeight - 30 - (kHeight - 70) * up.share(value); };
  std::string out =
      open_svg(kHeight, "Quality against speed") + speed_grid(across, kHeight - 24, x_of);
  out += label(66, y_of(up.most) + 4, "end", fmt::format("{:.4f}", up.most));
  out += label(66, y_of(up.least) + 4, "end", fmt::format("{:.4f}", up.least));
  out += label(70, kHeight - 6, "start",
               report.arms[0].metrics[0].name + " at equal steps; speed to the right");
  for (const ArmReport& arm : report.arms) {
    if (!is_shown(arm) || arm.metrics.empty() || !std::isfinite(arm.metrics[0].at_equal_steps))
      continue;
    out += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" class=\"{}\"><title>{}: {:.3f}x, {} "
        "{:.4f}</title></circle>\n",
        x_of(-arm.time.difference), y_of(arm.metrics[0].at_equal_steps),
        &arm == report.arms.data() ? "base" : colour_of(arm), html_text(arm.name), arm.speed(),
        html_text(arm.metrics[0].name), arm.metrics[0].at_equal_steps);
  }
  return out + "</svg>\n";
}

std::string ladder_waterfall(const AblationReport& report, bool reverse) {
  const std::vector<const ArmReport*> rungs = rungs_of(report, reverse);
  if (rungs.size() < 2) return "";
  double most = 0;
  for (const ArmReport* rung : rungs) most = std::max(most, rung->step_seconds);
  const double height = 12 + kRow * static_cast<double>(rungs.size());
  const auto place = [&](double seconds) {
    return kLabels + (kRight - kLabels - 70) * seconds / most;
  };
  std::string out = open_svg(height, "Time of a step along the ladder");
  double y = 8;
  double before = 0;
  std::vector<std::string> order = report.ladder;
  if (reverse) std::ranges::reverse(order);
  for (size_t i = 0; i < rungs.size(); ++i) {
    const double now = rungs[i]->step_seconds;
    const double from = i == 0 ? 0 : std::min(before, now);
    const double to = i == 0 ? now : std::max(before, now);
    out +=
        label(kLabels - 8, y + 12, "end",
              i == 0 ? std::string("base") : fmt::format("+ {}", shortened(order[i - 1])), "name");
    out += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"14\" class=\"{}\"/>\n",
        place(from), y, std::max(1.0, place(to) - place(from)),
        i == 0         ? "plain"
        : now < before ? "better"
                       : "worse");
    out += label(place(to) + 6, y + 12, "start", fmt::format("{:.3g} ms", now * 1e3));
    before = now;
    y += kRow;
  }
  return out + "</svg>\n";
}

std::string loss_curves(const AblationReport& report) {
  std::vector<ChartCurve> curves;
  for (size_t i = 0; i < report.arms.size(); ++i) {
    const ArmReport& arm = report.arms[i];
    const bool wanted = i == 0 || arm.name == "as configured" || arm.name == "all" ||
                        static_cast<int>(i) == report.recommended;
    if (wanted && is_shown(arm) && !arm.curve.empty()) curves.push_back({arm.name, arm.curve});
  }
  if (curves.empty() || report.arms[0].metrics.empty()) return "";
  return curves_svg(
      {.title = "", .x = "seconds of training steps", .y = report.arms[0].metrics[0].name}, curves);
}

}  // namespace fullbore
