#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace fullbore {

/// Which way a figure is good.
enum class Better : uint8_t {
  lower,   ///< a loss
  higher,  ///< an accuracy
  same,    ///< a balance: more and less are both worse
};
std::string better_name(Better better);  ///< "lower", "higher", "same"

/// How a figure follows from the number that is recorded.
enum class MetricScale : uint8_t {
  linear,       ///< it is that number
  exponential,  ///< e to its power: perplexity of a loss
  logarithmic,  ///< its natural logarithm: a ratio, of which twice and half are as far from one
};

/// A figure that a kind of model is judged by: how much worse is still "no worse". The margin is fixed before a comparison,
/// by who knows what matters; what a comparison finds never changes it.
struct QualityMetric {
  std::string name;       ///< "loss", "perplexity"; unique among a model's
  std::string unit = {};  ///< for people: "nats"; empty: a share or a ratio
  Better better = Better::lower;
  double margin = 0;  ///< positive; in its unit, or as `is_relative` says
  bool is_relative =
      false;  ///< `margin` is a share of the baseline's figure, which must be positive
  std::string source = {};  ///< where the margin is from, for people: "specification, section 6.2"
  std::string recorded =
      {};  ///< the metric of the loss (step_function.h) that tells it; empty: `name`
  MetricScale scale = MetricScale::linear;
  /// Of the lines about training steps, in place of evaluations: for what evaluations cannot tell, such as gradients.
  bool is_of_training = false;

  /// As metrics.jsonl has it: "validation_loss", or "reward" of training steps.
  std::string key() const;
};
using QualityMetrics = std::vector<QualityMetric>;

/// The figure of what is recorded; not finite where that is not, or has no logarithm.
double scaled(const QualityMetric& metric, double recorded);

/// The figure that one line of metrics.jsonl tells; none where it is another kind of line or lacks the metric. NaN where it
/// is there and is no number.
std::optional<double> quality_of_line(const QualityMetric& metric,
                                      const nlohmann::ordered_json& line);

/// What declares a margin must be able to decide by it: UsageError names a metric that is declared twice, a margin that is
/// not positive and finite, or a relative one of a metric whose scale is logarithmic.
void check_quality(const QualityMetrics& metrics);

}  // namespace fullbore
