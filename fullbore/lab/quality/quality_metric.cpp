#include "fullbore/lab/quality/quality_metric.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "fullbore/base/error.h"

namespace fullbore {

std::string better_name(Better better) {
  if (better == Better::lower) return "lower";
  return better == Better::higher ? "higher" : "same";
}

std::string QualityMetric::key() const {
  const std::string& own = recorded.empty() ? name : recorded;
  return is_of_training ? own : "validation_" + own;
}

double scaled(const QualityMetric& metric, double recorded) {
  switch (metric.scale) {
    case MetricScale::linear: return recorded;
    case MetricScale::exponential: return std::exp(recorded);
    case MetricScale::logarithmic: return std::log(recorded);
  }
  return recorded;
}

std::optional<double> quality_of_line(const QualityMetric& metric,
                                      const nlohmann::ordered_json& line) {
  const auto kind = line.find("kind");
  if (kind == line.end() || *kind != (metric.is_of_training ? "train" : "evaluation")) return {};
  const auto found = line.find(metric.key());
  if (found == line.end()) return {};
  if (!found->is_number()) return std::numeric_limits<double>::quiet_NaN();
  return scaled(metric, found->get<double>());
}

void check_quality(const QualityMetrics& metrics) {
  std::set<std::string> names;
  for (const QualityMetric& metric : metrics) {
    if (!names.insert(metric.name).second)
      throw UsageError(fmt::format("the metric '{}' is declared twice", metric.name));
    if (!(metric.margin > 0) || !std::isfinite(metric.margin))
      throw UsageError(fmt::format("the margin of '{}' is {}; a positive number was expected",
                                   metric.name, metric.margin));
    if (metric.is_relative &&
        (metric.scale == MetricScale::logarithmic || metric.better == Better::same))
      throw UsageError(fmt::format(
          "the margin of '{}' is relative; a logarithm, or a balance, takes an absolute one",
          metric.name));
  }
}

}  // namespace fullbore
