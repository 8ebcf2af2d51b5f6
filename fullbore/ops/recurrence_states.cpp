#include "fullbore/ops/compose.h"
#include "fullbore/ops/recurrence.h"
#include "fullbore/ops/rules.h"

/// The states before each chunk, and behind the last one. The matmuls of all chunks are made at once;
/// only the sum over chunks goes one by one. In reverse: the states' cotangents behind each chunk, and
/// before the first one,
///   S_{t-1} = diag(exp(g_t)) S_t + k_t^T v_t   (inclusive: diag(exp(g_t)) (S_t + k_t^T v_t))
/// of which a reset before token t makes zero.
namespace fullbore {
namespace {

std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 4, 5);
  require_attribute<bool>(call, "reverse");
  const RecurrenceShape shape = require_recurrence(call, 0, 1, 2);
  require_operand(call, 3, "the initial state", shape.state());
  require_resets(call, 4, shape);
  const DType compute = compute_dtype(call.inputs[0].dtype);
  return {{compute, shape.states()}, {compute, shape.state()}};
}

std::vector<Tensor> decompose(const DecomposeCall& call) {
  const auto& x = call.inputs;
  const RecurrenceShape shape(x[0].type(), x[1].type(), x[2].type(), call.attributes);
  const bool reverse = call.attributes.get<bool>("reverse");
  const Tensor initial = widened(x[3]);
  if (shape.chunks == 0)
    return {full(initial.builder(), {initial.dtype(), shape.states()}, 0), initial};
  const RecurrenceChunks chunks(shape, x[2], shape.resets ? x[4] : Tensor());
  const Tensor k = chunks.split(x[0]) * (reverse ? chunks.reading() : chunks.writing());
  const Tensor added = matmul(k, chunks.split(x[1]), {.transpose_a = true});
  const Tensor through = chunks.through();
  if (shape.chunks == 1)
    return {expand_dims(initial, 0), squeeze(through, 0) * initial + squeeze(added, 0)};
  const LoopResult made =
      loop(initial.builder(), {initial}, {added, through},
           {.iterations = shape.chunks, .reverse = reverse}, [](const LoopBody& body) {
             const Tensor state = body.carried[0];
             return IterationResults{.carried = {body.slices[1] * state + body.slices[0]},
                                     .stacked = {state}};
           });
  return {made.stacked[0], made.carried[0]};
}

Cost cost(const CostCall& call) {
  const RecurrenceShape shape(call.inputs[0], call.inputs[1], call.inputs[2], call.attributes);
  Cost cost = copy_cost(call);
  cost.flops =
      static_cast<double>(shape.batch * shape.tokens * shape.heads) * recurrence_state_flops(shape);
  return cost;
}

std::vector<ErrorSample> error_samples() {
  const TensorType k{DType::f32, {2, 5, 2, 3}}, v{DType::f32, {2, 5, 4, 6}};
  const TensorType g{DType::f32, {2, 5, 4, 1}}, state{DType::f32, {2, 4, 3, 6}};
  Attributes attributes = recurrence_attributes(16, false, false);
  const Attributes undirected = attributes;
  attributes.set("reverse", false);
  return {
      {"no direction", {k, v, g, state}, undirected, "needs attribute 'reverse'"},
      {"states of all chunks",
       {k, v, g, {DType::f32, {1, 2, 4, 3, 6}}},
       attributes,
       "needs the initial state f32[2,4,3,6], got f32[1,2,4,3,6]"},
      {"resets that are not announced",
       {k, v, g, state, {DType::boolean, {2, 5}}},
       attributes,
       "needs 4 operands, got 5"},
  };
}

const OpRegistrar recurrence_states_op(OpDef{
    .name = "recurrence_states",
    .summary = "states of a linear recurrence at the borders of its chunks of tokens",
    .tags = Tag::composite | Tag::contraction,
    .infer = infer,
    .decompose = decompose,
    .cost = cost,
    .reference = recurrence_states_reference,
    .samples = recurrence_states_samples,
    .error_samples = error_samples,
    .contracted_operands = 2,  // k, v
});

}  // namespace
}  // namespace fullbore
