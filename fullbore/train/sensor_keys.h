#pragma once
#include <string>

#include "fullbore/monitor/metric_sink_options.h"
#include "fullbore/monitor/sensor_options.h"

namespace fullbore {

struct Config;

/// Keys of what watches over a run: the sections sensors and alarms, and where metrics go besides.
struct SensorKeys {
  struct Log {
    std::string mlflow;
    std::string mlflow_experiment = "fullbore";
    bool operator==(const Log&) const = default;
  } log;
  struct Sensors {
    bool log = true;
    double interval_seconds = 1;
    bool operator==(const Sensors&) const = default;
  } sensors;
  AlarmLimits alarms;
  bool operator==(const SensorKeys&) const = default;
};

SensorLogOptions sensor_options(const Config& config);
/// Of section log, with the configuration's keys and values as parameters.
MetricSinkOptions metric_sink_options(const Config& config);

}  // namespace fullbore
