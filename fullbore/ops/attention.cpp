#include "fullbore/ops/attention.h"

#include <algorithm>
#include <cmath>

#include "fullbore/ops/compose.h"
#include "fullbore/ops/rules.h"
#include "fullbore/ops/softmax.h"

namespace fullbore {

namespace {

std::vector<TensorType> infer(const OpCall& call) {
  const AttentionShape shape = require_attention(call, kAttentionOperands);
  const TensorType& q = call.inputs[0];
  return {q, {compute_dtype(q.dtype), {shape.batch, shape.heads, shape.queries}}};
}

std::vector<Tensor> decompose(const DecomposeCall& call) {
  const AttentionCall attention(call.inputs, call.attributes, kAttentionOperands);
  const AttentionShape& shape = attention.shape;
  const Tensor scores = attention.scores();
  Tensor weights = softmax(scores, -1);
  const Tensor factors = attention.dropout_factors();
  if (factors.valid()) weights = weights * factors;
  const Tensor q = call.inputs[0];
  const Tensor grouped = reshape(as_dtype(weights, q.dtype()), shape.by_group());
  const Tensor y = reshape(matmul(grouped, call.inputs[2]), q.shape());
  if (shape.keys == 0)
    return {y, full(q.builder(), {scores.dtype(), scores.shape().without(3)}, 0)};
  const Exponentials e = exponentials(scores, 3);
  return {y, squeeze(e.shift + log(nonzero_sum(e)), 3)};
}

// By an op of its own, which sees neither scores nor weights whole. Of a mask that learns they are
// the gradient, though, so there they are made.
std::vector<Tensor> vjp(const VjpCall& call) {
  const Tensor y = call.outputs[0];
  const Tensor dy = call.cotangents[0].valid() ? call.cotangents[0] : zeros_like(y);
  Tensor delta = reduce_sum(widened(dy) * widened(y), {-1});
  if (call.cotangents[1].valid()) delta = delta - call.cotangents[1];
  std::vector<Tensor> cotangents(call.inputs.size());
  if (call.wanted[0] || call.wanted[1] || call.wanted[2]) {
    std::vector<Tensor> operands(call.inputs.begin(), call.inputs.begin() + kAttentionOperands);
    operands.insert(operands.end(), {dy, call.outputs[1], delta});
    operands.insert(operands.end(), call.inputs.begin() + kAttentionOperands, call.inputs.end());
    const std::vector<Tensor> found =
        apply_all("attention_gradient", operands, call.attributes, call.loc);
    std::copy(found.begin(), found.end(), cotangents.begin());
  }
  const AttentionCall attention(call.inputs, call.attributes, kAttentionOperands);
  const size_t mask = attention.shape.mask;
  if (attention.shape.masked && call.wanted[mask])
    cotangents[mask] = mask_cotangent(attention, dy, call.outputs[1], delta);
  return cotangents;
}

// Of each pair two dot products, and what softmax does to a score.
Cost cost(const CostCall& call) {
  const AttentionShape shape(call.inputs, call.attributes, kAttentionOperands);
  Cost cost = copy_cost(call);
  cost.flops =
      shape.pairs() * (4 * static_cast<double>(shape.width) + 4 + scalar_op_flops(ScalarOp::exp));
  return cost;
}

const OpRegistrar attention_op(OpDef{
    .name = "attention",
    .summary = "softmax(q k^T scale + mask) v, for heads that may share keys",
    .tags = Tag::composite | Tag::contraction,
    .infer = infer,
    .vjp = vjp,
    .decompose = decompose,
    .cost = cost,
    .reference = attention_reference,
    .samples = attention_samples,
    .error_samples = attention_error_samples,
    .contracted_operands = 3,  // q, k, v
});

}  // namespace

Tensor mask_cotangent(const AttentionCall& call, Tensor dy, Tensor log_sum_exp, Tensor delta) {
  const Tensor mask = call.inputs[call.shape.mask];
  const Tensor slopes = attention_slopes(call, dy, log_sum_exp, delta).scores;
  std::vector<int64_t> repeated;
  for (int axis = 0; axis < 3; ++axis)
    if (mask.dim(axis) != slopes.dim(axis)) repeated.push_back(axis);
  return as_dtype(repeated.empty() ? slopes : reduce_sum(slopes, repeated, true), mask.dtype());
}

std::vector<Tensor> attention_operands(const char* op, std::vector<Tensor> operands,
                                       const AttentionOptions& options, SourceLoc loc) {
  if (options.mask.valid()) operands.push_back(options.mask);
  if (options.dropout > 0) {
    require_tensor(op, "the source's seed", options.random.seed, loc);
    require_tensor(op, "the source's step", options.random.step, loc);
    operands.insert(operands.end(), {options.random.seed, options.random.step});
    if (options.random.iteration.valid()) operands.push_back(options.random.iteration);
  }
  return operands;
}

Attributes attention_attributes(Tensor q, const AttentionOptions& options) {
  const double width = q.rank() > 0 ? static_cast<double>(q.dim(-1)) : 1;
  return {{"causal", options.causal},
          {"masked", options.mask.valid()},
          {"scale", options.scale.value_or(1 / std::sqrt(width))},
          {"dropout", options.dropout},
          {"site", options.dropout > 0 ? options.random.site : int64_t{0}}};
}

Tensor attention(Tensor q, Tensor k, Tensor v, AttentionOptions options, SourceLoc loc) {
  require_tensor("attention", "q", q, loc);
  require_tensor("attention", "k", k, loc);
  require_tensor("attention", "v", v, loc);
  return apply_all("attention", attention_operands("attention", {q, k, v}, options, loc),
                   attention_attributes(q, options), loc)[0];
}

}  // namespace fullbore
