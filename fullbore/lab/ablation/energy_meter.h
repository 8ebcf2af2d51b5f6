#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "fullbore/monitor/sensor.h"

namespace fullbore {

/// Does a job with this engine.device run on a card of NVIDIA's?
bool is_on_card(const std::string& device);

/// What the processors and their memory have taken since it began, where the machine counts it (RAPL), and NVIDIA's cards
/// (NVML) where a job runs on one of them: all of them together, for the driver numbers them otherwise than CUDA.
class EnergyMeter {
 public:
  explicit EnergyMeter(bool counts_cards,
                       const SensorOptions& options = SensorOptions::from_environment());

  /// Joules; NaN where there is no sensor of what does the work, or it has vanished. A card's are told without those of
  /// processors that nobody may read.
  double joules();
  /// Why there is none: the permission or the hardware that it takes. "" where there is one.
  const std::string& missing() const { return missing_; }
  /// What is counted, for people: "processors and memory", "cards alone".
  const std::string& counted() const { return counted_; }

 private:
  std::vector<SensorReading> read();

  Sensors sensors_;
  bool counts_cards_;
  bool counts_processors_ = true;  ///< from beginning to end: what vanishes is no saving
  std::string missing_;
  std::string counted_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace fullbore
