#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "fullbore/base/result.h"

namespace fullbore {

/// Gauges "fullbore_<name>{run="..."} <value>", each with its type, its unit where the name ends with one, and a word
/// of help. Served over HTTP at http://127.0.0.1:<port>/metrics and nowhere else: no other machine can reach it. Who
/// asks for OpenMetrics (version 1.0.0) gets that, and others Prometheus' text format (0.0.4): the lines are the same.
/// Source: https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md
class PrometheusEndpoint {
 public:
  /// Port 0: any that is free. Failure: the port is taken, or the system refuses a
  /// thread.
  static Result<std::unique_ptr<PrometheusEndpoint>> open(int port, const std::string& run);
  ~PrometheusEndpoint();
  PrometheusEndpoint(const PrometheusEndpoint&) = delete;
  PrometheusEndpoint& operator=(const PrometheusEndpoint&) = delete;

  int port() const { return port_; }
  /// From now on the gauge has this value. Letters, digits and '_' of the name stay, the rest
  /// becomes '_'. A name that ends with a unit ("_seconds", "_bytes", "_watts", "_celsius", ...) says it. `help`: what it
  /// is, for people.
  void set(const std::string& name, double value, const std::string& help = "");
  std::string text() const;  ///< what is served

 private:
  PrometheusEndpoint(int socket, int port, std::string run);
  Status start();
  void serve();
  void answer(int connection) const;

  int socket_;
  int port_;
  std::string run_;
  mutable std::mutex mutex_;  ///< guards gauges_
  struct Gauge {
    double value = 0;
    std::string help = {};
  };
  std::map<std::string, Gauge> gauges_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace fullbore
