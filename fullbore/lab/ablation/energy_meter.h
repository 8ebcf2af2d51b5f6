#pragma once
#include <chrono>
#include <string>

#include "fullbore/monitor/sensor.h"

namespace fullbore {

/// What the processors and their memory have taken since it began, where the machine counts it (RAPL).
class EnergyMeter {
 public:
  explicit EnergyMeter(const SensorOptions& options = SensorOptions::from_environment());

  /// Joules; NaN where there is no sensor, or it has vanished.
  double joules();
  /// Why there is none: the permission or the hardware that it takes. "" where there is one.
  const std::string& missing() const { return missing_; }

 private:
  Sensors sensors_;
  std::string missing_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace fullbore
