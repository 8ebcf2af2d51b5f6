#pragma once
#include <string>
#include <vector>

namespace fullbore {

/// A figure of evaluations that a kind of model is judged by: how much worse is still "no worse".
struct QualityMetric {
  std::string name;  ///< as the evaluation lines of metrics.jsonl have it: "loss"
  std::string unit;  ///< for people: "nats"; empty: a share or a ratio
  bool higher_is_better = false;
  double margin = 0;         ///< in its unit; positive
  bool is_relative = false;  ///< `margin` is a share of the baseline's figure
  std::string source;        ///< where the margin is from: "specification, section 6.2"
};

using QualityMetrics = std::vector<QualityMetric>;

}  // namespace fullbore
