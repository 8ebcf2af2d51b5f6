#include "fullbore/train/accumulation.h"

#include <fmt/format.h>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/check.h"
#include "fullbore/base/error.h"

namespace fullbore {
namespace {

std::vector<BatchField> part_fields(const std::vector<BatchField>& fields, int64_t parts) {
  std::vector<BatchField> result = fields;
  const int64_t rows = fields.front().type.shape.rank() > 0 ? fields.front().type.shape[0] : 0;
  for (BatchField& field : result) {
    const Shape& shape = field.type.shape;
    if (shape.rank() == 0) continue;  // of every part
    if (shape[0] != rows || rows == 0 || rows % parts != 0)
      throw UsageError(
          fmt::format("accumulation in {} parts needs a batch of a multiple of as many rows, along "
                      "the first axis of every field; '{}' is {}",
                      parts, field.name, field.type.text()));
    field.type.shape = shape.slice(1, shape.rank()).inserted(0, rows / parts);
  }
  return result;
}

// The loop's carried gradients must be there before its body asks for the parameters: the model is
// traced once for these alone. Returns the number of the loss's terms.
size_t declare_state(Trace& trace, const LossFunction& loss,
                     const std::vector<BatchField>& fields) {
  Trace rehearsal("rehearsal", trace.training());
  std::vector<Tensor> batch;
  for (const BatchField& field : fields) batch.push_back(rehearsal.batch(field.name, field.type));
  const Loss value = checked_loss(loss(rehearsal, batch));
  const size_t terms = value.terms.size();
  if (rehearsal.has_outputs() || !value.carried.empty())
    throw UsageError(
        "accumulation: the model updates State or reports results of its own, which a part of a "
        "batch "
        "has no place for");
  const Graph& graph = rehearsal.builder().graph();
  for (const Graph::Input& input : graph.inputs())
    if (is_state(input.role))
      trace.state(input.name, input.role, graph.type(input.value),
                  rehearsal.initializers().at(input.name));
  return terms;
}

/// The batch's tensors: those cut in parts, and scalars, which every part has.
struct CutBatch {
  std::vector<Tensor> parts;    ///< [count, ...]
  std::vector<Tensor> scalars;  ///< invalid where the field is cut
};

CutBatch cut(Trace& trace, const std::vector<BatchField>& fields,
             const std::vector<BatchField>& parts, int64_t count) {
  CutBatch result;
  for (size_t i = 0; i < fields.size(); ++i) {
    const Tensor whole = trace.batch(fields[i].name, fields[i].type);
    const bool scalar = whole.rank() == 0;
    result.scalars.push_back(scalar ? whole : Tensor());
    if (!scalar) result.parts.push_back(reshape(whole, parts[i].type.shape.inserted(0, count)));
  }
  return result;
}

std::vector<Tensor> part_of(const CutBatch& batch, const std::vector<Tensor>& slices) {
  std::vector<Tensor> part;
  size_t next = 0;
  for (const Tensor& scalar : batch.scalars)
    part.push_back(scalar.valid() ? scalar : slices[next++]);
  return part;
}

Tensor f32_scalar(Trace& trace, double value) {
  return full(trace.builder(), {DType::f32, {}}, value);
}

// 0 / 0 is no mean, but not to be NaN either.
Tensor mean_of(Tensor sum, Tensor weight) {
  return sum / select(greater(weight, 0.0), weight, 1.0);
}

// Of how many each term is the mean in the whole batch. All of the model that the counts do not need is dead code.
std::vector<Tensor> count_terms(Trace& trace, const LossFunction& loss, const CutBatch& batch,
                                int64_t parts, size_t terms) {
  if (terms == 0) return {};
  const int64_t sites = trace.draw_sites();
  const std::vector<Tensor> zeros(terms, f32_scalar(trace, 0));
  const LoopResult sums =
      loop(trace.builder(), zeros, batch.parts, {.trips = parts}, [&](const LoopBody& body) {
        const TripScope trip(trace, body.index, parts);
        const Loss part = checked_loss(loss(trace, part_of(batch, body.slices)));
        FB_CHECK(part.terms.size() == terms, "{} and {} terms", part.terms.size(), terms);
        LoopStep next;
        for (size_t i = 0; i < terms; ++i)
          next.carried.push_back(body.carried[i] + cast(part.terms[i].weight, DType::f32));
        return next;
      });
  trace.repeat_draws(sites);  // what is counted is what the gradients are of
  return sums.carried;
}

// What a part adds to the loss of the whole batch, or, without terms, to its sum.
Tensor contribution(const Loss& part, const std::vector<Tensor>& counts, Tensor predictions) {
  if (counts.empty()) return cast(part.mean, DType::f32) * predictions;
  Tensor sum;
  for (size_t i = 0; i < counts.size(); ++i) {
    const Tensor share = mean_of(cast(part.terms[i].weight, DType::f32), counts[i]);
    const Tensor own = cast(part.terms[i].mean, DType::f32) * share;
    sum = sum.valid() ? sum + own : own;
  }
  return sum;
}

}  // namespace

Loss checked_loss(Loss loss) {
  if (loss.mean.rank() != 0 || !is_floating(loss.mean.dtype()))
    throw UsageError(fmt::format("a step's loss must be a floating scalar, this is {}",
                                 loss.mean.type().text()));
  if (loss.predictions.valid() && loss.predictions.rank() != 0)
    throw UsageError(fmt::format("the number of a loss's predictions must be a scalar, this is {}",
                                 loss.predictions.type().text()));
  for (const LossTerm& term : loss.terms)
    for (const Tensor& scalar : {term.mean, term.weight})
      if (scalar.rank() != 0)
        throw UsageError(fmt::format("mean and weight of a loss's term must be scalars, this is {}",
                                     scalar.type().text()));
  return loss;
}

OptimizerResult optimize_in_parts(Trace& trace, const LossFunction& loss,
                                  const std::vector<BatchField>& fields, int64_t parts,
                                  const OptimizerOptions& options, Loss& whole) {
  const std::vector<BatchField> each = part_fields(fields, parts);
  const size_t terms = declare_state(trace, loss, each);
  const CutBatch batch = cut(trace, fields, each, parts);
  const std::vector<Tensor> counts = count_terms(trace, loss, batch, parts, terms);
  const auto differentiate = [&](Tensor scale) {
    std::vector<Tensor> parameters;
    std::vector<Tensor> carried;
    for (const Trace::Parameter& parameter : trace.parameters()) {
      parameters.push_back(parameter.tensor);
      carried.push_back(zeros_like(parameter.tensor));
    }
    const Tensor zero = f32_scalar(trace, 0);
    const Tensor one = f32_scalar(trace, 1);
    carried.insert(carried.end(), {zero, zero});  // loss, predictions
    bool counted = false;
    std::vector<std::string> metrics;
    const LoopResult sums =
        loop(trace.builder(), carried, batch.parts, {.trips = parts}, [&](const LoopBody& body) {
          const TripScope trip(trace, body.index, parts);
          const Loss part = checked_loss(loss(trace, part_of(batch, body.slices)));
          counted = part.predictions.valid();
          const Tensor weight = counted ? cast(part.predictions, DType::f32) : one;
          const Tensor sum = contribution(part, counts, weight);
          const std::vector<Tensor> gradients =
              gradient(scale.valid() ? sum * scale : sum, parameters);
          LoopStep next;
          for (size_t i = 0; i < gradients.size(); ++i)
            next.carried.push_back(body.carried[i] + gradients[i]);
          next.carried.push_back(body.carried[gradients.size()] + sum);
          next.carried.push_back(body.carried[gradients.size() + 1] + weight);
          for (const Metric& metric : part.metrics) {
            const Tensor own = metric.weight.valid() ? cast(metric.weight, DType::f32) : weight;
            next.stacked.push_back(cast(metric.mean, DType::f32) * own);
            next.stacked.push_back(own);
            metrics.push_back(metric.name);
          }
          return next;
        });
    const size_t count = parameters.size();
    const Tensor predictions = sums.carried[count + 1];
    const auto of_batch = [&](Tensor sum) { return counts.empty() ? sum / predictions : sum; };
    whole.mean = of_batch(sums.carried[count]);
    if (counted) whole.predictions = predictions;
    for (size_t i = 0; i < metrics.size(); ++i) {
      const Tensor weight = reduce_sum(sums.stacked[2 * i + 1], {0});
      whole.metrics.push_back(
          {metrics[i], mean_of(reduce_sum(sums.stacked[2 * i], {0}), weight), weight});
    }
    ScaledGradients result{whole.mean, {}};
    for (size_t i = 0; i < count; ++i) result.gradients.push_back(of_batch(sums.carried[i]));
    return result;
  };
  return optimize_gradients(trace, differentiate, options);
}

}  // namespace fullbore
