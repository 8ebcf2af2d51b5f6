#include "fullbore/ops/attention.h"
#include "fullbore/ops/compose.h"
#include "fullbore/ops/operand_names.h"
#include "fullbore/ops/rules.h"

/// The cotangents of attention's q, k and v from its operands and its row statistics, so that no
/// matrix of queries by keys need be kept between the passes: Dao 2023, arXiv:2307.08691, section
/// 3.1.2. The gradient of this op is that of its decomposition.
namespace fullbore {
namespace {

// [B,H,T] in the dtype that sums are computed in, or q's.
void require_statistic(const OpCall& call, size_t input, std::string_view name,
                       const AttentionShape& shape) {
  const DType dtype = call.inputs[0].dtype;
  const TensorType& type = call.inputs[input];
  OperandNames::note(name, type);
  const TensorType wanted{compute_dtype(dtype), {shape.batch, shape.heads, shape.queries}};
  if ((type.dtype != wanted.dtype && type.dtype != dtype) || type.shape != wanted.shape)
    call.fail(fmt::format("needs {} {}, got {}", name, wanted.text(), type.text()));
}

std::vector<TensorType> infer(const OpCall& call) {
  const AttentionShape shape = require_attention(call, kAttentionGradientOperands);
  OperandNames::note("dy", call.inputs[3]);
  if (call.inputs[3] != call.inputs[0])
    call.fail(
        fmt::format("needs dy {} as q, got {}", call.inputs[0].text(), call.inputs[3].text()));
  require_statistic(call, 4, "log_sum_exp", shape);
  require_statistic(call, 5, "delta", shape);
  return {call.inputs[0], call.inputs[1], call.inputs[2]};
}

std::vector<Tensor> decompose(const DecomposeCall& call) {
  const AttentionCall attention(call.inputs, call.attributes, kAttentionGradientOperands);
  const AttentionShape& shape = attention.shape;
  const Tensor q = call.inputs[0];
  const Tensor k = call.inputs[1];
  const Tensor dy = call.inputs[3];
  const AttentionSlopes slopes = attention_slopes(attention, dy, call.inputs[4], call.inputs[5]);
  const auto rows = [&](Tensor x) {
    return reshape(x, {shape.batch, shape.groups, shape.rows(), shape.width});
  };
  const auto narrow = [&](Tensor x) { return reshape(as_dtype(x, q.dtype()), shape.by_group()); };
  const Tensor ds = narrow(slopes.scores * shape.scale);
  return {reshape(matmul(ds, k), q.shape()), matmul(ds, rows(q), {.transpose_a = true}),
          matmul(narrow(slopes.dropped), rows(dy), {.transpose_a = true})};
}

// Of each pair five dot products, of which two make the weights and their cotangents anew.
Cost cost(const CostCall& call) {
  const AttentionShape shape(call.inputs, call.attributes, kAttentionGradientOperands);
  Cost cost = copy_cost(call);
  cost.flops =
      shape.pairs() * (10 * static_cast<double>(shape.width) + 5 + scalar_op_flops(ScalarOp::exp));
  return cost;
}

const OpRegistrar attention_gradient_op(OpDef{
    .name = "attention_gradient",
    .summary = "cotangents of attention's q, k, v from its operands and row statistics",
    .tags = Tag::composite | Tag::contraction,
    .infer = infer,
    .decompose = decompose,
    .cost = cost,
    .reference = attention_gradient_reference,
    .samples = attention_gradient_samples,
    .error_samples = attention_gradient_error_samples,
    .contracted_operands = 4,  // q, k, v, dy
});

}  // namespace
}  // namespace fullbore
