#pragma once
#include <string>
#include <utility>
#include <vector>

namespace fullbore {

/// Where metrics go besides metrics.jsonl.
struct MetricSinkOptions {
  bool tensorboard = false;
  int prometheus_port = 0;      ///< of 127.0.0.1; 0: none
  std::string mlflow = {};      ///< "http://host:port" of a server; "": none
  std::string experiment = {};  ///< there, for this run
  /// Of the run, for MLflow: keys of the configuration with their values.
  std::vector<std::pair<std::string, std::string>> parameters = {};
};

}  // namespace fullbore
