#include "fullbore/train/step_function.h"

#include <fmt/format.h>

#include <bit>

#include "fullbore/base/error.h"

namespace fullbore {
namespace {

Tensor trace_loss(Trace& trace, const LossFunction& loss, const std::vector<BatchField>& fields) {
  std::vector<Tensor> batch;
  for (const BatchField& field : fields) batch.push_back(trace.batch(field.name, field.type));
  const Tensor value = loss(trace, batch);
  if (value.rank() != 0 || !is_floating(value.dtype()))
    throw UsageError(
        fmt::format("a step's loss must be a floating scalar, this is {}", value.type().text()));
  return value;
}

TracedStep finish(Trace& trace) {
  std::map<std::string, Initializer> initializers = trace.initializers();
  return {trace.finish(), std::move(initializers)};
}

}  // namespace

TracedStep trace_training_step(const LossFunction& loss, const std::vector<BatchField>& fields,
                               const AdamWOptions& optimizer) {
  Trace trace("train", true);
  const Tensor value = trace_loss(trace, loss, fields);
  const OptimizerResult update = adamw(trace, value, optimizer);
  trace.result("loss", cast(value, DType::f32));
  trace.result("gradient_norm", update.gradient_norm);
  trace.result("learning_rate", update.learning_rate);
  return finish(trace);
}

TracedStep trace_evaluation(const LossFunction& loss, const std::vector<BatchField>& fields) {
  Trace trace("evaluate", false);
  trace.result("loss", cast(trace_loss(trace, loss, fields), DType::f32));
  return finish(trace);
}

State initial_state(const TracedStep& step, uint64_t seed) {
  State state(state_entries(step.graph));
  for (size_t i = 0; i < state.entries().size(); ++i) {
    const StateEntry& entry = state.entries()[i];
    initialize(step.initializers.at(entry.name), entry.type, seed, entry.name,
               state.data(static_cast<int>(i)));
  }
  if (state.find("random.seed") >= 0)
    state.span<int64_t>("random.seed")[0] = std::bit_cast<int64_t>(seed);
  return state;
}

}  // namespace fullbore
