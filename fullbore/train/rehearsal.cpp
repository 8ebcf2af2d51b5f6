#include "fullbore/train/rehearsal.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/train/frozen.h"
#include "fullbore/train/microbatches.h"
#include "fullbore/train/updated_state.h"

namespace fullbore {
namespace {

// The names of what the model updates in a microbatch, which hands it on to the next one; nothing else can be.
std::vector<std::string> handed_on(const LossFunction& loss, const std::vector<BatchField>& fields,
                                   const Microbatches& counts) {
  const UpdatedState updated = updated_state(loss, fields);
  if (updated.others)
    throw UsageError(
        "a batch in microbatches: the model updates State or reports results of its own, which a "
        "microbatch has no place for");
  if (counts.parallel > 1 && !updated.names.empty())
    throw UsageError(
        fmt::format("a batch in {} microbatches side by side: the model updates State with each "
                    "('{}'), which only one after another can do: give engine.accumulate alone, "
                    "with engine.parallel_microbatches=1. Statistics are then of each microbatch",
                    counts.parallel, updated.names.front()));
  return updated.names;
}

}  // namespace

Rehearsal declare_state(Trace& trace, const LossFunction& loss,
                        const std::vector<BatchField>& fields, const Microbatches& counts) {
  Trace rehearsal("rehearsal", trace.training());
  std::vector<Tensor> batch;
  for (const BatchField& field : fields) batch.push_back(rehearsal.batch(field.name, field.type));
  Loss value = checked_loss(loss(rehearsal, batch));
  std::vector<bool> dead = dead_terms(rehearsal, value);
  value = without_terms(value, dead);
  Rehearsal result{
      value.terms.size(), std::move(dead), value.dead, value.predictions.valid(), {}, {}};
  for (const Metric& metric : value.metrics)
    result.metrics.push_back({.name = metric.name, .mean = {}, .largest = metric.largest});
  std::vector<std::string> updated;
  if (rehearsal.has_outputs() || !value.carried.empty()) updated = handed_on(loss, fields, counts);
  const Graph& graph = rehearsal.builder().graph();
  for (const Graph::Input& input : graph.inputs()) {
    if (!is_state(input.role)) continue;
    const Tensor state = trace.state(input.name, input.role, graph.type(input.value),
                                     rehearsal.initializers().at(input.name));
    if (std::ranges::find(updated, input.name) != updated.end())
      result.updated.push_back({input.name, state});
  }
  return result;
}

}  // namespace fullbore
