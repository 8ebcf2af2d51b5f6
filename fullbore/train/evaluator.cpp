#include "fullbore/train/evaluator.h"

#include <utility>

#include "fullbore/base/check.h"

namespace fullbore {

// No worker threads for the batches: they are few and small, and the next run is seldom near.
Evaluator::Evaluator(const LossFunction& loss, ValidationSet set, State& state, Team& team,
                     const CompileOptions& options, Weights weights, std::shared_ptr<Arena> arena)
    : set_(std::move(set)), loader_(set_.source, {.workers = 0, .prefetch = 1}) {
  FB_CHECK(set_.batches > 0, "an empty validation set");
  if (!arena) arena = std::make_shared<Arena>();
  for (const std::vector<BatchField>& shape : set_.source->shapes())
    programs_.push_back(Program::compile(trace_evaluation(loss, shape, weights).graph, state, team,
                                         options, nullptr, arena));
}

std::vector<const Plan*> Evaluator::plans() const {
  std::vector<const Plan*> plans;
  for (const Program& program : programs_) plans.push_back(&program.plan());
  return plans;
}

std::optional<Evaluation> Evaluator::evaluate(const std::function<bool(uint64_t done)>& go_on) {
  double sum = 0;
  double predictions = 0;
  loader_.seek(0);
  for (uint64_t position = 0; position < set_.batches; ++position) {
    if (!go_on(position)) return std::nullopt;
    Program& program = programs_[set_.source->shape_at(position)];
    program.run(loader_.next());
    const bool tells = program.plan().graph.find_output("predictions") >= 0;
    const double weight = tells ? program.scalar("predictions") : 1;
    sum += program.scalar("loss") * weight;
    predictions += weight;
  }
  return Evaluation{sum / predictions, predictions};
}

}  // namespace fullbore
