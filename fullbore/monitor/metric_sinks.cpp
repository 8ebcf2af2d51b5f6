#include "fullbore/monitor/metric_sinks.h"

#include <chrono>
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
  return success();
}

Status MetricSinks::write(const nlohmann::ordered_json& record) {
  if (!events_ && !prometheus_) return success();
  const std::string kind = record.at("kind").get<std::string>();
  std::vector<std::pair<std::string, double>> scalars;
  for (const auto& [name, value] : record.items())
    if (value.is_number() && name != "step") scalars.emplace_back(name, value.get<double>());
  const auto step = record.at("step").get<int64_t>();
  if (prometheus_) {
    prometheus_->set("step", static_cast<double>(step));
    for (const auto& [name, value] : scalars) prometheus_->set(kind + "_" + name, value);
  }
  if (!events_) return success();
  for (auto& [name, value] : scalars) name = kind + "/" + name;
  return events_->write(step, seconds_since_1970(), scalars);
}

}  // namespace fullbore
