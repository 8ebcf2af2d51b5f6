#include <fmt/format.h>

#include <limits>

#include "fullbore/base/control_group.h"
#include "fullbore/monitor/process.h"
#include "fullbore/monitor/sensor_sources.h"
#include "fullbore/monitor/sensor_text.h"

namespace fullbore {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr double kKibPerMib = 1024;
constexpr double kBytesPerMib = 1 << 20;

/// A file of lines "key: number", and figures of it.
class KeyedFile {
 public:
  explicit KeyedFile(std::string path) : path_(std::move(path)) {
    Result<std::string> text = read_system_file(path_);
    if (text.ok())
      text_ = std::move(text).value();
    else
      missing_ = text.error();
  }
  /// Nothing, and why in `missing`.
  std::optional<int64_t> operator()(std::string_view key, std::string& missing) const {
    missing = missing_;
    if (!missing.empty()) return {};
    const std::optional<int64_t> number = parse_keyed(text_, key);
    if (!number) missing = fmt::format("{} has no number {}", path_, key);
    return number;
  }
  /// "12 kB" as a reading in MiB.
  SensorReading mib(const char* name, std::string_view key) const {
    SensorReading reading{name, "MiB"};
    if (const auto kib = (*this)(key, reading.missing))
      reading.value = static_cast<double>(*kib) / kKibPerMib;
    return reading;
  }

 private:
  std::string path_;
  std::string text_;
  std::string missing_;
};

/// "cpu.pressure.some": how much of the last 10 s somebody had to wait.
SensorReading pressure(const std::string& name, const std::string& path) {
  SensorReading reading{name, "%"};
  if (const auto waits = parse_system_file(path, parse_pressure, reading.missing))
    reading.value = waits->some;
  return reading;
}

/// Memory, swap, pressure and disk.
class MemorySensors : public SensorSource {
 public:
  explicit MemorySensors(const SensorOptions& options)
      : root_(options.root), disk_folder_(options.disk_folder) {}

  void read(double, std::vector<SensorReading>& readings) override {
    const KeyedFile machine(root_ + "/proc/meminfo");
    readings.push_back(machine.mib("memory.total", "MemTotal"));
    readings.push_back(machine.mib("memory.available", "MemAvailable"));
    SensorReading total = machine.mib("swap.used", "SwapTotal");
    const SensorReading free = machine.mib("swap.used", "SwapFree");
    total.value -= free.value;
    if (total.missing.empty()) total.missing = free.missing;
    readings.push_back(std::move(total));
    for (const char* const what : {"cpu", "memory", "io"})
      readings.push_back(pressure(fmt::format("pressure.{}", what),
                                  fmt::format("{}/proc/pressure/{}", root_, what)));
    const KeyedFile process(root_ + "/proc/self/status");
    readings.push_back(process.mib("process.memory.resident", "VmRSS"));
    readings.push_back(process.mib("process.memory.swapped", "VmSwap"));
    const int64_t disk = free_disk_bytes(disk_folder_);
    readings.push_back({"disk.free", "MiB",
                        disk < 0 ? kUnknown : static_cast<double>(disk) / kBytesPerMib,
                        disk < 0 ? "the file system of " + disk_folder_ + " does not tell" : ""});
  }

 private:
  std::string root_;
  std::string disk_folder_;
};

/// What the control groups of this process may use, and do.
class GroupSensors : public SensorSource {
 public:
  explicit GroupSensors(const SensorOptions& options) : root_(options.root) {
    const ControlGroupFolders folders = control_group_folders(root_);
    memory_ = folders.memory;
    processors_ = folders.processors;
    unified_ = folders.unified;
  }

  void read(double, std::vector<SensorReading>& readings) override {
    const ControlGroupLimits limits = control_group_limits(root_);
    constexpr auto kNone = std::numeric_limits<int64_t>::max();
    const bool bounded = limits.memory_bytes != kNone;
    readings.push_back(
        {"group.memory.limit", "MiB",
         bounded ? static_cast<double>(limits.memory_bytes) / kBytesPerMib : kUnknown,
         bounded ? "" : "the control group has no limit of memory"});
    readings.push_back(memory_used());
    const bool quota = limits.processors < std::numeric_limits<double>::infinity();
    readings.push_back({"group.cpu.limit", "", quota ? limits.processors : kUnknown,
                        quota ? "" : "the control group has no limit of processors"});
    readings.push_back(throttled());
    readings.push_back(unified_ ? pressure("group.pressure.memory", memory_ + "/memory.pressure")
                                : SensorReading{"group.pressure.memory", "%", kUnknown,
                                                "control groups of version 1 do not tell"});
  }

 private:
  SensorReading memory_used() const {
    SensorReading reading{"group.memory.used", "MiB"};
    if (memory_.empty()) {
      reading.missing = "there is no control group of memory";
      return reading;
    }
    const std::string path = memory_ + (unified_ ? "/memory.current" : "/memory.usage_in_bytes");
    if (const auto bytes = parse_system_file(path, parse_count, reading.missing))
      reading.value = static_cast<double>(*bytes) / kBytesPerMib;
    return reading;
  }

  /// How long threads of the group were kept from running, since the first sample: sums over threads.
  SensorReading throttled() {
    SensorReading reading{"group.cpu.throttled", "s"};
    if (processors_.empty()) {
      reading.missing = "there is no control group of processors";
      return reading;
    }
    const KeyedFile file(processors_ + "/cpu.stat");
    const char* const key = unified_ ? "throttled_usec" : "throttled_time";
    if (const auto time = file(key, reading.missing)) {
      throttled_.add(*time, 0);
      reading.value = static_cast<double>(throttled_.total()) * (unified_ ? 1e-6 : 1e-9);
    }
    return reading;
  }

  std::string root_;
  std::string memory_;
  std::string processors_;
  bool unified_ = false;
  WrappingCounter throttled_;
};

}  // namespace

std::unique_ptr<SensorSource> memory_sensors(const SensorOptions& options) {
  return std::make_unique<MemorySensors>(options);
}
std::unique_ptr<SensorSource> group_sensors(const SensorOptions& options) {
  return std::make_unique<GroupSensors>(options);
}

}  // namespace fullbore
