#include "fullbore/ops/linear_cross_entropy.h"

#include <algorithm>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/ops/operand_names.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

constexpr int64_t kBlockBytes = 32 << 20;
constexpr int64_t kFewestRows = 512;
// Slopes are multiplied by it and their products divided by it: exact, and in fp16 the shares of
// classes that are hardly likely, of which there are many, are not lost.
constexpr double kSlopeScale = 64;

}  // namespace

Attributes linear_cross_entropy_attributes(const CrossEntropyOptions& options, bool weighted,
                                           int64_t rows) {
  Attributes attributes = cross_entropy_attributes(options);
  attributes.set("weighted", weighted);
  attributes.set("rows", rows);
  return attributes;
}

int64_t linear_cross_entropy_rows(int64_t classes) {
  return std::max(kFewestRows, kBlockBytes / (4 * std::max<int64_t>(1, classes)));
}

void require_linear_cross_entropy(const OpCall& call) {
  require_cross_entropy_attributes(call);
  const bool weighted = require_attribute<bool>(call, "weighted");
  require_linear_rows(call, weighted ? 4 : 3);
  const TensorType& hidden = call.inputs[0];
  if (call.inputs[1].shape[0] == 0)
    call.fail(fmt::format("{} has no classes", operand_text("weight", call.inputs[1])));
  if (!weighted) return;
  const TensorType& weights = call.inputs[3];
  OperandNames::note("weights", weights);
  const bool fits = weights.dtype == hidden.dtype || weights.dtype == compute_dtype(hidden.dtype);
  if (!fits || weights.shape != call.inputs[2].shape)
    call.fail(fmt::format("needs weights {}, got {}",
                          TensorType{compute_dtype(hidden.dtype), call.inputs[2].shape}.text(),
                          weights.text()));
}

LinearCrossEntropy::LinearCrossEntropy(std::span<const Tensor> inputs, const Attributes& attributes)
    : hidden_(inputs[0]),
      weight_(inputs[1]),
      targets_(inputs[2]),
      options_(cross_entropy_options(attributes)),
      blocks_(hidden_.dim(0), attributes.get<int64_t>("rows")) {
  if (attributes.get<bool>("weighted")) weights_ = widened(inputs[3]);
}

LinearCrossEntropy::RowBlock LinearCrossEntropy::block(Tensor hidden, Tensor targets,
                                                       Tensor weights, bool gradient) const {
  const Tensor logits = linear(hidden, weight_);
  RowBlock made{cross_entropy(logits, targets, options_)};
  if (!gradient) return made;
  Tensor slopes = cross_entropy_slopes(logits, targets, options_) * kSlopeScale;
  if (weights.valid()) slopes = slopes * expand_dims(weights, 1);
  slopes = as_dtype(slopes, hidden.dtype());
  made.hidden = matmul(slopes, weight_);
  made.weight =
      matmul(slopes, hidden, {.transpose_a = true, .out_dtype = compute_dtype(hidden.dtype())});
  return made;
}

LinearCrossEntropy::Result LinearCrossEntropy::run(bool gradient) const {
  Result result;
  if (blocks_.count() == 1) {
    const RowBlock all = block(hidden_, targets_, weights_, gradient);
    result = {{}, all.losses, all.hidden, all.weight};
  } else {
    // Behind the last row targets are -1, which is ignored.
    std::vector<Tensor> sliced = {blocks_.cut(hidden_), blocks_.cut_targets(targets_)};
    if (weights_.valid()) sliced.push_back(blocks_.cut(weights_));
    std::vector<Tensor> carried;
    const DType sum_dtype = compute_dtype(hidden_.dtype());
    if (gradient) carried.push_back(full(hidden_.builder(), {sum_dtype, weight_.shape()}, 0));
    const LoopResult made =
        loop(hidden_.builder(), carried, sliced, {.iterations = blocks_.count()},
             [&](const LoopBody& body) {
               const RowBlock each = block(body.slices[0], body.slices[1],
                                           weights_.valid() ? body.slices[2] : Tensor(), gradient);
               if (!gradient) return IterationResults{.carried = {}, .stacked = {each.losses}};
               return IterationResults{.carried = {body.carried[0] + each.weight},
                                       .stacked = {each.losses, each.hidden}};
             });
    result.losses = blocks_.joined(made.stacked[0]);
    if (gradient) result.hidden = blocks_.joined(made.stacked[1]);
    if (gradient) result.weight = made.carried[0];
  }
  if (gradient) result.hidden = as_dtype(widened(result.hidden) / kSlopeScale, hidden_.dtype());
  if (gradient) result.weight = result.weight / kSlopeScale;
  result.sum = reduce_sum(weights_.valid() ? result.losses * weights_ : result.losses, {0});
  return result;
}

