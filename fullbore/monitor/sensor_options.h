#pragma once
#include <string>

namespace fullbore {

/// Where sensors are looked for.
struct SensorOptions {
  std::string root =
      {};  ///< put before every path of /sys and /proc, so that tests can give files of their own
  std::string nvml = "libnvidia-ml.so.1";  ///< of NVIDIA's driver, loaded where it is there
  std::string disk_folder = ".";           ///< the free space is that of its file system

  /// With FULLBORE_SENSOR_ROOT and FULLBORE_NVML of the environment, where these are set.
  static SensorOptions from_environment();
};

/// From where on a reading is an alarm. 0: no alarm of that kind.
struct AlarmLimits {
  double cpu_celsius = 95;
  double gpu_celsius = 85;
  double watts = 0;        ///< of processors and devices together
  bool throttling = true;  ///< a processor, a device or the control group is slowed down
  double oversubscribed_seconds = 30;  ///< with more threads that could run than processors
  double swap_mib = 64;                ///< of this process
  double disk_hours = 1;               ///< until the disk is full, at the rate of the last minutes
  double growth_mib = 64;              ///< of resident memory in 1,000 steps
  bool operator==(const AlarmLimits&) const = default;
};

/// What SensorLog does.
struct SensorLogOptions {
  bool enabled = false;
  double interval_seconds = 1;
  AlarmLimits alarms = {};
  SensorOptions sensors = SensorOptions::from_environment();
};

}  // namespace fullbore
