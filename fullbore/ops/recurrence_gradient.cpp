#include "fullbore/ops/compose.h"
#include "fullbore/ops/recurrence.h"
#include "fullbore/ops/rules.h"

/// The cotangents of the tokens of each chunk, from the state before it and the state's cotangent behind
/// it. Those of the decays need no states in between: every product with exp(the sum of some tokens'
/// log-decays) counts for each of these tokens, so they are running sums of r dr and k dk.
namespace fullbore {
namespace {

// Operands behind r, k, v, dy, g.
size_t index_of_states(bool inclusive) { return inclusive ? 5 : 6; }

std::vector<TensorType> infer(const OpCall& call) {
  const size_t states = index_of_states(require_attribute<bool>(call, "inclusive"));
  require_inputs(call, states + 2, states + 3);
  const RecurrenceShape shape = require_recurrence(call, 1, 2, 4);
  require_operand(call, 0, "r", call.inputs[1].shape, false);
  require_same_dtype(call, 0, "r", 1, "k");
  require_operand(call, 3, "dy", call.inputs[2].shape, false);
  if (shape.bonus()) require_operand(call, 5, "the bonus", {shape.heads, shape.keys});
  require_operand(call, states, "states", shape.states());
  require_operand(call, states + 1, "the states' cotangents", shape.states());
  require_resets(call, states + 2, shape);
  const DType compute = compute_dtype(call.inputs[0].dtype);
  std::vector<TensorType> types = {
      call.inputs[0], call.inputs[1], call.inputs[2], {compute, call.inputs[4].shape}};
  if (shape.bonus())
    types.push_back({compute, {shape.chunks, shape.batch, shape.heads, shape.keys}});
  return types;
}

struct Parts {
  Tensor r, k, v;
};

// From the state before the chunk (r), to the one behind it (k, v).
Parts through_states(const RecurrenceChunks& chunks, const Parts& x, Tensor dy, Tensor states,
                     Tensor cotangents) {
  const Tensor writing = chunks.writing();
  return {matmul(dy, states, {.transpose_b = true}) * chunks.reading(),
          matmul(x.v, cotangents, {.transpose_b = true}) * writing,
          matmul(x.k * writing, cotangents)};
}

// From token to token within the chunk.
Parts within_chunk(const RecurrenceShape& shape, const RecurrenceChunks& chunks, const Parts& x,
                   Tensor dy) {
  Parts sums;
  std::vector<Tensor> of_r;
  const auto add_up = [&](Tensor& sum, Tensor term, int64_t end) {
    if (end < shape.chunk) term = pad(term, 3, 0, shape.chunk - end);
    sum = sum.valid() ? sum + term : term;
  };
  for (const RecurrenceChunks::Block& block : chunks.blocks()) {
    const Tensor dy_here = RecurrenceChunks::tokens(dy, block.first, block.end);
    const Tensor values = RecurrenceChunks::tokens(x.v, 0, block.end);
    const Tensor weights = chunks.weights(block, x.r, x.k);
    add_up(sums.v, matmul(weights, dy_here, {.transpose_a = true}), block.end);
    const RecurrenceChunks::Slopes slopes =
        chunks.slopes(block, x.r, x.k, matmul(dy_here, values, {.transpose_b = true}));
    of_r.push_back(slopes.r);
    add_up(sums.k, slopes.k, block.end);
  }
  sums.r = of_r.size() == 1 ? of_r[0] : concat(of_r, 3);
  return sums;
}

// A log-decay counts in what passes through the whole chunk, in what earlier tokens write, in what later
// ones read, and in the pairs of which it lies between.
Tensor decay_cotangent(const RecurrenceShape& shape, const Parts& x, const Parts& outside,
                       const Parts& within, Tensor passing) {
  const auto of_decays = [&](Tensor product) {
    return shape.scalar_decay() ? reduce_sum(product, {4}, true) : product;
  };
  const Tensor written = cumsum(of_decays(x.k * outside.k), 3, true);
  const Tensor read = cumsum(of_decays(x.r * (outside.r + within.r)), 3, !shape.inclusive, true);
  const Tensor from = cumsum(of_decays(x.k * within.k), 3, false, true);
  return passing + written + (read - from);
}

std::vector<Tensor> nothing(const DecomposeCall& call, const RecurrenceShape& shape) {
  GraphBuilder& builder = call.inputs[0].builder();
  const DType compute = compute_dtype(call.inputs[0].dtype());
  std::vector<Tensor> made;
  for (const size_t i : {0, 1, 2}) made.push_back(full(builder, call.inputs[i].type(), 0));
  made.push_back(full(builder, {compute, call.inputs[4].shape()}, 0));
  if (shape.bonus())
    made.push_back(full(builder, {compute, {0, shape.batch, shape.heads, shape.keys}}, 0));
  return made;
}

std::vector<Tensor> decompose(const DecomposeCall& call) {
  const auto& in = call.inputs;
  const RecurrenceShape shape(in[1].type(), in[2].type(), in[4].type(), call.attributes);
  if (shape.chunks == 0) return nothing(call, shape);
  const size_t states = index_of_states(shape.inclusive);
  const RecurrenceChunks chunks(shape, in[4], shape.resets ? in[states + 2] : Tensor());
  const Parts x{chunks.split(in[0]), chunks.split(in[1]), chunks.split(in[2])};
  const Tensor dy = chunks.split(in[3]);
  const Tensor before = widened(in[states]), behind = widened(in[states + 1]);
  const Parts outside = through_states(chunks, x, dy, before, behind);
  const Parts within = within_chunk(shape, chunks, x, dy);

  Tensor kept = reduce_sum(before * behind, {4}, true) * chunks.through();
  if (shape.scalar_decay()) kept = reduce_sum(kept, {3}, true);
  const Tensor g = widened(in[4]);
  const Tensor inside = logical_and(greater_equal(g, kLeastLogDecay), less_equal(g, 0.0));
  const Tensor dg =
      chunks.joined(decay_cotangent(shape, x, outside, within, swap_axes(kept, 3, 4)), g.dtype());
  Parts d{outside.r + within.r, outside.k + within.k, outside.v + within.v};
  std::vector<Tensor> made(4);
  made[3] = select(inside, dg, 0.0);
  if (shape.bonus()) {
    const Tensor u = expand_dims(widened(in[5]), 1);
    const Tensor slope = reduce_sum(x.v * dy, {4}, true);
    d.r = d.r + u * x.k * slope;
    d.k = d.k + u * x.r * slope;
    d.v = d.v + reduce_sum(x.r * u * x.k, {4}, true) * dy;
    made.push_back(reduce_sum(x.r * x.k * slope, {3}));
  }
  made[0] = chunks.summed(d.r, in[0].dtype());
  made[1] = chunks.summed(d.k, in[1].dtype());
  made[2] = chunks.joined(d.v, in[2].dtype());
  return made;
}

Cost cost(const CostCall& call) {
  const RecurrenceShape shape(call.inputs[1], call.inputs[2], call.inputs[4], call.attributes);
  Cost cost = copy_cost(call);
  cost.flops = static_cast<double>(shape.batch * shape.tokens * shape.heads) *
               (2.5 * recurrence_pair_flops(shape) + 3 * recurrence_state_flops(shape));
  return cost;
}

std::vector<ErrorSample> error_samples() {
  const TensorType r{DType::f32, {2, 5, 4, 3}}, v{DType::f32, {2, 5, 4, 6}};
  const TensorType u{DType::f32, {4, 3}}, states{DType::f32, {2, 2, 4, 3, 6}};
  const Attributes attributes = recurrence_attributes(3, false, false);
  return {
      {"dy like r",
       {r, r, v, r, r, u, states, states},
       attributes,
       "needs dy f32[2,5,4,6], got f32[2,5,4,3]"},
      {"one cotangent for all chunks",
       {r, r, v, v, r, u, states, {DType::f32, {2, 4, 3, 6}}},
       attributes,
       "needs the states' cotangents f32[2,2,4,3,6], got f32[2,4,3,6]"},
      {"no cotangents", {r, r, v, v, r, u, states}, attributes, "needs 8 to 9 operands, got 7"},
  };
}

const OpRegistrar recurrence_gradient_op(OpDef{
    .name = "recurrence_gradient",
    .summary =
        "cotangents of a linear recurrence's tokens from states and theirs at the chunks' borders",
    .tags = Tag::composite | Tag::contraction,
    .infer = infer,
    .decompose = decompose,
    .cost = cost,
    .reference = recurrence_gradient_reference,
    .samples = recurrence_gradient_samples,
    .error_samples = error_samples,
    .contracted_operands = 4,  // r, k, v, dy
});

}  // namespace
}  // namespace fullbore
