#include <limits>

#include "fullbore/ops/attention.h"
#include "fullbore/ops/compose.h"
#include "fullbore/ops/operand_names.h"
#include "fullbore/ops/random.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void require_operand_shapes(const OpCall& call) {
  constexpr std::string_view kNames[] = {"q", "k", "v"};
  for (size_t i = 0; i < 3; ++i) {
    require_dtype(call, i, kNames[i], DTypeSet::floating);
    require_rank(call, i, kNames[i], 4);
    if (i > 0) require_same_dtype(call, 0, "q", i, kNames[i]);
  }
  require_same_shape(call, 1, "k", 2, "v");
  const TensorType& q = call.inputs[0];
  const TensorType& k = call.inputs[1];
  const std::string both = operand_text("q", q) + " and " + operand_text("k", k);
  if (q.shape[0] != k.shape[0]) call.fail(both + " differ in batch");
  if (q.shape[3] != k.shape[3]) call.fail(both + " differ in width of head");
  if (q.shape[3] == 0) call.fail(both + " have heads of no width");
  if (k.shape[1] == 0 || q.shape[1] % k.shape[1] != 0)
    call.fail(fmt::format("{}: {} heads are no multiple of {}", both, q.shape[1], k.shape[1]));
}

// [B or 1, H or 1, T or 1, S], truth values or numbers to add.
void require_mask(const OpCall& call, const AttentionShape& shape) {
  const TensorType& mask = call.inputs[shape.mask];
  OperandNames::note("mask", mask);
  const DType dtype = call.inputs[0].dtype;
  if (mask.dtype != DType::boolean && mask.dtype != dtype && mask.dtype != compute_dtype(dtype))
    call.fail(fmt::format("needs a mask of bool or {}, got {}", dtype_name(dtype), mask.text()));
  const int64_t extents[] = {shape.batch, shape.heads, shape.queries};
  bool fits = mask.shape.rank() == 4 && mask.shape[3] == shape.keys;
  for (int axis = 0; fits && axis < 3; ++axis)
    fits = mask.shape[axis] == 1 || mask.shape[axis] == extents[axis];
  if (!fits)
    call.fail(fmt::format("needs a mask [{} or 1,{} or 1,{} or 1,{}], got {}", shape.batch,
                          shape.heads, shape.queries, shape.keys, mask.text()));
}

// Which keys each query sees, broadcast to [B,H,T,S]; invalid if all of them.
Tensor visible_keys(const AttentionCall& call) {
  const AttentionShape& shape = call.shape;
  Tensor visible;
  if (shape.masked && call.inputs[shape.mask].dtype() == DType::boolean)
    visible = call.inputs[shape.mask];
  if (shape.causal) {
    GraphBuilder& builder = call.inputs[0].builder();
    const TensorType positions{DType::i32, {shape.queries, shape.keys}};
    const Tensor last =
        iota(builder, positions, 0) + static_cast<double>(shape.keys - shape.queries);
    const Tensor causal = less_equal(iota(builder, positions, 1), last);
    visible = visible.valid() ? logical_and(visible, causal) : causal;
  }
  return visible;
}

std::vector<TensorType> types_of(std::span<const Tensor> tensors) {
  std::vector<TensorType> types;
  for (const Tensor& tensor : tensors) types.push_back(tensor.type());
  return types;
}

}  // namespace

AttentionShape::AttentionShape(std::span<const TensorType> inputs, const Attributes& attributes,
                               size_t operands)
    : batch(inputs[0].shape[0]),
      heads(inputs[0].shape[1]),
      groups(inputs[1].shape[1]),
      queries(inputs[0].shape[2]),
      keys(inputs[1].shape[2]),
      width(inputs[0].shape[3]),
      causal(attributes.get<bool>("causal")),
      masked(attributes.get<bool>("masked")),
      scale(attributes.get<double>("scale")),
      dropout(attributes.get<double>("dropout")),
      mask(operands),
      source(operands + (masked ? 1 : 0)) {}

