#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/monitor/memory_growth.h"
#include "fullbore/monitor/sensor.h"

namespace fullbore {

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
};

/// A cause that was met, or is gone.
struct Alarm {
  std::string cause;   ///< "cpu temperature", "swap"
  bool raised = true;  ///< false: it has cleared
  double value = 0;
  double limit = 0;
  std::string unit;
  std::string message;  ///< a sentence for people
};

/// Looks at samples one after the other. A cause is told once when its limit is passed, and once when it has cleared,
/// which takes a reading clearly below the limit (5 degrees, a tenth, half of it, a minute of rest): what swings about a limit is one alarm.
/// What cannot be read raises nothing and clears nothing.
class AlarmWatch {
 public:
  explicit AlarmWatch(const AlarmLimits& limits);

  /// The alarms of this sample. `seconds`: its time, on the clock of the sensors.
  std::vector<Alarm> look(int64_t step, double seconds, const std::vector<SensorReading>& readings);

 private:
  struct Cause {
    bool raised = false;
    double since =
        std::numeric_limits<double>::quiet_NaN();  ///< of what must last, or of the last event
  };
  struct Sample;
  void judge(Cause& cause, std::string_view name, bool over, bool under, Alarm alarm);
  void look_at_heat(const Sample& sample);
  void look_at_power(const Sample& sample);
  void look_at_throttling(const Sample& sample);
  void look_at_threads(const Sample& sample);
  void look_at_swap(const Sample& sample);
  void look_at_disk(const Sample& sample);
  void look_at_growth(const Sample& sample);

  AlarmLimits limits_;
  std::vector<Alarm> told_;
  Cause cpu_heat_, gpu_heat_, power_, throttling_, threads_, swap_, disk_, growth_cause_;
  double last_throttled_ = std::numeric_limits<double>::quiet_NaN();
  struct FreeSpace {
    double seconds, mib;
  };
  std::vector<FreeSpace> free_;  ///< of the last minutes
  MemoryGrowth growth_;
};

}  // namespace fullbore
