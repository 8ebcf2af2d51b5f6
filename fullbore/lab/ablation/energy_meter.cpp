#include "fullbore/lab/ablation/energy_meter.h"

#include <cmath>
#include <limits>

namespace fullbore {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

}  // namespace

EnergyMeter::EnergyMeter(const SensorOptions& options)
    : sensors_(options), begin_(std::chrono::steady_clock::now()) {
  joules();
}

double EnergyMeter::joules() {
  const std::chrono::duration<double> now = std::chrono::steady_clock::now() - begin_;
  double processors = kUnknown;
  double memory = 0;  // not counted on all machines
  missing_ = "this device has no counter of energy";
  for (const SensorReading& reading : sensors_.read(now.count())) {
    if (reading.name == "memory.energy" && std::isfinite(reading.value)) memory = reading.value;
    if (reading.name != "cpu.energy") continue;
    processors = reading.value;
    missing_ = reading.missing;
  }
  return processors + memory;
}

}  // namespace fullbore
