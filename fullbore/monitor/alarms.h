#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/monitor/memory_growth.h"
#include "fullbore/monitor/sensor.h"

namespace fullbore {

/// A cause that was met, or is gone.
struct Alarm {
  std::string cause;   ///< "cpu temperature", "swap"
  bool raised = true;  ///< false: it has cleared
  double value = 0;
  double limit = 0;
  std::string unit;
  int64_t step = 0;
  double seconds = 0;   ///< on the clock of the sensors
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
    const char* name;
    bool raised = false;
  };
  struct Sample {
    int64_t step;
    double seconds;
    const std::vector<SensorReading>& readings;
    double value(std::string_view name) const;  ///< not a number: there is none
  };
  void look_at_heat(const Sample& sample);
  void look_at_power(const Sample& sample);
  void look_at_throttling(const Sample& sample);
  void look_at_threads(const Sample& sample);
  void look_at_swap(const Sample& sample);
  void look_at_disk(const Sample& sample);
  void look_at_growth(const Sample& sample);
  /// `over`: the limit is passed; `under`: clearly not. `words` are those of a raised alarm.
  void judge(Cause& cause, const Sample& sample, bool over, bool under, double value, double limit,
             const char* unit, const std::string& words);
  /// How much a counter has gone up since the last sample.
  double increase(std::string_view counter, const Sample& sample);

  AlarmLimits limits_;
  std::vector<Alarm> told_;
  Cause cpu_heat_{"cpu temperature"};
  Cause gpu_heat_{"gpu temperature"};
  Cause power_{"power"};
  Cause throttling_{"throttling"};
  Cause threads_{"oversubscription"};
  Cause swap_{"swap"};
  Cause disk_{"disk"};
  Cause growth_cause_{"memory growth"};

  std::map<std::string, double, std::less<>> counters_;
  double last_throttled_ = kUnknown;
  double first_seconds_ = kUnknown;
  double last_seconds_ = kUnknown;
  double mean_runnable_ = 0;  ///< of the last seconds, later ones counting more
  struct FreeSpace {
    double seconds, mib;
  };
  std::vector<FreeSpace> free_;  ///< of the last minutes
  MemoryGrowth growth_;

  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
};

}  // namespace fullbore
