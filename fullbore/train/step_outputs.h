#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fullbore/ir/graph.h"

namespace fullbore {

/// A metric that log lines tell as a share: "answer accuracy 58.0%".
struct ShownMetric {
  std::string name;   ///< of the loss
  std::string label;  ///< for people
};

/// What a step returned, by the names of the graph's results.
using StepResults = std::vector<std::pair<std::string, double>>;

/// Figures of the workload for the line about a step, from its results and the last validation loss (NaN: none yet).
using StepFigures = std::function<std::string(const StepResults& results, double validation_loss)>;

/// How much a run tells of its steps; each level includes those before it.
enum class Detail : uint8_t {
  off,               ///< no line of a step; the loss alone is measured
  info,              ///< a line every log.interval steps, of what log.metrics says
  debug_training,    ///< all that steps measure, in the log's lines too
  debug_performance  ///< and where their time and memory go, by components of the model
};
/// "off", "info", "debug-training", "debug-performance"; aborts on another.
Detail detail(std::string_view name);

/// How much a step tells: what is not wanted is no output any more, and so dead code that the passes
/// remove. `loss` and `skipped`, by which a run is steered, and `predictions`, of which rates are made,
/// always stay.
enum class MetricsLevel : uint8_t {
  loss,
  standard,  ///< and gradient_norm, learning_rate
  all
};
/// By the names above; aborts on another.
MetricsLevel metrics_level(std::string_view name);

/// The graph without the results that the level leaves out. State is updated as before.
Graph with_metrics(const Graph& graph, MetricsLevel level);

}  // namespace fullbore
