#include "fullbore/ops/compose.h"
#include "fullbore/ops/recurrence.h"
#include "fullbore/ops/rules.h"

/// What each token reads: of the state before its chunk, and of the tokens of its chunk by matmuls of
/// pairs of tokens, as attention would.
namespace fullbore {
namespace {

size_t index_of_states(const Attributes& attributes) {
  return attributes.get<bool>("inclusive") ? 4 : 5;
}

std::vector<TensorType> infer(const OpCall& call) {
  const size_t states = require_attribute<bool>(call, "inclusive") ? 4 : 5;
  require_inputs(call, states + 1, states + 2);
  const RecurrenceShape shape = require_recurrence(call, 1, 2, 3);
  require_operand(call, 0, "r", call.inputs[1].shape, false);
  require_same_dtype(call, 0, "r", 1, "k");
  if (shape.bonus()) require_operand(call, 4, "the bonus", {shape.heads, shape.keys});
  require_operand(call, states, "states", shape.states());
  require_resets(call, states + 1, shape);
  return {call.inputs[2]};
}

std::vector<Tensor> decompose(const DecomposeCall& call) {
  const auto& x = call.inputs;
  const RecurrenceShape shape(x[1].type(), x[2].type(), x[3].type(), call.attributes);
  if (shape.chunks == 0) return {full(x[2].builder(), x[2].type(), 0)};
  const size_t states = index_of_states(call.attributes);
  const RecurrenceChunks chunks(shape, x[3], shape.resets ? x[states + 1] : Tensor());
  const Tensor r = chunks.split(x[0]), k = chunks.split(x[1]), v = chunks.split(x[2]);
  std::vector<Tensor> read;
  for (const RecurrenceChunks::Block& block : chunks.blocks())
    read.push_back(matmul(chunks.weights(block, r, k), RecurrenceChunks::tokens(v, 0, block.end)));
  Tensor y = read.size() == 1 ? read[0] : concat(read, 3);
  y = y + matmul(r * chunks.reading(), widened(x[states]));
  if (shape.bonus()) {
    const Tensor u = expand_dims(widened(x[4]), 1);
    y = y + reduce_sum(r * u * k, {4}, true) * v;
  }
  return {chunks.joined(y, x[2].dtype())};
}

Cost cost(const CostCall& call) {
  const RecurrenceShape shape(call.inputs[1], call.inputs[2], call.inputs[3], call.attributes);
  Cost cost = copy_cost(call);
  cost.flops = static_cast<double>(shape.batch * shape.tokens * shape.heads) *
               (recurrence_pair_flops(shape) + recurrence_state_flops(shape));
  return cost;
}

std::vector<ErrorSample> error_samples() {
  const TensorType r{DType::f32, {2, 5, 4, 3}}, v{DType::f32, {2, 5, 4, 6}};
  const TensorType u{DType::f32, {4, 3}}, states{DType::f32, {2, 2, 4, 3, 6}};
  return {
      {"states of another chunk",
       {r, r, v, r, u, states},
       recurrence_attributes(2, false, false),
       "needs states f32[3,2,4,3,6], got f32[2,2,4,3,6]"},
      {"a bonus that nothing asks for",
       {r, r, v, r, u, states},
       recurrence_attributes(3, true, false),
       "needs states f32[2,2,4,3,6], got f32[4,3]"},
      {"r of other heads",
       {{DType::f32, {2, 5, 2, 3}}, r, v, r, u, states},
       recurrence_attributes(3, false, false),
       "needs r f32[2,5,4,3], got f32[2,5,2,3]"},
  };
}

const OpRegistrar recurrence_outputs_op(OpDef{
    .name = "recurrence_outputs",
    .summary = "results of a linear recurrence from the states at the borders of its chunks",
    .tags = Tag::composite | Tag::contraction,
    .infer = infer,
    .decompose = decompose,
    .cost = cost,
    .reference = recurrence_outputs_reference,
    .samples = recurrence_outputs_samples,
    .error_samples = error_samples,
    .contracted_operands = 3,  // r, k, v
});

}  // namespace
}  // namespace fullbore
