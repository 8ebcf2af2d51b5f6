#include "fullbore/monitor/card_readings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <map>

#include "fullbore/monitor/sensor_sources.h"

namespace fullbore {
namespace {

using Figures = std::map<std::string, double>;

std::string line(const Figures& figures) {
  std::vector<std::string> parts;
  const auto add = [&](const char* name, const char* format) {
    if (const auto found = figures.find(name); found != figures.end())
      parts.push_back(fmt::format(fmt::runtime(format), found->second));
  };
  add("utilization.gpu", "utilization {:.0f} %");
  if (const auto total = figures.find("memory.total"); total != figures.end())
    add("memory.used", fmt::format("memory {{:.0f}} of {:.0f} MiB", total->second).c_str());
  add("power.draw", "{:.0f} W");
  add("clocks.sm", "{:.0f} MHz");
  add("temperature.gpu", "{:.0f} C");
  if (const auto found = figures.find("throttled"); found != figures.end() && found->second > 0)
    parts.emplace_back("slowed down by heat or a limit");
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::unique_ptr<SensorSource> card_sensors() {
  return nvml_sensors(SensorOptions::from_environment());
}

std::vector<std::string> card_lines(std::span<const SensorReading> readings) {
  std::vector<std::pair<std::string, Figures>> devices;  // as they are numbered
  for (const SensorReading& each : readings) {
    const size_t point = each.name.find('.');
    if (!each.name.starts_with("gpu") || point == std::string::npos || std::isnan(each.value))
      continue;
    const std::string device = each.name.substr(0, point);
    if (devices.empty() || devices.back().first != device) devices.emplace_back(device, Figures{});
    devices.back().second[each.name.substr(point + 1)] = each.value;
  }
  std::vector<std::string> lines;
  for (const auto& [name, figures] : devices)
    if (const std::string text = line(figures); !text.empty())
      lines.push_back(fmt::format("{}: {}", name, text));
  return lines;
}

}  // namespace fullbore
