#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "fullbore/base/result.h"
#include "fullbore/monitor/event_file.h"
#include "fullbore/monitor/prometheus.h"

namespace fullbore {

struct MetricSinkOptions {
  bool tensorboard = false;
  int prometheus_port = 0;  ///< of 127.0.0.1; 0: none
};

/// Where metrics go besides metrics.jsonl. Each number of a record becomes the curve
/// "<kind>/<name>" and the gauge "<kind>_<name>".
class MetricSinks {
 public:
  /// `step`: where the run goes on from; 0 at its start.
  Status open(const MetricSinkOptions& options, const std::string& event_folder,
              const std::string& run, int64_t step);
  int port() const { return prometheus_ ? prometheus_->port() : 0; }
  /// A line of metrics.jsonl: kind, step, and what else there is.
  Status write(const nlohmann::ordered_json& record);

 private:
  std::optional<EventFile> events_;
  std::unique_ptr<PrometheusEndpoint> prometheus_;
};

}  // namespace fullbore
