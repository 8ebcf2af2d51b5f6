#pragma once
#include <cstdint>
#include <limits>
#include <string>

#include "fullbore/base/result.h"

namespace fullbore {

/// What the sensors of a run say of all of it. Not a number: no such sensor, or no sample.
struct SensorSummary {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  double utilisation =
      kUnknown;  ///< mean, in [0, 1]: of the devices; without any, of the processors by this process
  double device_utilisation = kUnknown;  ///< mean over the devices alone, in [0, 1]
  double watts =
      kUnknown;  ///< mean power of processors, their memory and devices: those that have a sensor
  double joules = kUnknown;           ///< their energy over the run
  double joules_per_step = kUnknown;  ///< over the steps made while it was measured
  double highest_celsius = kUnknown;  ///< of processors and devices
  double clock_mhz = kUnknown;        ///< mean: of the devices; without any, of the processors
  double throttled =
      kUnknown;  ///< 1: some processor or device was slowed down, by heat or a limit; 0: none was
  double device_mib = kUnknown;  ///< largest memory in use on all devices together
  int64_t samples = 0;
  int64_t steps = 0;  ///< made between first and last sample
};

/// Of sensors.csv in the folder of a run, and sensors-2.csv, ... where its hardware changed. Samples before
/// `first_step` are left out. A run without such a file has a summary of no samples. Failure: a file cannot be read, or
/// is none of ours.
Result<SensorSummary> summarize_sensors(const std::string& run_folder, int64_t first_step = 0);

}  // namespace fullbore
