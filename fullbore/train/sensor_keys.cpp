#include "fullbore/train/sensor_keys.h"

#include <fmt/format.h>

#include "fullbore/base/error.h"
#include "fullbore/monitor/http_client.h"
#include "fullbore/train/config_keys.h"

namespace fullbore {
namespace {

// An alarm is switched off by 0.
constexpr ConfigRange kCelsius{.low = 0, .high = 200};
constexpr ConfigRange kAmount{.low = 0, .high = 1e9};
constexpr ConfigRange kInterval{.low = 0.1, .high = 3600};

#define FB_KEY(section, name, member) \
#section "." #name,                 \
      [](Config & config) -> ConfigPlace { return &config.get<SensorKeys>().section.member; }

std::vector<ConfigField> fields() {
  return {
      {FB_KEY(log, mlflow, mlflow),
       {},
       {},
       "send metrics to the MLflow server at this address, http://host:port; \"\": to none"},
      {FB_KEY(log, mlflow_experiment, mlflow_experiment),
       {},
       {},
       "of that server, for the run; is made where there is none"},
      {FB_KEY(sensors, log, log),
       {},
       {},
       "sample power, temperature, load and memory into sensors.csv"},
      {FB_KEY(sensors, interval_seconds, interval_seconds),
       kInterval,
       {},
       "between two samples of sensors"},
      {FB_KEY(alarms, cpu_celsius, cpu_celsius),
       kCelsius,
       {},
       "warn of hotter processors; 0: never"},
      {FB_KEY(alarms, gpu_celsius, gpu_celsius), kCelsius, {}, "warn of hotter devices; 0: never"},
      {FB_KEY(alarms, watts, watts),
       kAmount,
       {},
       "warn of more power of processors and devices together; 0: never"},
      {FB_KEY(alarms, throttling, throttling),
       {},
       {},
       "warn where heat, a limit of power or a quota slows the run down"},
      {FB_KEY(alarms, oversubscription_seconds, oversubscribed_seconds),
       kAmount,
       {},
       "warn of more threads that could run than processors, on average of so long; 0: never"},
      {FB_KEY(alarms, swap_mib, swap_mib),
       kAmount,
       {},
       "warn of so much of the run that is swapped out; 0: never"},
      {FB_KEY(alarms, disk_hours, disk_hours),
       kAmount,
       {},
       "warn of a disk that is full so soon, at the rate of the last minutes; 0: never"},
      {FB_KEY(alarms, memory_growth_mib, growth_mib),
       kAmount,
       {},
       "warn of resident memory that grows by so much in 1,000 steps; 0: never"},
  };
}

#undef FB_KEY

void check(const ConfigCheck& check) {
  const SensorKeys::Log& log = check.config().get<SensorKeys>().log;
  if (log.mlflow.empty()) return;
  if (const Result<HttpAddress> address = HttpAddress::parse(log.mlflow); !address.ok())
    throw UsageError(
        fmt::format("config: log.mlflow ({}): {}", check.origin("log.mlflow"), address.error()));
  if (log.mlflow_experiment.empty())
    throw UsageError(
        fmt::format("config: {} names no experiment", check.with_origin("log.mlflow_experiment")));
}

const bool kRegistered = [] {
  register_config_keys({.name = "sensors", .is_common = true, .fields = fields, .check = check});
  return true;
}();

}  // namespace

SensorLogOptions sensor_options(const Config& config) {
  const auto& keys = config.get<SensorKeys>();
  return {.enabled = keys.sensors.log,
          .interval_seconds = keys.sensors.interval_seconds,
          .alarms = keys.alarms};
}

MetricSinkOptions metric_sink_options(const Config& config) {
  const SensorKeys::Log& log = config.get<SensorKeys>().log;
  MetricSinkOptions options{.tensorboard = config.log.tensorboard,
                            .prometheus_port = static_cast<int>(config.log.prometheus_port),
                            .mlflow = log.mlflow,
                            .experiment = log.mlflow_experiment};
  if (log.mlflow.empty()) return options;
  for (const ConfigField& field : config_fields())
    if (field.is_for(config)) options.parameters.emplace_back(field.key, value_yaml(field, config));
  return options;
}

}  // namespace fullbore
