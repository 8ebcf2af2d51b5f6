#include "fullbore/monitor/run_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "fullbore/base/printable.h"
#include "fullbore/base/text.h"
#include "fullbore/monitor/text_chart.h"

namespace fullbore {
namespace {

constexpr int kLeastChartRows = 4;
constexpr int kMostChartRows = 30;
constexpr int kAxisRows = 2;  // below the curves; then one for each name
constexpr size_t kMostAlarms = 3;
constexpr size_t kMostGroups = 24;
constexpr double kSilentSeconds = 15;  // of a thread that samples every second
constexpr const char* kRed = "\x1b[31m";
constexpr const char* kDim = "\x1b[2m";
constexpr const char* kReset = "\x1b[0m";

std::string paint(const std::string& text, const char* colour, TextStyle style) {
  return style.colour ? colour + text + kReset : text;
}

/// Cut to so many columns, between code points.
std::string fitted(const std::string& text, int columns) {
  int width = 0;
  for (size_t i = 0; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U && ++width > columns)
      return text.substr(0, i);
  return text;
}

/// One character for a load in percent.
std::string load_mark(double percent, TextStyle style) {
  static constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (std::isnan(percent)) return "?";
  const double share = std::clamp(percent / 100, 0.0, 1.0);
  return style.unicode ? kBlocks[static_cast<size_t>(share * 7.999)]
                       : std::string(1, static_cast<char>('0' + static_cast<int>(share * 9.999)));
}

/// "cpu3" of "cpu3.utilization [%]": one of many processors.
bool is_core(std::string_view group) {
  return group.size() > 3 && group.starts_with("cpu") &&
         group.find_first_not_of("0123456789", 3) == std::string_view::npos;
}

struct SensorGroup {
  std::string name;
  std::string text;
};

/// "power.draw 41.2 W" of a title and a value.
std::string figure(std::string_view title, double value) {
  const size_t bracket = title.find(" [");
  std::string_view unit;
  if (bracket != std::string_view::npos && title.ends_with(']'))
    unit = title.substr(bracket + 2, title.size() - bracket - 3);
  const std::string_view name = title.substr(0, bracket);
  if (unit == "MiB") return fmt::format("{} {}", name, bytes_text(value * 1048576));
  return fmt::format("{} {:.4g}{}{}", name, value, unit.empty() || unit == "%" ? "" : " ", unit);
}

/// The sensors, a line for each part of the machine: "gpu0  utilization.gpu 93%  power.draw 251 W".
std::vector<std::string> sensor_lines(const RunView& view, int columns, TextStyle style) {
  std::vector<SensorGroup> groups;
  std::string cores;
  const auto& titles = view.sensor_titles();
  for (size_t i = 0; i < titles.size() && i < view.sensor_values().size(); ++i) {
    const size_t dot = std::min(titles[i].find('.'), titles[i].size());
    const std::string name = titles[i].substr(0, dot);
    const double value = view.sensor_values()[i];
    if (is_core(name)) {
      cores += load_mark(value, style);
      continue;
    }
    if (std::isnan(value) || dot == titles[i].size()) continue;
    auto group = std::ranges::find(groups, name, &SensorGroup::name);
    if (group == groups.end()) {
      if (groups.size() >= kMostGroups) continue;
      groups.push_back({name, {}});
      group = groups.end() - 1;
    }
    group->text += "  " + figure(std::string_view(titles[i]).substr(dot + 1), value);
  }
  if (!cores.empty()) {
    const auto cpu = std::ranges::find(groups, "cpu", &SensorGroup::name);
    (cpu == groups.end() ? groups.insert(groups.begin(), {"cpu", {}}) : cpu)->text += "  " + cores;
  }
  std::vector<std::string> lines;
  for (const SensorGroup& group : groups)
    lines.push_back(fitted(fmt::format("{:<9}{}", group.name, group.text), columns));
  return lines;
}

/// The largest first.
std::string phase_line(const RunView& view) {
  std::vector<std::pair<std::string, double>> phases = view.phases();
  std::ranges::stable_sort(phases, std::greater(), &std::pair<std::string, double>::second);
  double sum = 0;
  for (const auto& [name, seconds] : phases) sum += seconds;
  std::string line;
  for (const auto& [name, seconds] : phases)
    if (seconds >= 0.001 * sum) line += fmt::format("  {} {:.1f}%", name, 100 * seconds / sum);
  return line.empty() ? line : "time     " + line;
}

std::string head_line(const RunView& view, double now) {
  std::string line = view.status().empty() ? std::string("starting") : view.status();
  const double silent = now - view.last_sample_time();
  if (view.status() == "running" && view.last_sample_time() > 0 && silent > kSilentSeconds)
    line += fmt::format(", no sign of life for {}", duration_text(silent));
  return line + "  " + printable_name(view.folder());
}

}  // namespace

std::vector<std::string> run_frame(const RunView& view, FrameSize size, TextStyle style,
                                   double now) {
  const int columns = std::max(size.columns, 24);
  std::vector<std::string> lines = {fitted(head_line(view, now), columns),
                                    progress_line(view.progress(), columns, style)};
  std::vector<std::string> foot;
  if (const std::string phases = phase_line(view); !phases.empty())
    foot.push_back(fitted(phases, columns));
  for (const std::string& line : sensor_lines(view, columns, style)) foot.push_back(line);
  const size_t shown = std::min(view.alarms().size(), kMostAlarms);
  std::vector<std::string> alarms;
  for (size_t i = view.alarms().size() - shown; i < view.alarms().size(); ++i) {
    const RunView::AlarmLine& alarm = view.alarms()[i];
    const std::string text = fitted(fmt::format("{} step {}: {}", alarm.raised ? "alarm" : "over ",
                                                alarm.step, printable_name(alarm.message)),
                                    columns);
    alarms.push_back(paint(text, alarm.raised ? kRed : kDim, style));
  }
  std::vector<ChartCurve> curves;
  for (const ChartCurve& curve : view.curves())
    if (!curve.points.empty()) curves.push_back(curve);
  // The curves get what is left, and at least a few rows: sensors give way, then all alarms but the last.
  const auto left = [&] {
    return size.rows - kAxisRows -
           static_cast<int>(lines.size() + foot.size() + alarms.size() + curves.size());
  };
  while (left() < kLeastChartRows && !foot.empty()) foot.pop_back();
  while (left() < kLeastChartRows && alarms.size() > 1) alarms.erase(alarms.begin());
  if (!curves.empty() && left() >= kLeastChartRows) {
    const std::string chart =
        curves_text({.title = "", .x = "step", .y = "loss"}, curves,
                    {.columns = columns, .rows = std::min(left(), kMostChartRows)}, style);
    for (size_t begin = 0; begin < chart.size();) {
      const size_t end = std::min(chart.find('\n', begin), chart.size());
      if (end > begin) lines.push_back(chart.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  lines.insert(lines.end(), foot.begin(), foot.end());
  lines.insert(lines.end(), alarms.begin(), alarms.end());
  if (static_cast<int>(lines.size()) > size.rows)
    lines.resize(static_cast<size_t>(std::max(size.rows, 1)));
  return lines;
}

}  // namespace fullbore
