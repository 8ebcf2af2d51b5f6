#include "fullbore/monitor/sensor_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "fullbore/base/file_lines.h"

namespace fullbore {
namespace {

constexpr std::string_view kFixed[] = {"step", "seconds", "time"};
constexpr size_t kFixedCount = std::size(kFixed);

std::vector<std::string_view> cells(std::string_view line) {
  std::vector<std::string_view> found;
  for (;;) {
    const size_t comma = line.find(',');
    found.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos || found.size() > SensorColumns::kMost + kFixedCount)
      return found;
    line.remove_prefix(comma + 1);
  }
}

template <typename Number>
bool read_number(std::string_view cell, Number& number) {
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
  return error == std::errc() && end == cell.data() + cell.size();
}

/// What stands in a column's name: letters, digits, dots, underscores, and the unit in brackets.
bool is_title(std::string_view text) {
  constexpr size_t kMostBytes = 100;
  return !text.empty() && text.size() <= kMostBytes && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._ []%").find(c) != std::string_view::npos;
  });
}

}  // namespace

std::string sensor_header(std::span<const SensorReading> readings) {
  std::string line;
  for (const std::string_view name : kFixed)
    line += fmt::format("{}{}", line.empty() ? "" : ",", name);
  for (const SensorReading& reading : readings)
    if (reading.missing.empty()) line += "," + reading.title();
  return line;
}

Result<SensorColumns> SensorColumns::parse(std::string_view header) {
  const std::vector<std::string_view> names = cells(header);
  if (names.size() < kFixedCount ||
      !std::equal(std::begin(kFixed), std::end(kFixed), names.begin()))
    return Failure{"its first line is not that of a sensors.csv: \"step,seconds,time,...\""};
  if (names.size() > kMost + kFixedCount)
    return Failure{fmt::format("it has more than {} columns", kMost)};
  SensorColumns columns;
  for (size_t i = kFixedCount; i < names.size(); ++i) {
    if (!is_title(names[i]))
      return Failure{fmt::format("column {} has no name of a sensor", i + 1)};
    columns.titles_.emplace_back(names[i]);
  }
  return columns;
}

std::optional<SensorRow> SensorColumns::row(std::string_view line) const {
  const std::vector<std::string_view> values = cells(line);
  SensorRow row;
  if (values.size() != titles_.size() + kFixedCount || !read_number(values[0], row.step) ||
      !read_number(values[1], row.seconds) || !read_number(values[2], row.time) || row.step < 0 ||
      !std::isfinite(row.seconds) || !std::isfinite(row.time))
    return {};
  for (size_t i = kFixedCount; i < values.size(); ++i) {
    double value = std::numeric_limits<double>::quiet_NaN();
    if (!values[i].empty() && (!read_number(values[i], value) || !std::isfinite(value))) return {};
    row.values.push_back(value);
  }
  return row;
}

int SensorColumns::find(std::string_view title) const {
  const auto found = std::ranges::find(titles_, title);
  return found == titles_.end() ? -1 : static_cast<int>(found - titles_.begin());
}

std::string sensor_file_name(int number) {
  return number == 1 ? "sensors.csv" : fmt::format("sensors-{}.csv", number);
}

Result<SensorTable> read_sensor_file(const std::string& path) {
  Result<FileLines> opened = FileLines::open(path);
  if (!opened.ok()) return Failure{opened.error()};
  FileLines& lines = opened.value();
  Result<bool> more = lines.next();
  if (!more.ok()) return Failure{more.error()};
  Result<SensorColumns> columns = SensorColumns::parse(more.value() ? lines.line() : "");
  if (!columns.ok()) return Failure{fmt::format("{}: {}", path, columns.error())};
  SensorTable table;
  table.columns = std::move(columns).value();
  for (;;) {
    more = lines.next();
    if (!more.ok()) return Failure{more.error()};
    if (!more.value()) return table;
    if (auto row = table.columns.row(lines.line()); row && lines.is_ended())
      table.rows.push_back(*std::move(row));
    else if (!lines.line().empty())
      ++table.damaged;
  }
}

}  // namespace fullbore
