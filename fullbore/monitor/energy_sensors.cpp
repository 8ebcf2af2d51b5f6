#include <fmt/format.h>

#include <limits>

#include "fullbore/base/files.h"
#include "fullbore/monitor/sensor_sources.h"
#include "fullbore/monitor/sensor_text.h"

namespace fullbore {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr double kJoulesPerMicrojoule = 1e-6;

/// An energy counter of RAPL: of a package, or of the memory beside one.
struct Zone {
  std::string counter;     ///< path
  std::string range_path;  ///< of the file that says where the counter goes round
  WrappingCounter energy = {};
};

/// Zones of one kind, such as all packages.
struct Zones {
  std::string name;  ///< "cpu"
  std::vector<Zone> zones = {};
  double last_seconds = kUnknown;
};

/// Power and energy by the Running Average Power Limit counters of Intel and AMD processors, through the powercap
/// class. They count microjoules up to max_energy_range_uj, a few minutes at full power, and go round.
/// Source: Linux, Documentation/power/powercap/powercap.rst.
class EnergySensors : public SensorSource {
 public:
  explicit EnergySensors(const SensorOptions& options)
      : folder_(options.root + "/sys/class/powercap") {
    for (const std::string& package : numbered_names(folder_, "intel-rapl:")) {
      // "psys" counts the packages once more, with all that is around them.
      if (zone_name(package).starts_with("package")) add(kinds_[0], package);
      for (const std::string& part : numbered_names(folder_, package + ":"))
        if (zone_name(part) == "dram") add(kinds_[1], part);
    }
  }

  void read(double seconds, std::vector<SensorReading>& readings) override {
    for (Zones& kind : kinds_) read(kind, seconds, readings);
  }

 private:
  std::string zone_name(const std::string& zone) const {
    const Result<std::string> name = read_system_file(fmt::format("{}/{}/name", folder_, zone));
    return name.ok() ? name.value().substr(0, name.value().find('\n')) : "";
  }
  void add(Zones& kind, const std::string& zone) const {
    kind.zones.push_back({fmt::format("{}/{}/energy_uj", folder_, zone),
                          fmt::format("{}/{}/max_energy_range_uj", folder_, zone)});
  }

  void read(Zones& kind, double seconds, std::vector<SensorReading>& readings) const {
    std::string missing;
    if (kind.zones.empty())
      missing = fmt::format(
          "{} has no counter of it: the processor or the hypervisor offers none, or the "
          "kernel's module intel_rapl_msr is not loaded",
          folder_);
    double counted = 0;
    double total = 0;
    bool is_rate = !kind.zones.empty();
    for (Zone& zone : kind.zones) {
      const auto range = parse_system_file(zone.range_path, parse_count, missing);
      const auto now = parse_system_file(zone.counter, parse_count, missing);
      if (!range || !now) break;
      const std::optional<int64_t> since = zone.energy.add(*now, *range);
      is_rate = is_rate && since.has_value();
      counted += static_cast<double>(since.value_or(0)) * kJoulesPerMicrojoule;
      total += static_cast<double>(zone.energy.total()) * kJoulesPerMicrojoule;
    }
    const double passed = seconds - kind.last_seconds;
    const bool has_power = missing.empty() && is_rate && passed > 0;
    readings.push_back(
        {kind.name + ".power.draw", "W", has_power ? counted / passed : kUnknown, missing});
    readings.push_back({kind.name + ".energy", "J", missing.empty() ? total : kUnknown, missing});
    // While a zone cannot be read its time adds up: the counter has gone on.
    if (missing.empty()) kind.last_seconds = seconds;
  }

  std::string folder_;
  Zones kinds_[2] = {{"cpu"}, {"memory"}};
};

/// Temperatures by the hwmon class, or by thermal zones where no driver of the processor is there.
/// Source: Linux, Documentation/hwmon/sysfs-interface.rst.
class TemperatureSensors : public SensorSource {
 public:
  explicit TemperatureSensors(const SensorOptions& options)
      : hwmon_(options.root + "/sys/class/hwmon"), thermal_(options.root + "/sys/class/thermal") {
    for (const std::string& chip : numbered_names(hwmon_, "hwmon"))
      if (is_processor(first_line(fmt::format("{}/{}/name", hwmon_, chip))))
        for (const std::string& file : system_files().list(fmt::format("{}/{}", hwmon_, chip)))
          if (file.starts_with("temp") && file.ends_with("_input"))
            files_.push_back(fmt::format("{}/{}/{}", hwmon_, chip, file));
    if (!files_.empty()) return;
    for (const std::string& zone : numbered_names(thermal_, "thermal_zone"))
      if (is_processor(first_line(fmt::format("{}/{}/type", thermal_, zone))))
        files_.push_back(fmt::format("{}/{}/temp", thermal_, zone));
  }

  /// The hottest of all cores and packages.
  void read(double, std::vector<SensorReading>& readings) override {
    SensorReading reading{"cpu.temperature", "C"};
    if (files_.empty())
      reading.missing = fmt::format(
          "neither {} nor {} knows the processor: its driver (coretemp, k10temp) is "
          "not loaded, or this is a virtual machine",
          hwmon_, thermal_);
    for (const std::string& file : files_) {
      const auto celsius = parse_system_file(file, parse_celsius, reading.missing);
      if (celsius && !(*celsius <= reading.value)) reading.value = *celsius;
    }
    if (reading.value == reading.value) reading.missing.clear();
    readings.push_back(std::move(reading));
  }

 private:
  static std::string first_line(const std::string& path) {
    const Result<std::string> text = read_system_file(path);
    return text.ok() ? text.value().substr(0, text.value().find('\n')) : "";
  }
  static bool is_processor(std::string_view driver) {
    for (const std::string_view known :
         {"coretemp", "k10temp", "zenpower", "k8temp", "via_cputemp", "cpu_thermal", "cpu-thermal",
          "x86_pkg_temp", "soc_thermal"})
      if (driver == known) return true;
    return false;
  }

  std::string hwmon_;
  std::string thermal_;
  std::vector<std::string> files_;
};

}  // namespace

std::unique_ptr<SensorSource> energy_sensors(const SensorOptions& options) {
  return std::make_unique<EnergySensors>(options);
}
std::unique_ptr<SensorSource> temperature_sensors(const SensorOptions& options) {
  return std::make_unique<TemperatureSensors>(options);
}

}  // namespace fullbore
