#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fullbore/base/result.h"
#include "fullbore/monitor/sensor.h"

namespace fullbore {

/// The sources that Sensors is made of, and what they share. For fullbore/monitor alone.

std::unique_ptr<SensorSource> processor_sensors(const SensorOptions& options);  // cpu.*, other.*
std::unique_ptr<SensorSource> clock_sensors(
    const SensorOptions& options);  // cpu.clock, cpu.throttle
std::unique_ptr<SensorSource> energy_sensors(const SensorOptions& options);       // RAPL
std::unique_ptr<SensorSource> temperature_sensors(const SensorOptions& options);  // hwmon
std::unique_ptr<SensorSource> memory_sensors(const SensorOptions& options);  // memory, pressure
std::unique_ptr<SensorSource> group_sensors(const SensorOptions& options);   // control group
/// Nothing where no device has ever been there: without hardware there are no columns of it.
std::unique_ptr<SensorSource> nvml_sensors(const SensorOptions& options);

/// A file of /proc or /sys, which says that it has no bytes: at most 1 MiB of it. Failure: "cannot read PATH: Permission
/// denied", with what would do where it is a permission.
Result<std::string> read_system_file(const std::string& path);

/// Names in a folder that begin with `prefix` and go on with digits alone, in the order of the numbers; none where it
/// cannot be read.
std::vector<std::string> numbered_names(const std::string& folder, std::string_view prefix);

/// The parsed contents of a file; where there are none, `reading` says why.
template <typename Parse>
auto parse_system_file(const std::string& path, const Parse& parse, std::string& missing)
    -> decltype(parse(std::string_view())) {
  const Result<std::string> text = read_system_file(path);
  if (!text.ok()) {
    missing = text.error();
    return {};
  }
  auto value = parse(std::string_view(text.value()));
  if (!value) missing = path + " holds something else than was expected";
  return value;
}

/// A counter that goes round: what it has counted since the first sample.
class WrappingCounter {
 public:
  /// `range`: where it begins anew; 0: nowhere. Returns what was counted since the last call; nothing at the first call and
  /// where the counter has gone back without having gone round, for a module was loaded anew.
  std::optional<int64_t> add(int64_t now, int64_t range);
  int64_t total() const { return total_; }

 private:
  std::optional<int64_t> last_;
  int64_t total_ = 0;
};

}  // namespace fullbore