double AttentionShape::pairs() const {
  double of_head = 0;
  for (int64_t t = 0; t < queries; ++t) of_head += static_cast<double>(visible(t));
  return static_cast<double>(batch * heads) * of_head;
}

AttentionShape require_attention(const OpCall& call, size_t operands) {
  require_inputs(call, operands, operands + 4);
  require_operand_shapes(call);
  for (const std::string_view name : {"causal", "masked"}) require_attribute<bool>(call, name);
  require_attribute<double>(call, "scale");
  const double dropout = require_attribute<double>(call, "dropout");
  require_attribute<int64_t>(call, "site");
  if (!(dropout >= 0 && dropout < 1))
    call.fail(fmt::format("dropout {} is not in [0, 1)", dropout));
  const AttentionShape shape(call.inputs, call.attributes, operands);
  require_inputs(call, shape.source + (dropout > 0 ? 2 : 0), shape.source + (dropout > 0 ? 3 : 0));
  if (shape.masked) require_mask(call, shape);
  for (size_t i = shape.source; i < call.inputs.size(); ++i) {
    constexpr std::string_view kNames[] = {"seed", "step", "iteration"};
    OperandNames::note(kNames[i - shape.source], call.inputs[i]);
    if (call.inputs[i] != kIndex)
      call.fail(
          fmt::format("needs i64 scalars as source of its dropout, got {}", call.inputs[i].text()));
  }
  require_elements(call, shape.by_head());
  if (dropout > 0) require_drawable(call, shape.by_head());
  return shape;
}

AttentionCall::AttentionCall(std::span<const Tensor> operands, const Attributes& options,
                             size_t count)
    : inputs(operands), attributes(options), shape(types_of(operands), options, count) {}

// The queries of the heads that share keys are rows of one matmul: [B,G,(H/G)T,D].
Tensor AttentionCall::scores() const {
  const DType compute = compute_dtype(inputs[0].dtype());
  const Tensor q = reshape(inputs[0], {shape.batch, shape.groups, shape.rows(), shape.width});
  const Tensor products = matmul(q, inputs[1], {.transpose_b = true, .out_dtype = compute});
  Tensor scores = reshape(products, shape.by_head()) * shape.scale;
  if (shape.masked && inputs[shape.mask].dtype() != DType::boolean)
    scores = scores + as_dtype(inputs[shape.mask], compute);
  const Tensor visible = visible_keys(*this);
  return visible.valid() ? select(visible, scores, -kInfinity) : scores;
}

Tensor AttentionCall::dropout_factors() const {
  if (shape.dropout == 0) return {};
  // A draw for eight keys of a query, the last for what is left: kernels make them tile by tile.
  const Shape draws{shape.batch, shape.heads, shape.queries, shape.draws_of_row()};
  const Tensor keep = slice(kept_by_draws(inputs.subspan(shape.source),
                                          attributes.get<int64_t>("site"), draws, shape.dropout),
                            3, 0, shape.keys);
  const TensorType type{compute_dtype(inputs[0].dtype()), shape.by_head()};
  return select(keep, full(keep.builder(), type, 1 / (1 - shape.dropout)), 0.0);
}

AttentionSlopes attention_slopes(const AttentionCall& call, Tensor dy, Tensor log_sum_exp,
                                 Tensor delta) {
  const AttentionShape& shape = call.shape;
  const DType compute = compute_dtype(dy.dtype());
  const auto per_row = [&](Tensor x) { return expand_dims(as_dtype(x, compute), 3); };
  const Tensor weights = exp(call.scores() - per_row(log_sum_exp));
  const Tensor rows = reshape(dy, {shape.batch, shape.groups, shape.rows(), shape.width});
  const Tensor products = matmul(rows, call.inputs[2], {.transpose_b = true, .out_dtype = compute});
  const Tensor slopes = reshape(products, shape.by_head());
  const Tensor factors = call.dropout_factors();
  if (!factors.valid()) return {weights, weights * (slopes - per_row(delta))};
  return {weights * factors, weights * (slopes * factors - per_row(delta))};
}

}  // namespace fullbore
