#pragma once
#include <optional>
#include <string>
#include <vector>

#include "fullbore/base/result.h"
#include "fullbore/monitor/sensor_options.h"

namespace fullbore {

/// How one of NVIDIA's devices is set, as its driver's management library tells it. Empty: the device does not say.
struct CardSettings {
  unsigned index =
      0;  ///< as `nvidia-smi -i` takes it: by bus, which CUDA's numbers need not follow
  std::string name;
  std::optional<unsigned> clock_mhz, most_clock_mhz;  ///< of its multiprocessors, now and at most
  std::optional<unsigned> memory_mhz, most_memory_mhz;
  std::optional<bool> persistence;
  std::optional<double> limit_watts, most_watts;  ///< the power limit in force, and the highest one
  /// Why clocks are not at their highest at this moment: "heat", "power limit", "idle"; empty: nothing holds them down.
  std::optional<std::vector<std::string>> held_by;

  /// "clocks 1410 of 1980 MHz", one text for each thing that is known.
  std::vector<std::string> texts() const;
  /// Commands that would change something, each with its effect: "sudo nvidia-smi -i 0 -pm 1: ...". None is run.
  std::vector<std::string> commands() const;
};

/// All devices; reads only. Failure: there is no library of the driver, or it refuses, with the reason.
Result<std::vector<CardSettings>> read_card_settings(
    const SensorOptions& options = SensorOptions::from_environment());

}  // namespace fullbore
