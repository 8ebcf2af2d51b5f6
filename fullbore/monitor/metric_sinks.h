#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/base/result.h"
#include "fullbore/monitor/event_file.h"
#include "fullbore/monitor/metric_sink_options.h"
#include "fullbore/monitor/mlflow.h"
#include "fullbore/monitor/prometheus.h"
#include "fullbore/monitor/sensor.h"

namespace fullbore {

/// Where metrics go besides metrics.jsonl. Each number of a record becomes the curve
/// "<kind>/<name>", of TensorBoard and MLflow, and the gauge "<kind>_<name>". An alarm is the gauge "alarm_<cause>", 1
/// while it lasts; the others do not have it.
class MetricSinks {
 public:
  /// `step`: where the run goes on from; 0 at its start.
  Status open(const MetricSinkOptions& options, const std::string& event_folder,
              const std::string& run, int64_t step);
  int port() const { return prometheus_ ? prometheus_->port() : 0; }
  /// A line of metrics.jsonl: kind, step, and what else there is.
  Status write(const nlohmann::ordered_json& record);
  /// A sample of the sensors, as gauges "sensor_<name>_<unit>". From any thread.
  void write_sensors(const std::vector<SensorReading>& readings);
  /// The run has ended: "completed", "interrupted" or "failed". Waits a few seconds at most.
  void finish(const std::string& status);
  /// What the user should know of servers that do not take metrics, since the last call.
  std::vector<std::string> take_notices();

 private:
  std::optional<EventFile> events_;
  std::unique_ptr<PrometheusEndpoint> prometheus_;
  std::unique_ptr<MlflowClient> mlflow_;
};

}  // namespace fullbore
