#include "fullbore/ops/linear_log_probability.h"

#include <algorithm>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/ops/cross_entropy.h"
#include "fullbore/ops/operand_names.h"
#include "fullbore/ops/rules.h"
#include "fullbore/ops/softmax.h"

namespace fullbore {

Attributes linear_log_probability_attributes(int64_t classes, int64_t rows) {
  return {{"classes", classes}, {"rows", rows}};
}

void require_linear_log_probability(const OpCall& call, bool gradient) {
  const int64_t classes = require_attribute<int64_t>(call, "classes");
  require_linear_rows(call, gradient ? 5 : 3);
  const TensorType& hidden = call.inputs[0];
  const TensorType& weight = call.inputs[1];
  if (classes < 1 || classes > weight.shape[0])
    call.fail(fmt::format("{} has not {} classes", operand_text("weight", weight), classes));
  const Shape& rows = call.inputs[2].shape;
  if (!gradient) return;
  for (const size_t i : {3u, 4u}) {
    const TensorType& given = call.inputs[i];
    OperandNames::note(i == 3 ? "dlog_probability" : "dentropy", given);
    const bool fits = given.dtype == hidden.dtype || given.dtype == compute_dtype(hidden.dtype);
    if (!fits || given.shape != rows)
      call.fail(fmt::format("needs cotangents {}, got {}",
                            TensorType{compute_dtype(hidden.dtype), rows}.text(), given.text()));
  }
}

TokenScores token_scores(Tensor logits, Tensor targets, int64_t classes) {
  Tensor x = widened(logits);
  const int axis = x.rank() - 1;
  if (classes > 0 && classes < x.dim(axis)) x = slice(x, axis, 0, classes);
  const Exponentials e = exponentials(x, axis);
  const Tensor sum = nonzero_sum(e);
  // One walk over the row makes all of these; an element that was fetched would be a second one.
  const Tensor hit = one_hot(targets, x.dim(axis), DType::boolean);
  const Tensor aim = squeeze(reduce_sum(select(hit, e.shifted, 0.0), {axis}, true), axis);
  // 0 log 0 is 0: where a class is masked there is nothing to multiply.
  const Tensor parts = select(greater(e.values, 0.0), e.values * e.shifted, 0.0);
  const Tensor mean = squeeze(reduce_sum(parts, {axis}, true) / sum, axis);
  const Tensor log_sum = squeeze(log(sum), axis);
  const Tensor counted = counted_rows(targets, x.dim(axis), {});
  return {select(counted, aim - log_sum, 0.0), select(counted, log_sum - mean, 0.0)};
}

int64_t linear_log_probability_rows(int64_t classes) {
  constexpr int64_t kBlockBytes = 32 << 20, kFewestRows = 64;
  return std::max(kFewestRows, kBlockBytes / (4 * std::max<int64_t>(1, classes)));
}

namespace {

// With p the softmax, l its logarithm and H its entropy: d l[t] = one_hot(t) - p, d H = -p (l + H).
Tensor score_slopes(Tensor logits, Tensor targets, int64_t classes, Tensor chosen, Tensor entropy) {
  Tensor x = widened(logits);
  const int64_t all = x.dim(1);
  if (classes < all) x = slice(x, 1, 0, classes);
  const Exponentials e = exponentials(x, 1);
  const Tensor sum = nonzero_sum(e);
  const Tensor p = e.values / sum;
  const Tensor parts = select(greater(e.values, 0.0), e.values * e.shifted, 0.0);
  // l + H = shifted - log sum + log sum - mean of shifted.
  const Tensor mean = reduce_sum(parts, {1}, true) / sum;
  const Tensor surprise = select(greater(e.values, 0.0), e.shifted - mean, 0.0);
  const Tensor hit = one_hot(targets, classes, x.dtype());
  Tensor slopes = (hit - p) * expand_dims(chosen, 1) - p * surprise * expand_dims(entropy, 1);
  slopes = select(expand_dims(counted_rows(targets, classes, {}), 1), slopes, 0.0);
  return classes < all ? pad(slopes, 1, 0, all - classes) : slopes;
}

std::vector<TensorType> infer(const OpCall& call) {
  require_linear_log_probability(call, false);
  const TensorType rows{compute_dtype(call.inputs[0].dtype), {call.inputs[0].shape[0]}};
  return {rows, rows};
}

std::vector<Tensor> decompose(const DecomposeCall& call) {
  const Tensor hidden = call.inputs[0], weight = call.inputs[1], targets = call.inputs[2];
  const int64_t classes = call.attributes.get<int64_t>("classes");
  const RowBlocks blocks(hidden.dim(0), call.attributes.get<int64_t>("rows"));
  if (blocks.count() == 1) {
    const TokenScores all = token_scores(linear(hidden, weight), targets, classes);
    return {all.log_probability, all.entropy};
  }
  const LoopResult made = loop(
      hidden.builder(), std::vector<Tensor>{},
      std::vector<Tensor>{blocks.cut(hidden), blocks.cut_targets(targets)},
      {.iterations = blocks.count()}, [&](const LoopBody& body) {
        const TokenScores each =
            token_scores(linear(body.slices[0], weight), body.slices[1], classes);
        return IterationResults{.carried = {}, .stacked = {each.log_probability, each.entropy}};
      });
  return {blocks.joined(made.stacked[0]), blocks.joined(made.stacked[1])};
}

// The logits are made anew: to keep them is what the op is there to avoid.
std::vector<Tensor> vjp(const VjpCall& call) {
  std::vector<Tensor> cotangents(call.inputs.size());
  if (!call.wanted[0] && !call.wanted[1]) return cotangents;
  std::vector<Tensor> operands(call.inputs.begin(), call.inputs.end());
  for (const size_t i : {0u, 1u})
    operands.push_back(call.cotangents[i].valid() ? call.cotangents[i]
                                                  : zeros_like(call.outputs[i]));
  const std::vector<Tensor> made =
      apply_all("linear_log_probability_gradient", operands, call.attributes, call.loc);
  if (call.wanted[0]) cotangents[0] = made[0];
  if (call.wanted[1]) cotangents[1] = made[1];
  return cotangents;
}

std::vector<TensorType> infer_gradient(const OpCall& call) {
  require_linear_log_probability(call, true);
  return {call.inputs[0], call.inputs[1]};
}

struct Cotangents {
  Tensor hidden;
  Tensor weight;  ///< in the dtype that sums are computed in
};

Cotangents cotangents_of_block(Tensor hidden, Tensor weight, Tensor targets, int64_t classes,
                               Tensor chosen, Tensor entropy) {
  const Tensor slopes = as_dtype(
      score_slopes(linear(hidden, weight), targets, classes, chosen, entropy), hidden.dtype());
  return {
      matmul(slopes, weight),
      matmul(slopes, hidden, {.transpose_a = true, .out_dtype = compute_dtype(hidden.dtype())})};
}

std::vector<Tensor> decompose_gradient(const DecomposeCall& call) {
  const Tensor hidden = call.inputs[0], weight = call.inputs[1], targets = call.inputs[2];
  const int64_t classes = call.attributes.get<int64_t>("classes");
  const RowBlocks blocks(hidden.dim(0), call.attributes.get<int64_t>("rows"));
  if (blocks.count() == 1) {
    const Cotangents all = cotangents_of_block(hidden, weight, targets, classes,
                                               widened(call.inputs[3]), widened(call.inputs[4]));
    return {all.hidden, as_dtype(all.weight, weight.dtype())};
  }
  const std::vector<Tensor> sliced = {blocks.cut(hidden), blocks.cut_targets(targets),
                                      blocks.cut(widened(call.inputs[3])),
                                      blocks.cut(widened(call.inputs[4]))};
  const Tensor none = full(hidden.builder(), {compute_dtype(hidden.dtype()), weight.shape()}, 0);
  const LoopResult made = loop(hidden.builder(), std::vector<Tensor>{none}, sliced,
                               {.iterations = blocks.count()}, [&](const LoopBody& body) {
                                 const Cotangents each =
                                     cotangents_of_block(body.slices[0], weight, body.slices[1],
                                                         classes, body.slices[2], body.slices[3]);
                                 return IterationResults{.carried = {body.carried[0] + each.weight},
                                                         .stacked = {each.hidden}};
                               });
  return {blocks.joined(made.stacked[0]), as_dtype(made.carried[0], weight.dtype())};
}

const OpRegistrar linear_log_probability_op(OpDef{
    .name = "linear_log_probability",
    .summary = "log-probability of a class a row and entropy by hidden weight^T, never whole",
    .tags = Tag::composite,
    .infer = infer,
    .vjp = vjp,
    .decompose = decompose,
    .reference = linear_log_probability_reference,
    .samples = linear_log_probability_samples,
    .error_samples = linear_log_probability_error_samples,
});

const OpRegistrar linear_log_probability_gradient_op(OpDef{
    .name = "linear_log_probability_gradient",
    .summary = "cotangents of linear_log_probability's hidden and weight",
    .tags = Tag::composite,
    .infer = infer_gradient,
    .decompose = decompose_gradient,
    .reference = linear_log_probability_gradient_reference,
    .samples = linear_log_probability_gradient_samples,
    .error_samples = linear_log_probability_gradient_error_samples,
});

}  // namespace

TokenScores linear_log_probability(Tensor hidden, Tensor weight, Tensor targets,
                                   const LinearLogProbabilityOptions& options, SourceLoc loc) {
  require_tensor("linear_log_probability", "hidden", hidden, loc);
  require_tensor("linear_log_probability", "weight", weight, loc);
  require_tensor("linear_log_probability", "targets", targets, loc);
  if (hidden.rank() == 0) throw UsageError("linear_log_probability: hidden is a scalar", loc);
  const Shape leading = hidden.shape().slice(0, hidden.rank() - 1);
  if (targets.shape() != leading)
    throw UsageError(
        fmt::format("linear_log_probability: {} needs a target for each row, got {}",
                    operand_text("hidden", hidden.type()), operand_text("targets", targets.type())),
        loc);
  const int64_t extent = weight.rank() == 0 ? 0 : weight.dim(0);
  const int64_t classes = options.classes > 0 ? options.classes : extent;
  const int64_t at_once = options.rows > 0 ? options.rows : linear_log_probability_rows(extent);
  const int64_t rows = leading.elements();
  const std::vector<Tensor> operands = {reshape(hidden, {rows, hidden.dim(-1)}, loc), weight,
                                        reshape(targets, {rows}, loc)};
  const std::vector<Tensor> made = apply_all(
      "linear_log_probability", operands, linear_log_probability_attributes(classes, at_once), loc);
  return {reshape(made[0], leading, loc), reshape(made[1], leading, loc)};
}

}  // namespace fullbore
