#pragma once
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "fullbore/monitor/sensor_options.h"

namespace fullbore {

/// One figure of the machine, of its devices, or of this process.
struct SensorReading {
  /// Parts from the whole to the figure, as nvidia-smi's --query-gpu has it: "gpu0.temperature.gpu".
  std::string name;
  /// "%", "W", "J", "C", "MHz", "MiB", "s"; "" for counts.
  std::string unit;
  /// Not a number: not known now. Where `missing` is empty it will be: a rate takes two samples.
  double value = std::numeric_limits<double>::quiet_NaN();
  /// Why there is no value, and what would do: the permission or the hardware that it takes. "" otherwise.
  std::string missing = {};

  /// "gpu0.temperature.gpu [C]": the column of sensors.csv.
  std::string title() const;
  bool operator==(const SensorReading& other) const = default;
};

/// A family of sensors that are read in one way.
class SensorSource {
 public:
  virtual ~SensorSource() = default;
  /// Appends readings: always as many, of the same names and units in the same order, whatever vanishes or comes back.
  /// `seconds`: now, on a clock that goes on. Rates and powers are of the time since the last call. Reads, and changes
  /// nothing of any device.
  virtual void read(double seconds, std::vector<SensorReading>& readings) = 0;
};

/// All sensors behind one interface. Energy and counts of events begin at zero with the object.
///
/// cpu.*      utilization (of all and of each processor), runnable threads, clock, throttling, temperature,
///            power and energy (RAPL)
/// memory.*, swap.*, pressure.*   of the machine (/proc/meminfo, /proc/pressure)
/// process.*  this process: utilization, resident and swapped memory, threads; other.* all others together
/// group.*    the control group: limits, use, throttling
/// disk.free  of the file system of the run
/// gpuN.*     each NVIDIA device (NVML)
///
/// Not for several threads at once.
class Sensors {
 public:
  explicit Sensors(const SensorOptions& options = SensorOptions::from_environment());
  ~Sensors();
  Sensors(const Sensors&) = delete;
  Sensors& operator=(const Sensors&) = delete;

  /// A sample; valid until the next.
  const std::vector<SensorReading>& read(double seconds);

 private:
  std::vector<std::unique_ptr<SensorSource>> sources_;
  std::vector<SensorReading> readings_;
};

}  // namespace fullbore
