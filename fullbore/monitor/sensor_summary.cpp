#include "fullbore/monitor/sensor_summary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "fullbore/base/file_system.h"
#include "fullbore/monitor/sensor_file.h"

namespace fullbore {
namespace {

class Mean {
 public:
  void add(double value) {
    if (std::isnan(value)) return;
    sum_ += value;
    ++count_;
  }
  double get() const {
    return count_ == 0 ? SensorSummary::kUnknown : sum_ / static_cast<double>(count_);
  }

 private:
  double sum_ = 0;
  int64_t count_ = 0;
};

/// A kind of column, by what its title begins and ends with.
using Columns = std::vector<size_t>;
Columns columns_of(const SensorColumns& columns, std::string_view begin, std::string_view end) {
  Columns found;
  for (size_t i = 0; i < columns.titles().size(); ++i)
    if (columns.titles()[i].starts_with(begin) && columns.titles()[i].ends_with(end))
      found.push_back(i);
  return found;
}

/// Over those that are known; not a number: none is.
double sum(const SensorRow& row, const Columns& columns) {
  double total = SensorSummary::kUnknown;
  for (const size_t column : columns)
    if (!std::isnan(row.values[column]))
      total = (std::isnan(total) ? 0 : total) + row.values[column];
  return total;
}
double mean(const SensorRow& row, const Columns& columns) {
  Mean all;
  for (const size_t column : columns) all.add(row.values[column]);
  return all.get();
}

/// Sums over the files of a run.
class Summing {
 public:
  void add(const SensorTable& table, int64_t first_step) {
    const SensorColumns& columns = table.columns;
    const Columns device_load = columns_of(columns, "gpu", ".utilization.gpu [%]");
    const Columns process_load = columns_of(columns, "process.utilization", " [%]");
    const Columns power = columns_of(columns, "", ".power.draw [W]");
    const Columns energy = columns_of(columns, "", ".energy [J]");
    const Columns heat[] = {columns_of(columns, "cpu.temperature", " [C]"),
                            columns_of(columns, "gpu", ".temperature.gpu [C]")};
    const Columns device_clock = columns_of(columns, "gpu", ".clocks.sm [MHz]");
    const Columns clock = columns_of(columns, "cpu.clock", " [MHz]");
    const Columns throttle = columns_of(columns, "cpu.throttle", "");
    const Columns device_throttle = columns_of(columns, "gpu", ".throttled");
    const Columns device_memory = columns_of(columns, "gpu", ".memory.used [MiB]");
    const SensorRow* before = nullptr;
    for (const SensorRow& row : table.rows) {
      if (row.step < first_step) continue;
      ++result_.samples;
      device_load_.add(mean(row, device_load) / 100);
      process_load_.add(mean(row, process_load) / 100);
      watts_.add(sum(row, power));
      device_clock_.add(mean(row, device_clock));
      clock_.add(mean(row, clock));
      for (const Columns& each : heat)
        for (const size_t column : each)
          result_.highest_celsius = std::fmax(result_.highest_celsius, row.values[column]);
      result_.device_mib = std::fmax(result_.device_mib, sum(row, device_memory));
      const double now = sum(row, throttle);
      const double devices = sum(row, device_throttle);
      if (!std::isnan(now) || !std::isnan(devices))
        result_.throttled = std::fmax(result_.throttled, devices > 0 ? 1 : 0);
      if (before != nullptr) add_interval(*before, row, energy, throttle);
      before = &row;
    }
  }

  SensorSummary finish() {
    result_.device_utilisation = device_load_.get();
    result_.utilisation = std::isnan(device_load_.get()) ? process_load_.get() : device_load_.get();
    result_.watts = watts_.get();
    result_.clock_mhz = std::isnan(device_clock_.get()) ? clock_.get() : device_clock_.get();
    if (energy_steps_ > 0)
      result_.joules_per_step = result_.joules / static_cast<double>(energy_steps_);
    return result_;
  }

 private:
  /// Energy and counts begin at zero with the process: between two processes nothing is counted.
  void add_interval(const SensorRow& before, const SensorRow& now, const Columns& energy,
                    const Columns& throttle) {
    if (now.seconds < before.seconds || now.step < before.step) return;
    const int64_t steps = now.step - before.step;
    if (steps > std::numeric_limits<int64_t>::max() - result_.steps) return;
    result_.steps += steps;
    if (sum(now, throttle) > sum(before, throttle)) result_.throttled = 1;
    double joules = SensorSummary::kUnknown;
    for (const size_t column : energy) {
      const double more = now.values[column] - before.values[column];
      if (more >= 0) joules = (std::isnan(joules) ? 0 : joules) + more;
    }
    if (std::isnan(joules)) return;
    result_.joules = (std::isnan(result_.joules) ? 0 : result_.joules) + joules;
    energy_steps_ += steps;
  }

  SensorSummary result_;
  Mean device_load_, process_load_, watts_, device_clock_, clock_;
  int64_t energy_steps_ = 0;
};

}  // namespace

Result<SensorSummary> summarize_sensors(const std::string& run_folder, int64_t first_step) {
  Summing sums;
  for (int number = 1;; ++number) {
    const std::string path = run_folder + '/' + sensor_file_name(number);
    FileStatus status;
    if (system_files().status(path, status) != 0) return sums.finish();
    const Result<SensorTable> table = read_sensor_file(path);
    if (!table.ok()) return Failure{table.error()};
    sums.add(table.value(), first_step);
  }
}

}  // namespace fullbore
