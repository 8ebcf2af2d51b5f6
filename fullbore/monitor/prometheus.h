#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "fullbore/base/result.h"

namespace fullbore {

/// Gauges in Prometheus' text format (version 0.0.4), "fullbore_<name>{run="..."} <value>", served
/// over HTTP at http://127.0.0.1:<port>/metrics and nowhere else: no other machine can reach it.
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
  /// becomes '_'.
  void set(const std::string& name, double value);
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
  std::map<std::string, double> gauges_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace fullbore
