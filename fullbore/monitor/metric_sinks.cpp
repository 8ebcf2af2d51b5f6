#include "fullbore/monitor/metric_sinks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace fullbore {
namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

Status MetricSinks::open(const MetricSinkOptions& options, const std::string& event_folder,
                         const std::string& run, int64_t step) {
  if (options.tensorboard) {
    Result<EventFile> events = EventFile::create(event_folder, seconds_since_1970());
    if (!events.ok()) return Failure{events.error()};
    events_.emplace(std::move(events).value());
    if (step > 0)
      if (Status restarted = events_->restart(step + 1, seconds_since_1970()); !restarted.ok())
        return restarted;
  }
  if (options.prometheus_port > 0) {
    auto endpoint = PrometheusEndpoint::open(options.prometheus_port, run);
    if (!endpoint.ok()) return Failure{endpoint.error()};
    prometheus_ = std::move(endpoint).value();
  }
  if (!options.mlflow.empty()) {
    auto client = MlflowClient::open({.url = options.mlflow,
                                      .experiment = options.experiment,
                                      .name = run,
                                      .parameters = options.parameters});
    if (!client.ok()) return Failure{"log.mlflow: " + client.error()};
    mlflow_ = std::move(client).value();
  }
  return success();
}

Status MetricSinks::write(const nlohmann::ordered_json& record) {
  if (!events_ && !prometheus_ && !mlflow_) return success();
  const std::string kind = record.at("kind").get<std::string>();
  if (kind == "alarm") {
    if (prometheus_)
      prometheus_->set("alarm_" + record.at("cause").get<std::string>(),
                       record.at("raised").get<bool>() ? 1 : 0, "1 while the alarm lasts");
    return success();
  }
  std::vector<std::pair<std::string, double>> scalars;
  for (const auto& [name, value] : record.items())
    if (value.is_number() && name != "step") scalars.emplace_back(name, value.get<double>());
  const auto step = record.at("step").get<int64_t>();
  if (prometheus_) {
    prometheus_->set("step", static_cast<double>(step), "of the last record");
    for (const auto& [name, value] : scalars)
      prometheus_->set(kind + "_" + name, value, fmt::format("{} of {} records", name, kind));
  }
  for (auto& [name, value] : scalars) {
    name = kind + "/" + name;
    if (mlflow_) mlflow_->add(name, value, step);
  }
  return events_ ? events_->write(step, seconds_since_1970(), scalars) : success();
}

void MetricSinks::write_sensors(const std::vector<SensorReading>& readings) {
  if (!prometheus_) return;
  struct Unit {
    std::string_view ours, suffix;
    double factor;
  };
  // OpenMetrics has base units.
  static constexpr Unit kUnits[] = {
      {"%", "ratio", 0.01},  {"W", "watts", 1},         {"J", "joules", 1}, {"C", "celsius", 1},
      {"MHz", "hertz", 1e6}, {"MiB", "bytes", 1048576}, {"s", "seconds", 1}};
  for (const SensorReading& reading : readings) {
    if (!reading.missing.empty()) continue;
    const auto unit = std::ranges::find(kUnits, reading.unit, &Unit::ours);
    const bool has_unit = unit != std::end(kUnits);
    prometheus_->set(fmt::format("sensor_{}{}{}", reading.name, has_unit ? "_" : "",
                                 has_unit ? unit->suffix : ""),
                     reading.value * (has_unit ? unit->factor : 1),
                     reading.name + " of sensors.csv");
  }
}

void MetricSinks::finish(const std::string& status) {
  if (!mlflow_) return;
  mlflow_->finish(status == "completed" ? "FINISHED" : status == "failed" ? "FAILED" : "KILLED");
}

std::vector<std::string> MetricSinks::take_notices() {
  return mlflow_ ? mlflow_->take_notices() : std::vector<std::string>();
}

}  // namespace fullbore