namespace {

std::vector<TensorType> infer(const OpCall& call) {
  require_linear_cross_entropy(call);
  return {{compute_dtype(call.inputs[0].dtype), {}}};
}

std::vector<Tensor> decompose(const DecomposeCall& call) {
  return {LinearCrossEntropy(call.inputs, call.attributes).run(false).sum};
}

// The cotangents of a result of 1, times the one there is.
std::vector<Tensor> vjp(const VjpCall& call) {
  const std::vector<Tensor> made =
      apply_all("linear_cross_entropy_gradient", call.inputs, call.attributes, call.loc);
  const Tensor factor = call.cotangents[0];
  const auto scaled = [&](Tensor x, Tensor like) {
    return as_dtype(widened(x) * factor, like.dtype());
  };
  std::vector<Tensor> cotangents(call.inputs.size());
  if (call.wanted[0]) cotangents[0] = scaled(made[2], call.inputs[0]);
  if (call.wanted[1]) cotangents[1] = scaled(made[3], call.inputs[1]);
  if (call.inputs.size() > 3 && call.wanted[3]) cotangents[3] = scaled(made[1], call.inputs[3]);
  return cotangents;
}

const OpRegistrar linear_cross_entropy_op(OpDef{
    .name = "linear_cross_entropy",
    .summary = "sum of the cross-entropies of hidden weight^T, whose logits never exist whole",
    .tags = Tag::composite,
    .infer = infer,
    .vjp = vjp,
    .decompose = decompose,
    .reference = linear_cross_entropy_reference,
    .samples = linear_cross_entropy_samples,
    .error_samples = linear_cross_entropy_error_samples,
    .included_in = &op::linear_cross_entropy_gradient,
});

/// A call whose rows are the leading axes of `hidden`.
struct RowsCall {
  std::vector<Tensor> operands;
  Attributes attributes;
  Shape leading;
};

RowsCall rows_call(Tensor hidden, Tensor weight, Tensor targets,
                   const LinearCrossEntropyOptions& options, SourceLoc loc) {
  require_tensor("linear_cross_entropy", "hidden", hidden, loc);
  require_tensor("linear_cross_entropy", "weight", weight, loc);
  require_tensor("linear_cross_entropy", "targets", targets, loc);
  if (hidden.rank() == 0) throw UsageError("linear_cross_entropy: hidden is a scalar", loc);
  const Shape leading = hidden.shape().slice(0, hidden.rank() - 1);
  const auto require_rows = [&](std::string_view name, Tensor x) {
    if (x.shape() != leading)
      throw UsageError(
          fmt::format("linear_cross_entropy: {} needs {} for each row, got {}",
                      operand_text("hidden", hidden.type()), name, operand_text(name, x.type())),
          loc);
  };
  require_rows("targets", targets);
  if (options.weights.valid()) require_rows("weights", options.weights);
  const int64_t rows = leading.elements();
  const int64_t at_once = options.rows != 0 || weight.rank() == 0
                              ? options.rows
                              : linear_cross_entropy_rows(weight.dim(0));
  std::vector<Tensor> operands = {reshape(hidden, {rows, hidden.dim(-1)}, loc), weight,
                                  reshape(targets, {rows}, loc)};
  if (options.weights.valid()) operands.push_back(reshape(options.weights, {rows}, loc));
  return {std::move(operands),
          linear_cross_entropy_attributes(options.loss, options.weights.valid(), at_once), leading};
}

}  // namespace

Tensor linear_cross_entropy(Tensor hidden, Tensor weight, Tensor targets,
                            LinearCrossEntropyOptions options, SourceLoc loc) {
  const RowsCall call = rows_call(hidden, weight, targets, options, loc);
  return apply_all("linear_cross_entropy", call.operands, call.attributes, loc)[0];
}

// The gradient's op has them; where nobody asks for the gradient, its cotangents are dead code.
Tensor linear_cross_entropy_losses(Tensor hidden, Tensor weight, Tensor targets,
                                   LinearCrossEntropyOptions options, SourceLoc loc) {
  const RowsCall call = rows_call(hidden, weight, targets, options, loc);
  const auto results =
      apply_all("linear_cross_entropy_gradient", call.operands, call.attributes, loc);
  return stop_gradient(reshape(results[1], call.leading, loc));
}

}  // namespace fullbore
