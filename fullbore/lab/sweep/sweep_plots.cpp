#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "fullbore/lab/sweep/sweep_report.h"
#include "fullbore/monitor/chart_picture.h"
#include "fullbore/monitor/chart_range.h"
#include "fullbore/monitor/sample_statistics.h"

namespace fullbore {
namespace {

constexpr double kWidth = 900, kHeight = 320, kTop = 44, kBottom = 24, kSide = 70;
constexpr size_t kBest = 3;  // trials in colour

/// One of the axes: where a text lies on it, from 0 below to 1 above.
class Axis {
 public:
  Axis(const SweepDimension& dimension, const std::vector<std::string>& values)
      : name_(dimension.key), is_log_(dimension.kind == SweepDimension::Kind::log) {
    if (dimension.kind == SweepDimension::Kind::choice) {
      choices_ = dimension.choices;
    } else {
      for (const std::string& value : values) range_.take(place(value));
      range_.settle();
    }
  }
  Axis(const std::string& metric, const std::vector<double>& values) : name_(metric) {
    for (const double value : values) range_.take(value);
    range_.settle();
  }

  const std::string& name() const { return name_; }
  double share(const std::string& value) const {
    if (choices_.empty()) return range_.share(place(value));
    const auto at = std::ranges::find(choices_, value) - choices_.begin();
    return choices_.size() < 2 ? 0.5
                               : static_cast<double>(at) / static_cast<double>(choices_.size() - 1);
  }
  double share(double value) const { return range_.share(value); }
  std::string least() const { return choices_.empty() ? text(range_.least) : choices_.front(); }
  std::string most() const { return choices_.empty() ? text(range_.most) : choices_.back(); }

 private:
  double place(const std::string& value) const {
    const double number = std::strtod(value.c_str(), nullptr);
    return is_log_ ? std::log10(number) : number;
  }
  std::string text(double place) const {
    return fmt::format("{:.3g}", is_log_ ? std::pow(10, place) : place);
  }

  std::string name_;
  bool is_log_ = false;
  std::vector<std::string> choices_;
  ChartRange range_;
};

std::vector<SweepRow> with_values(const Sweep& sweep, const SweepSpace& space) {
  std::vector<SweepRow> rows = ranked(sweep, space);
  std::erase_if(rows, [](const SweepRow& row) { return !row.run->ok(); });
  return rows;
}

std::vector<Axis> axes_of(const Sweep& sweep, const SweepSpace& space,
                          const std::vector<SweepRow>& rows) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < space.dimensions.size(); ++i) {
    std::vector<std::string> values;
    for (const SweepRow& row : rows)
      values.push_back(sweep.trials[static_cast<size_t>(row.trial)][i]);
    axes.emplace_back(space.dimensions[i], values);
  }
  std::vector<double> values;
  for (const SweepRow& row : rows) values.push_back(row.run->value);
  axes.emplace_back(space.metric, values);
  return axes;
}

}  // namespace

std::string parallel_coordinates(const Sweep& sweep, const SweepSpace& space) {
  const std::vector<SweepRow> rows = with_values(sweep, space);
  if (rows.empty()) return "";
  const std::vector<Axis> axes = axes_of(sweep, space, rows);
  const auto x = [&](size_t axis) {
    return kSide +
           (kWidth - 2 * kSide) * static_cast<double>(axis) / static_cast<double>(axes.size() - 1);
  };
  const auto y = [](double share) {
    return kHeight - kBottom - share * (kHeight - kTop - kBottom);
  };
  std::string svg = fmt::format("<svg class=\"axes\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\">\n",
                                kWidth, kHeight);
  for (size_t i = 0; i < axes.size(); ++i) {
    svg += fmt::format("<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>\n",
                       x(i), y(0), y(1));
    const auto words = [&](double at, const char* kind, const std::string& text) {
      svg += fmt::format("<text{} x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                         kind, x(i), at, html_text(text));
    };
    words(16, " class=\"name\"", axes[i].name());
    words(kTop - 8, "", axes[i].most());
    words(kHeight - 6, "", axes[i].least());
  }
  for (size_t i = rows.size(); i-- > 0;) {  // the best are drawn last
    const std::vector<std::string>& values = sweep.trials[static_cast<size_t>(rows[i].trial)];
    std::string points;
    for (size_t axis = 0; axis < axes.size(); ++axis)
      points += fmt::format("{:.1f},{:.1f} ", x(axis),
                            y(axis < values.size() ? axes[axis].share(values[axis])
                                                   : axes[axis].share(rows[i].run->value)));
    svg +=
        fmt::format("<polyline{} points=\"{}\"><title>trial {}: {:.4f}</title></polyline>\n",
                    i < kBest ? " class=\"best\"" : "", points, rows[i].trial, rows[i].run->value);
  }
  return svg + "</svg>\n";
}

std::string sweep_curves(const Sweep& sweep, const SweepSpace& space) {
  const std::vector<SweepRow> rows = with_values(sweep, space);
  if (rows.empty()) return "";
  const SweepRow& best = rows.front();
  std::vector<ChartCurve> curves(4);
  curves[0].name = fmt::format("trial {}", best.trial);
  for (const SweepRun::Point& point : best.run->curve)
    curves[0].points.emplace_back(static_cast<double>(point.step), point.value);
  std::map<int64_t, std::vector<double>> by_step;
  for (const SweepRun& run : sweep.runs[static_cast<size_t>(best.round)])
    if (run.ok())
      for (const SweepRun::Point& point : run.curve) by_step[point.step].push_back(point.value);
  const char* const names[] = {"median", "lower quartile", "upper quartile"};
  const double shares[] = {0.5, 0.25, 0.75};
  for (size_t i = 0; i < 3; ++i) {
    curves[i + 1].name = names[i];
    for (const auto& [step, values] : by_step)
      curves[i + 1].points.emplace_back(static_cast<double>(step), quantile(values, shares[i]));
  }
  return curves_svg({space.metric, "step", ""}, curves);
}

}  // namespace fullbore
