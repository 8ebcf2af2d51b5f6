#include "fullbore/monitor/sensor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>

#include "fullbore/base/files.h"
#include "fullbore/monitor/sensor_sources.h"

namespace fullbore {
namespace {

void set_from(const char* variable, std::string& option) {
  const char* const value = std::getenv(variable);
  if (value != nullptr && *value != '\0') option = value;
}

}  // namespace

std::string SensorReading::title() const {
  return unit.empty() ? name : fmt::format("{} [{}]", name, unit);
}

SensorOptions SensorOptions::from_environment() {
  SensorOptions options;
  set_from("FULLBORE_SENSOR_ROOT", options.root);
  set_from("FULLBORE_NVML", options.nvml);
  return options;
}

Sensors::Sensors(const SensorOptions& options) {
  for (const auto make : {processor_sensors, clock_sensors, temperature_sensors, energy_sensors,
                          memory_sensors, group_sensors, nvml_sensors})
    sources_.push_back(make(options));
}

Sensors::~Sensors() = default;

const std::vector<SensorReading>& Sensors::read(double seconds) {
  readings_.clear();
  for (const auto& source : sources_) source->read(seconds, readings_);
  return readings_;
}

Result<std::string> read_system_file(const std::string& path) {
  constexpr size_t kMostBytes = size_t{1} << 20;
  // O_NONBLOCK: nothing is waited for, whatever stands there.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  std::string text;
  ssize_t count = -1;
  int error = errno;
  if (file >= 0) {
    char block[8192];
    while ((count = ::read(file, block, sizeof block)) > 0 && text.size() < kMostBytes)
      text.append(block, static_cast<size_t>(count));
    error = errno;
    ::close(file);
  }
  if (count >= 0) return text;
  errno = error;
  std::string message = fmt::format("cannot read {}: {}", path, system_reason());
  if (error == EACCES || error == EPERM) message += "; root may, or whoever root lets by chmod a+r";
  return Failure{message};
}

std::vector<std::string> numbered_names(const std::string& folder, std::string_view prefix) {
  std::vector<std::string> found;
  for (std::string& name : system_files().list(folder)) {
    const std::string_view rest =
        std::string_view(name).substr(std::min(prefix.size(), name.size()));
    if (name.starts_with(prefix) && !rest.empty() &&
        rest.find_first_not_of("0123456789") == std::string_view::npos)
      found.push_back(std::move(name));
  }
  // By length first: cpu2 stands before cpu10.
  std::ranges::sort(found, [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return found;
}

std::optional<int64_t> WrappingCounter::add(int64_t now, int64_t range) {
  const std::optional<int64_t> last = std::exchange(last_, now);
  if (!last) return {};
  int64_t counted = now - *last;
  // Gone round once: it was in the upper half, and is in the lower. Otherwise it was set back.
  if (counted < 0) {
    if (range < *last || *last < range / 2 || now > range / 2) return {};
    counted = range - *last + now;
  }
  if (counted > std::numeric_limits<int64_t>::max() - total_) return {};
  total_ += counted;
  return counted;
}

}  // namespace fullbore
