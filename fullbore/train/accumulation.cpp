#include "fullbore/train/accumulation.h"

#include <fmt/format.h>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/error.h"

namespace fullbore {
namespace {

/// While it lives, what the trace writes runs once per trip.
class TripScope {
 public:
  TripScope(Trace& trace, Tensor index) : trace_(trace) { trace_.set_trip(index); }
  ~TripScope() { trace_.set_trip({}); }
  TripScope(const TripScope&) = delete;
  TripScope& operator=(const TripScope&) = delete;

 private:
  Trace& trace_;
};

std::vector<BatchField> part_fields(const std::vector<BatchField>& fields, int64_t parts) {
  std::vector<BatchField> result = fields;
  const int64_t rows = fields.front().type.shape.rank() > 0 ? fields.front().type.shape[0] : 0;
  for (BatchField& field : result) {
    const Shape& shape = field.type.shape;
    if (shape.rank() == 0 || shape[0] != rows || rows == 0 || rows % parts != 0)
      throw UsageError(
          fmt::format("accumulation in {} parts needs a batch of a multiple of as many rows, along "
                      "the first axis of every field; '{}' is {}",
                      parts, field.name, field.type.text()));
    field.type.shape = shape.slice(1, shape.rank()).inserted(0, rows / parts);
  }
  return result;
}

// The loop's carried gradients must be there before its body asks for the parameters: the model is
// traced once for these alone.
void declare_state(Trace& trace, const LossFunction& loss, const std::vector<BatchField>& fields) {
  Trace rehearsal("rehearsal", trace.training());
  std::vector<Tensor> batch;
  for (const BatchField& field : fields) batch.push_back(rehearsal.batch(field.name, field.type));
  checked_loss(loss(rehearsal, batch));
  if (rehearsal.has_outputs())
    throw UsageError(
        "accumulation: the model updates State or reports results of its own, which a part of a "
        "batch "
        "has no place for");
  const Graph& graph = rehearsal.builder().graph();
  for (const Graph::Input& input : graph.inputs())
    if (is_state(input.role))
      trace.state(input.name, input.role, graph.type(input.value),
                  rehearsal.initializers().at(input.name));
}

std::vector<Tensor> cut(Trace& trace, const std::vector<BatchField>& fields,
                        const std::vector<BatchField>& parts, int64_t count) {
  std::vector<Tensor> batches;
  for (size_t i = 0; i < fields.size(); ++i)
    batches.push_back(reshape(trace.batch(fields[i].name, fields[i].type),
                              parts[i].type.shape.inserted(0, count)));
  return batches;
}

}  // namespace

Loss checked_loss(Loss loss) {
  if (loss.mean.rank() != 0 || !is_floating(loss.mean.dtype()))
    throw UsageError(fmt::format("a step's loss must be a floating scalar, this is {}",
                                 loss.mean.type().text()));
  if (loss.predictions.valid() && loss.predictions.rank() != 0)
    throw UsageError(fmt::format("the number of a loss's predictions must be a scalar, this is {}",
                                 loss.predictions.type().text()));
  return loss;
}

OptimizerResult optimize_in_parts(Trace& trace, const LossFunction& loss,
                                  const std::vector<BatchField>& fields, int64_t parts,
                                  const OptimizerOptions& options, Loss& whole) {
  const std::vector<BatchField> each = part_fields(fields, parts);
  declare_state(trace, loss, each);
  const std::vector<Tensor> batches = cut(trace, fields, each, parts);
  const auto differentiate = [&](Tensor scale) {
    std::vector<Tensor> parameters;
    std::vector<Tensor> carried;
    for (const Trace::Parameter& parameter : trace.parameters()) {
      parameters.push_back(parameter.tensor);
      carried.push_back(zeros_like(parameter.tensor));
    }
    const Tensor zero = full(trace.builder(), {DType::f32, {}}, 0);
    const Tensor one = full(trace.builder(), {DType::f32, {}}, 1);
    carried.insert(carried.end(), {zero, zero});  // sum of losses, predictions
    bool counts = false;
    const LoopResult sums =
        loop(trace.builder(), carried, batches, {.trips = parts}, [&](const LoopBody& body) {
          const TripScope trip(trace, body.index);
          const Loss part = checked_loss(loss(trace, body.slices));
          counts = part.predictions.valid();
          const Tensor weight = counts ? cast(part.predictions, DType::f32) : one;
          const Tensor sum = cast(part.mean, DType::f32) * weight;
          const std::vector<Tensor> gradients =
              gradient(scale.valid() ? sum * scale : sum, parameters);
          LoopStep next;
          for (size_t i = 0; i < gradients.size(); ++i)
            next.carried.push_back(body.carried[i] + gradients[i]);
          next.carried.push_back(body.carried[gradients.size()] + sum);
          next.carried.push_back(body.carried[gradients.size() + 1] + weight);
          return next;
        });
    const size_t count = parameters.size();
    const Tensor predictions = sums.carried[count + 1];
    whole.mean = sums.carried[count] / predictions;
    if (counts) whole.predictions = predictions;
    ScaledGradients result{whole.mean, {}};
    for (size_t i = 0; i < count; ++i) result.gradients.push_back(sums.carried[i] / predictions);
    return result;
  };
  return optimize_gradients(trace, differentiate, options);
}

}  // namespace fullbore
