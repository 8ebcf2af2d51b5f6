#include "fullbore/train/evaluator.h"

#include <utility>

#include "fullbore/base/check.h"

namespace fullbore {

// No worker threads for the batches: they are few and small, and the next run is seldom near.
Evaluator::Evaluator(const LossFunction& loss, ValidationSet set, State& state, Team& team,
                     const CompileOptions& options, Weights weights)
    : set_(std::move(set)),
      program_(Program::compile(trace_evaluation(loss, set_.source->fields(), weights).graph, state,
                                team, options)),
      loader_(set_.source, {.workers = 0, .prefetch = 1}),
      loss_output_(program_.output("loss")) {
  FB_CHECK(set_.batches > 0, "an empty validation set");
}

std::optional<double> Evaluator::evaluate(const std::function<bool(uint64_t done)>& go_on) {
  double sum = 0;
  int64_t predictions = 0;
  loader_.seek(0);
  for (uint64_t position = 0; position < set_.batches; ++position) {
    if (!go_on(position)) return std::nullopt;
    program_.run(loader_.next());
    const double mean = double{*static_cast<const float*>(program_.result(loss_output_))};
    sum += mean * static_cast<double>(set_.rows);
    predictions += set_.predictions(position);
  }
  return sum / static_cast<double>(predictions);
}

}  // namespace fullbore
