#include "fullbore/train/step_function.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/train/batch_rows.h"
#include "fullbore/train/fp8_matmuls.h"
#include "fullbore/train/frozen.h"
#include "fullbore/train/initial_values.h"
#include "fullbore/train/microbatches.h"
#include "fullbore/train/stored_weights.h"
#include "fullbore/train/updated_state.h"

namespace fullbore {
namespace {

void tell(Trace& trace, const Loss& loss) {
  trace.result("loss", cast(loss.mean, DType::f32));
  if (loss.predictions.valid()) trace.result("predictions", cast(loss.predictions, DType::f32));
}

void tell_metrics(Trace& trace, const Loss& loss) {
  for (const Metric& metric : loss.metrics)
    trace.result(metric.name, cast(metric.mean, DType::f32));
}

Loss trace_loss(Trace& trace, const LossFunction& loss, const std::vector<BatchField>& fields) {
  std::vector<Tensor> batch;
  for (const BatchField& field : fields) batch.push_back(trace.batch(field.name, field.type));
  const Loss made = checked_loss(loss(trace, batch));
  return without_terms(made, dead_terms(trace, made));
}

TracedStep finish(Trace& trace) {
  std::map<std::string, Initializer> initializers = trace.initializers();
  return {trace.finish(), std::move(initializers)};
}

// One metric of a batch's parts.
Metric mean_of(std::initializer_list<Metric> parts, std::initializer_list<Tensor> predictions) {
  Tensor sum;
  Tensor weight;
  const Tensor* counted = predictions.begin();
  if (parts.begin()->largest) {
    for (const Metric& part : parts) {
      const Tensor own = cast(part.mean, DType::f32);
      sum = sum.valid() ? maximum(sum, own) : own;
    }
    return {parts.begin()->name, sum, {}, true};
  }
  for (const Metric& part : parts) {
    const Tensor count = part.weight.valid() ? part.weight : *counted;
    ++counted;
    const Tensor own =
        count.valid() ? cast(count, DType::f32) : full(part.mean.builder(), {DType::f32, {}}, 1);
    const Tensor product = cast(part.mean, DType::f32) * own;
    sum = sum.valid() ? sum + product : product;
    weight = weight.valid() ? weight + own : own;
  }
  return {parts.begin()->name, sum / weight, weight};
}

// Loss and update from the losses of the batch's halves.
OptimizerResult optimize_by_halves(Trace& trace, const LossFunction& loss,
                                   const std::vector<BatchField>& fields,
                                   const OptimizerOptions& options, Loss& whole) {
  std::vector<Tensor> first;
  std::vector<Tensor> second;
  const int64_t rows = batch_rows(fields);
  if (std::ranges::all_of(fields, [](const BatchField& field) { return cut_axis(field) < 0; }))
    throw UsageError(
        fmt::format("the gradient noise scale needs an even batch size, and no field has the batch "
                    "for an axis; '{}' is {}",
                    fields.front().name, fields.front().type.text()));
  for (const BatchField& field : fields) {
    const int axis = cut_axis(field);
    if (axis < 0) {
      const Tensor whole_batch = trace.batch(field.name, field.type);
      first.push_back(whole_batch);
      second.push_back(whole_batch);
      continue;
    }
    if (field.type.shape[axis] != rows || rows % 2 != 0 || rows == 0)
      throw UsageError(
          fmt::format("the gradient noise scale needs an even batch size, along the batch axis of "
                      "every field; '{}' is {}",
                      field.name, field.type.text()));
    const Tensor batch = trace.batch(field.name, field.type);
    first.push_back(slice(batch, axis, 0, rows / 2));
    second.push_back(slice(batch, axis, rows / 2, rows));
  }
  Loss a = checked_loss(loss(trace, first));
  trace.begin_model();
  Loss b = checked_loss(loss(trace, second));
  const std::vector<bool> dead = dead_terms(trace, a);
  a = without_terms(a, dead);
  b = without_terms(b, dead);
  whole.dead = a.dead;
  if (!a.carried.empty())
    throw UsageError(
        "the gradient noise scale is of halves of a batch, and the model carries State from batch "
        "to batch");
  whole.mean = (a.mean + b.mean) * 0.5;
  if (a.predictions.valid()) whole.predictions = a.predictions + b.predictions;
  for (size_t i = 0; i < a.metrics.size(); ++i)
    whole.metrics.push_back(mean_of({a.metrics[i], b.metrics[i]}, {a.predictions, b.predictions}));
  return optimize_halves(trace, a.mean, b.mean, rows, options);
}

}  // namespace

TracedStep trace_training_step(const LossFunction& loss, const std::vector<BatchField>& fields,
                               const OptimizerOptions& optimizer, const Microbatches& parts) {
  Trace trace("train", true);
  Loss value{Tensor()};
  OptimizerResult update;
  std::vector<std::string> updated;  // what the model may leave behind by itself
  const bool is_cut = parts.accumulate > 1 || parts.parallel > 1;
  if (optimizer.noise_scale) {
    if (is_cut)
      throw UsageError(
          "the gradient noise scale is of halves of a batch, which is not cut in other parts");
    update = optimize_by_halves(trace, loss, fields, optimizer, value);
  } else if (is_cut) {
    update = optimize_microbatches(trace, loss, fields, parts, optimizer, value);
  } else {
    value = trace_loss(trace, loss, fields);
    updated = possibly_updated(trace);
    update = optimize(trace, value.mean, optimizer);
  }
  for (const Carried& each : value.carried)
    trace.update(each.state, select(greater(update.skipped, 0.0), each.state, each.next));
  tell(trace, value);
  tell_metrics(trace, value);
  trace.result("gradient_norm", update.gradient_norm);
  trace.result("learning_rate", update.learning_rate);
  trace.result("skipped", update.skipped);
  for (const auto& [name, metric] : update.metrics) trace.result(name, metric);
  TracedStep step = finish(trace);
  for (const Metric& metric : value.metrics) step.metrics.push_back(metric.name);
  for (const auto& [name, metric] : update.metrics) step.metrics.push_back(name);
  step.dead_losses = value.dead;
  if (!updated.empty()) step.graph = with_state_kept_when_skipped(step.graph, updated);
  if (optimizer.fp8_matmuls) step = with_fp8_matmuls(std::move(step), optimizer.fp8_excluded);
  if (!optimizer.storage.master_weights) step.graph = with_bf16_weights(step.graph);
  return step;
}

TracedStep trace_evaluation(const LossFunction& loss, const std::vector<BatchField>& fields,
                            Weights weights) {
  Trace trace("evaluate", false);
  const Loss value = trace_loss(trace, loss, fields);
  tell(trace, value);
  tell_metrics(trace, value);
  for (const Carried& each : value.carried) trace.update(each.state, each.next);
  for (const Metric& metric : value.metrics)
    if (metric.weight.valid())
      trace.result(metric_weight_name(metric.name), cast(metric.weight, DType::f32));
  TracedStep step = finish(trace);
  for (const Metric& metric : value.metrics) step.metrics.push_back(metric.name);
  if (weights == Weights::ema) step.graph = with_ema(step.graph);
  return step;
}

std::string metric_weight_name(const std::string& metric) { return metric + "/weight"; }

Graph with_ema(const Graph& graph) {
  GraphBuilder builder(graph.name());
  std::vector<Tensor> inputs;
  for (const Graph::Input& input : graph.inputs())
    inputs.push_back(input.role == Role::parameter
                         ? builder.input(ema_name(input.name), Role::ema, graph.type(input.value))
                         : builder.input_like(input, graph.type(input.value)));
  const std::vector<Tensor> outputs = inline_graph(builder, graph, inputs);
  for (size_t i = 0; i < outputs.size(); ++i)
    builder.output(graph.outputs()[i].name, outputs[i], graph.outputs()[i].updates);
  return builder.take();
}

Graph with_recurrent_states_given(const Graph& graph) {
  GraphBuilder builder(graph.name());
  std::vector<Tensor> inputs;
  const auto given = [&](const Graph::Input& input) {
    const Role role = input.role == Role::recurrent ? Role::batch : input.role;
    return builder.input(input.name, role, graph.type(input.value));
  };
  for (const Graph::Input& input : graph.inputs()) inputs.push_back(given(input));
  const std::vector<Tensor> outputs = inline_graph(builder, graph, inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Graph::Output& output = graph.outputs()[i];
    const bool sequence =
        output.updates >= 0 &&
        graph.inputs()[static_cast<size_t>(output.updates)].role == Role::recurrent;
    builder.output(output.name, outputs[i], sequence ? -1 : output.updates);
  }
  return builder.take();
}

void start_ema(State& state) {
  for (size_t i = 0; i < state.entries().size(); ++i) {
    const StateEntry& entry = state.entries()[i];
    if (entry.role != Role::parameter) continue;
    const int average = state.find(ema_name(entry.name));
    if (average < 0) continue;
    const TensorType& type = state.entries()[static_cast<size_t>(average)].type;
    if (type == entry.type) {
      state.copy(static_cast<int>(i), average);
      continue;
    }
    std::vector<std::byte> values(static_cast<size_t>(entry.type.bytes()));
    std::vector<std::byte> widened(static_cast<size_t>(type.bytes()));
    state.read(static_cast<int>(i), values);
    convert_elements(values, entry.type.dtype, widened, type.dtype);
    state.write(average, widened);
  }
}

State initial_state(const TracedStep& step, uint64_t seed, std::shared_ptr<Device> device,
                    std::span<const LentEntry> lent, std::span<const StateEntry> further) {
  std::vector<StateEntry> entries = state_entries(step.graph);
  const size_t own = entries.size();
  entries.insert(entries.end(), further.begin(), further.end());
  State state(std::move(entries), std::move(device), lent);
  const InitialValues values(step, seed);
  for (size_t i = 0; i < own; ++i)
    if (state.entries()[i].role != Role::ema &&  // copied, which is faster
        !state.is_lent(static_cast<int>(i)))
      values.fill(state, static_cast<int>(i));
  start_ema(state);
  return state;
}

}  // namespace fullbore
