#include "fullbore/train/microbatches.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "fullbore/train/batch_rows.h"
#include "fullbore/train/frozen.h"
#include "fullbore/train/made_at.h"
#include "fullbore/train/rehearsal.h"
#include "fullbore/train/retired_names.h"

namespace fullbore {
namespace {

// What each step tells, and what a line of metrics.jsonl has beside it: a metric of that name would replace it.
constexpr std::array<std::string_view, 19> kTakenNames = {"loss",
                                                          "predictions",
                                                          "gradient_norm",
                                                          "learning_rate",
                                                          "loss_scale",
                                                          "skipped",
                                                          "kind",
                                                          "step",
                                                          "seconds",
                                                          "utilisation",
                                                          "xxhash64",
                                                          "tokens_per_second",
                                                          "samples_per_second",
                                                          "data_wait_share",
                                                          "step_seconds",
                                                          "wait_seconds",
                                                          "resident_bytes",
                                                          "planned_bytes",
                                                          "arena_bytes"};

std::vector<BatchField> microbatch_fields(const std::vector<BatchField>& fields,
                                          const Microbatches& counts) {
  std::vector<BatchField> result = fields;
  const int64_t microbatches = counts.accumulate * counts.parallel;
  const int64_t rows = batch_rows(fields);
  for (BatchField& field : result) {
    const int axis = cut_axis(field);
    if (axis < 0) continue;  // of every microbatch
    const Shape& shape = field.type.shape;
    if (shape[axis] != rows || rows == 0 || rows % microbatches != 0)
      throw UsageError(fmt::format(
          "a batch in {} microbatches must have a multiple of as many rows, along the batch axis "
          "of every field; '{}' is {}, and its axis {} is the batch",
          microbatches, field.name, field.type.text(), axis));
    field.type.shape = shape.with(axis, rows / microbatches);
  }
  if (std::ranges::all_of(fields, [](const BatchField& field) { return cut_axis(field) < 0; }))
    throw UsageError(fmt::format(
        "a batch in {} microbatches: no field of it has an axis that is the batch", microbatches));
  return result;
}

/// The batch's tensors: those cut in microbatches, and others, which every microbatch has whole.
struct CutBatch {
  std::vector<Tensor> microbatches;  ///< [accumulate,] [parallel,] ..., where there are several
  std::vector<Tensor> shared;        ///< invalid where the field is cut
};

// [..., B, ...] -> [parts, ..., B / parts, ...]
Tensor parts_first(Tensor whole, int axis, int64_t parts) {
  const Shape& shape = whole.shape();
  const Tensor cut = reshape(whole, shape.with(axis, shape[axis] / parts).inserted(axis, parts));
  if (axis == 0) return cut;
  std::vector<int64_t> order = {axis};
  for (int64_t i = 0; i < cut.rank(); ++i)
    if (i != axis) order.push_back(i);
  return transpose(cut, std::move(order));
}

CutBatch cut(Trace& trace, const std::vector<BatchField>& fields,
             const std::vector<BatchField>& microbatches, const Microbatches& counts) {
  CutBatch result;
  for (size_t i = 0; i < fields.size(); ++i) {
    const Tensor whole = trace.batch(fields[i].name, fields[i].type);
    const int axis = cut_axis(fields[i]);
    result.shared.push_back(axis < 0 ? whole : Tensor());
    if (axis < 0) continue;
    Shape shape = microbatches[i].type.shape;
    if (counts.parallel > 1) shape = shape.inserted(0, counts.parallel);
    if (counts.accumulate > 1) shape = shape.inserted(0, counts.accumulate);
    const Tensor ordered =
        axis == 0 ? whole : parts_first(whole, axis, counts.accumulate * counts.parallel);
    result.microbatches.push_back(reshape(ordered, shape));
  }
  return result;
}

std::vector<Tensor> microbatch_of(const CutBatch& batch, const std::vector<Tensor>& slices) {
  std::vector<Tensor> microbatch;
  size_t next = 0;
  for (const Tensor& shared : batch.shared)
    microbatch.push_back(shared.valid() ? shared : slices[next++]);
  return microbatch;
}

// In their order: by additions, which go into the kernels that read the sum, unless there are so many that graphs
// would grow long.
Tensor sum_of_rows(Tensor rows) {
  constexpr int64_t kMostAdded = 8;
  if (rows.dim(0) > kMostAdded) return reduce_sum(rows, {0});
  const Shape shape = rows.shape().without(0);
  Tensor sum;
  for (int64_t i = 0; i < rows.dim(0); ++i) {
    const Tensor row = reshape(slice(rows, 0, i, i + 1), shape);
    sum = sum.valid() ? sum + row : row;
  }
  return sum;
}

/// What of_microbatch makes of each microbatch of a batch, summed. `first`: what the sums begin with, of the same types.
/// is_largest: of which values the largest is wanted in place of the sum. updated: State that each microbatch updates
/// where they go one after another, each on what the one before has left; what the last one leaves follows the sums.
template <class OfMicrobatch, class IsLargest>
std::vector<Tensor> sum_over_microbatches(Trace& trace, const CutBatch& batch,
                                          const Microbatches& microbatches,
                                          const std::vector<Tensor>& first,
                                          const std::vector<CarriedState::Entry>& updated,
                                          const IsLargest& is_largest,
                                          const OfMicrobatch& of_microbatch) {
  const auto over_parallel = [&](GraphBuilder& builder, const std::vector<Tensor>& slices) {
    if (microbatches.parallel == 1) return of_microbatch(microbatch_of(batch, slices));
    const LoopResult each =
        loop(builder, {}, slices, {.iterations = microbatches.parallel, .parallel = true},
             [&](const LoopBody& body) {
               const IterationScope iteration(trace, body.index, microbatches.parallel);
               IterationResults results;
               results.stacked = of_microbatch(microbatch_of(batch, body.slices));
               return results;
             });
    std::vector<Tensor> sums;
    for (size_t i = 0; i < each.stacked.size(); ++i)
      sums.push_back(is_largest(i) ? reduce_max(each.stacked[i], {0})
                                   : sum_of_rows(each.stacked[i]));
    return sums;
  };
  if (microbatches.accumulate == 1) return over_parallel(trace.builder(), batch.microbatches);
  std::vector<Tensor> carried = first;
  for (const CarriedState::Entry& entry : updated) carried.push_back(entry.value);
  return loop(trace.builder(), carried, batch.microbatches, {.iterations = microbatches.accumulate},
              [&](const LoopBody& body) {
                const IterationScope iteration(trace, body.index, microbatches.accumulate);
                std::vector<CarriedState::Entry> found = updated;
                for (size_t i = 0; i < found.size(); ++i)
                  found[i].value = body.carried[first.size() + i];
                const CarriedState states(trace, found);
                const std::vector<Tensor> values = over_parallel(body.index.builder(), body.slices);
                IterationResults next;
                for (size_t i = 0; i < values.size(); ++i)
                  next.carried.push_back(is_largest(i) ? maximum(body.carried[i], values[i])
                                                       : body.carried[i] + values[i]);
                for (const Tensor& state : states.next()) next.carried.push_back(state);
                return next;
              })
      .carried;
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
                                const Microbatches& microbatches, const Rehearsal& rehearsal) {
  const size_t terms = rehearsal.terms;
  if (terms == 0) return {};
  const int64_t sites = trace.draw_sites();
  const std::vector<Tensor> zeros(terms, f32_scalar(trace, 0));
  const auto none = [](size_t) { return false; };
  std::vector<Tensor> sums = sum_over_microbatches(
      trace, batch, microbatches, zeros, rehearsal.updated, none,
      [&](const std::vector<Tensor>& each) {
        const Loss microbatch = without_terms(checked_loss(loss(trace, each)), rehearsal.dead);
        FB_CHECK(microbatch.terms.size() == terms, "{} and {} terms", microbatch.terms.size(),
                 terms);
        std::vector<Tensor> weights;
        for (const LossTerm& term : microbatch.terms)
          weights.push_back(cast(term.weight, DType::f32));
        return weights;
      });
  sums.resize(terms);  // State is updated by what the gradients are of
  trace.begin_model();
  trace.repeat_draws(sites);  // what is counted is what the gradients are of
  return sums;
}

// What a microbatch adds to the loss of the whole batch, or, without terms, to its sum.
Tensor contribution(const Loss& microbatch, const std::vector<Tensor>& counts, Tensor predictions) {
  if (counts.empty()) return cast(microbatch.mean, DType::f32) * predictions;
  Tensor sum;
  for (size_t i = 0; i < counts.size(); ++i) {
    const Tensor share = mean_of(cast(microbatch.terms[i].weight, DType::f32), counts[i]);
    const Tensor own = cast(microbatch.terms[i].mean, DType::f32) * share;
    sum = sum.valid() ? sum + own : own;
  }
  return sum;
}

// Of what a microbatch adds. What is scaled is differentiated in few bits: the mean, whose gradients are as large in a
// microbatch as in the whole batch, and not the sum, whose are as many times larger as there are predictions.
std::vector<Tensor> gradients_of(const Loss& microbatch, Tensor sum, Tensor weight, Tensor scale,
                                 const std::vector<Tensor>& counts,
                                 const std::vector<Tensor>& parameters) {
  if (!scale.valid()) return gradient(sum, parameters);
  if (!counts.empty()) return gradient(sum * scale, parameters);
  std::vector<Tensor> gradients = gradient(cast(microbatch.mean, DType::f32) * scale, parameters);
  for (Tensor& each : gradients) each = each * weight;
  return gradients;
}

}  // namespace

bool is_over_microbatches(const Node& loop) {
  constexpr std::string_view kHere = "train/microbatches.cpp";
  const std::string_view source =
      std::string_view(loop.location).substr(0, loop.location.find(':'));
  return source == kHere || renamed_source(source) == kHere;
}

Loss checked_loss(Loss loss) {
  const auto require_scalar = [](const std::string& what, Tensor x, bool is_mean) {
    if (!x.valid()) throw UsageError(fmt::format("{} is an empty Tensor", what));
    if (!x.alive())
      throw UsageError(
          fmt::format("{} is a Tensor of a trace or of a loop's body that has ended", what));
    if (x.rank() != 0 || (is_mean && !is_floating(x.dtype())))
      throw UsageError(fmt::format("{} must be a {}scalar, this is {}{}", what,
                                   is_mean ? "floating " : "", x.type().text(), made_at(x)));
  };
  require_scalar("a step's loss", loss.mean, true);
  if (loss.predictions.valid())
    require_scalar("the number of a loss's predictions", loss.predictions, false);
  for (const LossTerm& term : loss.terms)
    for (const Tensor& scalar : {term.mean, term.weight})
      require_scalar("mean or weight of a loss's term", scalar, false);
  for (size_t i = 0; i < loss.metrics.size(); ++i) {
    const Metric& metric = loss.metrics[i];
    if (metric.name.empty())
      throw UsageError("a metric of the loss has no name" + made_at(metric.mean));
    require_scalar(fmt::format("metric '{}'", metric.name), metric.mean, true);
    if (std::ranges::find(kTakenNames, metric.name) != kTakenNames.end())
      throw UsageError(
          fmt::format("a metric of the loss is called '{}', which a step tells itself{}",
                      metric.name, made_at(metric.mean)));
    if (metric.weight.valid())
      require_scalar(fmt::format("the weight of metric '{}'", metric.name), metric.weight, false);
    for (size_t other = 0; other < i; ++other)
      if (loss.metrics[other].name == metric.name)
        throw UsageError(fmt::format("two metrics of the loss are called '{}'{}", metric.name,
                                     made_at(metric.mean)));
  }
  return loss;
}

OptimizerResult optimize_microbatches(Trace& trace, const LossFunction& loss,
                                      const std::vector<BatchField>& fields,
                                      const Microbatches& microbatches,
                                      const OptimizerOptions& options, Loss& whole) {
  const std::vector<BatchField> each = microbatch_fields(fields, microbatches);
  const Rehearsal rehearsal = declare_state(trace, loss, each, microbatches);
  const CutBatch batch = cut(trace, fields, each, microbatches);
  const std::vector<Tensor> counts = count_terms(trace, loss, batch, microbatches, rehearsal);
  std::vector<Tensor> left;  // of rehearsal.updated, by the last microbatch
  const auto differentiate = [&](Tensor scale) {
    std::vector<Tensor> parameters;
    std::vector<Tensor> zeros;
    for (const Trace::Parameter& parameter : trace.parameters()) {
      parameters.push_back(parameter.tensor);
      zeros.push_back(zeros_like(parameter.tensor));
    }
    const size_t count = parameters.size();
    const Tensor one = f32_scalar(trace, 1);
    // Loss and predictions, and of each metric the sum and of how many it is.
    zeros.insert(zeros.end(), 2 + 2 * rehearsal.metrics.size(), f32_scalar(trace, 0));
    const auto is_largest = [&](size_t value) {
      return value >= count + 2 && (value - count) % 2 == 0 &&
             rehearsal.metrics[(value - count) / 2 - 1].largest;
    };
    for (size_t i = count + 2; i < zeros.size(); ++i)
      if (is_largest(i)) zeros[i] = f32_scalar(trace, -std::numeric_limits<float>::infinity());
    const std::vector<Tensor> sums = sum_over_microbatches(
        trace, batch, microbatches, zeros, rehearsal.updated, is_largest,
        [&](const std::vector<Tensor>& rows) {
          const Loss microbatch = without_terms(checked_loss(loss(trace, rows)), rehearsal.dead);
          const Tensor weight = rehearsal.counted ? cast(microbatch.predictions, DType::f32) : one;
          const Tensor sum = contribution(microbatch, counts, weight);
          std::vector<Tensor> values =
              gradients_of(microbatch, sum, weight, scale, counts, parameters);
          values.insert(values.end(), {sum, weight});
          for (const Metric& metric : microbatch.metrics) {
            const Tensor own = metric.weight.valid() ? cast(metric.weight, DType::f32) : weight;
            const Tensor value = cast(metric.mean, DType::f32);
            values.insert(values.end(), {metric.largest ? value : value * own, own});
          }
          return values;
        });
    for (size_t i = 0; i < rehearsal.updated.size(); ++i) left.push_back(sums[zeros.size() + i]);
    const Tensor predictions = sums[count + 1];
    const auto of_batch = [&](Tensor sum) { return counts.empty() ? sum / predictions : sum; };
    whole.mean = of_batch(sums[count]);
    if (rehearsal.counted) whole.predictions = predictions;
    whole.dead = rehearsal.dead_names;
    for (size_t i = 0; i < rehearsal.metrics.size(); ++i) {
      const Metric& metric = rehearsal.metrics[i];
      const Tensor value = sums[count + 2 + 2 * i];
      const Tensor weight = sums[count + 3 + 2 * i];
      whole.metrics.push_back(
          {metric.name, metric.largest ? value : mean_of(value, weight), weight, metric.largest});
    }
    ScaledGradients result{whole.mean, {}};
    for (size_t i = 0; i < count; ++i) result.gradients.push_back(of_batch(sums[i]));
    return result;
  };
  OptimizerResult result = optimize_gradients(trace, differentiate, options);
  // One microbatch that is not finite has every one's statistics dropped.
  for (size_t i = 0; i < left.size(); ++i) {
    const Tensor before = rehearsal.updated[i].value;
    trace.update(before, select(greater(result.skipped, 0.0), before, left[i]));
  }
  return result;
}

}  // namespace fullbore
