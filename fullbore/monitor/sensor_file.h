#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/result.h"
#include "fullbore/monitor/sensor.h"

namespace fullbore {

/// The columns of a sensors.csv behind "step", "seconds" (since the command was given) and "time" (since 1970): one for
/// each sensor that could be read, or will be, when the file was begun, in the order of the readings.
std::string sensor_header(std::span<const SensorReading> readings);

/// A line of a sensors.csv, without its end: what is not known is empty.
struct SensorRow {
  int64_t step = 0;
  double seconds = 0;
  double time = 0;
  std::vector<double> values;
};

/// What a sensors.csv says. Its lines are anybody's.
class SensorColumns {
 public:
  static constexpr size_t kMost = 2048;

  /// Failure says why the line is no header of ours.
  static Result<SensorColumns> parse(std::string_view header);
  const std::vector<std::string>& titles() const { return titles_; }  ///< "cpu.power.draw [W]"
  /// Nothing where a line has other columns, or other things than finite numbers in them: a torn one, say.
  std::optional<SensorRow> row(std::string_view line) const;
  /// Where a title stands in titles(); -1: nowhere.
  int find(std::string_view title) const;

 private:
  std::vector<std::string> titles_;
};

/// "sensors.csv" for 1, "sensors-2.csv" and so on.
std::string sensor_file_name(int number);

/// All that a sensors.csv holds.
struct SensorTable {
  SensorColumns columns;
  std::vector<SensorRow> rows;
  int64_t damaged = 0;  ///< lines that are none
};
Result<SensorTable> read_sensor_file(const std::string& path);

}  // namespace fullbore
