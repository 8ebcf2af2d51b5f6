#include "fullbore/lab/ablation/energy_meter.h"

#include <cmath>
#include <limits>

#include "fullbore/device/automatic_device.h"

namespace fullbore {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// With their memory's, which not all machines count; NaN where there is no sensor.
double processor_joules(const std::vector<SensorReading>& readings) {
  double processors = kUnknown, memory = 0;
  for (const SensorReading& reading : readings) {
    if (reading.name == "cpu.energy") processors = reading.value;
    if (reading.name == "memory.energy" && std::isfinite(reading.value)) memory = reading.value;
  }
  return processors + memory;
}

}  // namespace

bool is_on_card(const std::string& device) { return resolved_device(device).starts_with("cuda"); }

EnergyMeter::EnergyMeter(bool counts_cards, const SensorOptions& options)
    : sensors_(options), counts_cards_(counts_cards), begin_(std::chrono::steady_clock::now()) {
  if (counts_cards_) counts_processors_ = std::isfinite(processor_joules(read()));
  joules();
}

double EnergyMeter::joules() {
  const std::vector<SensorReading> readings = read();
  const double processors = counts_processors_ ? processor_joules(readings) : 0;
  counted_ = counts_processors_ ? "processors and memory" : "";
  missing_ = "this device has no counter of energy";
  double cards = kUnknown;
  for (const SensorReading& reading : readings) {
    const bool is_card = reading.name.starts_with("gpu");
    const bool is_energy = reading.name.ends_with(".energy");
    if (is_card && is_energy && std::isfinite(reading.value))
      cards = std::isfinite(cards) ? cards + reading.value : reading.value;
    // Without any card, "gpu" says why.
    if (counts_cards_ ? is_card && (is_energy || reading.name == "gpu")
                      : reading.name == "cpu.energy")
      missing_ = reading.missing;
  }
  if (!counts_cards_) return processors;
  if (std::isfinite(cards)) missing_.clear();
  counted_ += counts_processors_ ? " and cards" : "cards alone";
  return processors + cards;
}

std::vector<SensorReading> EnergyMeter::read() {
  const std::chrono::duration<double> now = std::chrono::steady_clock::now() - begin_;
  return sensors_.read(now.count());
}

}  // namespace fullbore
