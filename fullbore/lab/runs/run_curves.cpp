#include "fullbore/lab/runs/run_curves.h"

#include <algorithm>
#include <cmath>

#include "fullbore/monitor/json_line_reader.h"

namespace fullbore {
namespace {

double number(const nlohmann::ordered_json& record, const char* name, double otherwise) {
  const auto found = record.find(name);
  return found != record.end() && found->is_number() ? found->get<double>() : otherwise;
}

/// Seconds are counted anew from each start of the run.
class RunTime {
 public:
  double at(double seconds) {
    if (seconds < last_) before_ += last_;
    last_ = seconds;
    return before_ + seconds;
  }

 private:
  double last_ = 0, before_ = 0;
};

}  // namespace

std::vector<std::string> RunCurves::names() const {
  std::vector<std::string> all;
  all.reserve(curves.size());
  for (const auto& [name, points] : curves) all.push_back(name);
  return all;
}

Result<RunCurves> read_run_curves(const std::string& run) {
  Result<JsonLineReader> opened = JsonLineReader::open(run + "/metrics.jsonl");
  if (!opened.ok()) return Failure{opened.error()};
  JsonLineReader reader = std::move(opened).value();
  RunCurves result;
  RunTime time;
  for (;;) {
    const Result<bool> more = reader.next();
    if (!more.ok()) return Failure{more.error()};
    if (!more.value()) break;
    const nlohmann::ordered_json& record = reader.record();
    const double step = number(record, "step", std::nan(""));
    if (std::isnan(step)) continue;
    const double seconds = time.at(std::max(0.0, number(record, "seconds", 0)));
    for (const auto& [name, value] : record.items()) {
      if (name == "step" || name == "seconds") continue;
      // What is not finite is null in JSON: the curve is broken there.
      if (value.is_number() || value.is_null())
        result.curves[name].push_back(
            {step, seconds, value.is_null() ? std::nan("") : value.get<double>()});
    }
  }
  result.problems = reader.problems();
  return result;
}

ChartCurve chart_curve(const RunCurves& run, const std::string& metric, const std::string& name,
                       CurveAxis axis, double smooth) {
  ChartCurve curve;
  curve.name = name;
  const auto found = run.curves.find(metric);
  if (found == run.curves.end()) return curve;
  const double keep = smooth > 0 ? std::exp2(-1 / smooth) : 0;
  double sum = 0, weight = 0;
  for (const RunCurves::Point& point : found->second) {
    double value = point.value;
    if (std::isfinite(value)) {
      sum = keep * sum + value;
      weight = keep * weight + 1;
      value = sum / weight;
    }
    curve.points.emplace_back(axis == CurveAxis::step ? point.step : point.seconds, value);
  }
  return curve;
}

}  // namespace fullbore
