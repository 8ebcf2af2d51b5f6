#include "fullbore/ops/attention.h"

#include <cmath>
#include <limits>

#include "fullbore/ops/compose.h"
#include "fullbore/ops/rules.h"

namespace fullbore {

AttentionShape::AttentionShape(std::span<const TensorType> inputs, const Attributes& attributes)
    : batch(inputs[0].shape[0]),
      heads(inputs[0].shape[1]),
      groups(inputs[1].shape[1]),
      queries(inputs[0].shape[2]),
      keys(inputs[1].shape[2]),
      width(inputs[0].shape[3]),
      causal(attributes.get<bool>("causal")),
      masked(attributes.get<bool>("masked")),
      scale(attributes.get<double>("scale")),
      dropout(attributes.get<double>("dropout")) {}

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const TensorType kIndex{DType::i64, {}};

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
  const TensorType& mask = call.inputs[3];
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

std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 3, 7);
  require_operand_shapes(call);
  for (const std::string_view name : {"causal", "masked"}) require_attribute<bool>(call, name);
  require_attribute<double>(call, "scale");
  const double dropout = require_attribute<double>(call, "dropout");
  require_attribute<int64_t>(call, "site");
  if (!(dropout >= 0 && dropout < 1))
    call.fail(fmt::format("dropout {} is not in [0, 1)", dropout));
  const AttentionShape shape(call.inputs, call.attributes);
  const size_t fixed = shape.first_random();
  require_inputs(call, fixed + (dropout > 0 ? 2 : 0), fixed + (dropout > 0 ? 3 : 0));
  if (shape.masked) require_mask(call, shape);
  for (size_t i = fixed; i < call.inputs.size(); ++i)
    if (call.inputs[i] != kIndex)
      call.fail(
          fmt::format("needs i64 scalars as source of its dropout, got {}", call.inputs[i].text()));
  require_elements(call, {shape.batch, shape.heads, shape.queries, shape.keys});
  return {call.inputs[0]};
}

// Which keys each query sees, broadcast to [B,H,T,S]; invalid if all of them.
Tensor visible_keys(const DecomposeCall& call, const AttentionShape& shape) {
  Tensor visible;
  if (shape.masked && call.inputs[3].dtype() == DType::boolean) visible = call.inputs[3];
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

// The queries of the heads that share keys are rows of one product: [B,G,(H/G)T,D].
std::vector<Tensor> decompose(const DecomposeCall& call) {
  std::vector<TensorType> types;
  for (const Tensor& input : call.inputs) types.push_back(input.type());
  const AttentionShape shape(types, call.attributes);
  const DType dtype = types[0].dtype;
  const DType compute = compute_dtype(dtype);
  const int64_t rows = shape.heads / shape.groups * shape.queries;
  const Shape by_head{shape.batch, shape.heads, shape.queries, shape.keys};

  const Tensor q = reshape(call.inputs[0], {shape.batch, shape.groups, rows, shape.width});
  const Tensor products = matmul(q, call.inputs[1], {.transpose_b = true, .out_dtype = compute});
  Tensor scores = reshape(products, by_head) * shape.scale;
  if (shape.masked && types[3].dtype != DType::boolean)
    scores = scores + as_dtype(call.inputs[3], compute);
  const Tensor visible = visible_keys(call, shape);
  if (visible.valid()) scores = select(visible, scores, -kInfinity);

  Tensor weights = softmax(scores, -1);
  if (shape.dropout > 0) {
    const size_t first = shape.first_random();
    const Tensor trip = call.inputs.size() > first + 2 ? call.inputs[first + 2] : Tensor();
    weights = dropout(weights, shape.dropout,
                      {.seed = call.inputs[first],
                       .step = call.inputs[first + 1],
                       .site = call.attributes.get<int64_t>("site"),
                       .trip = trip});
  }
  const Tensor grouped =
      reshape(as_dtype(weights, dtype), {shape.batch, shape.groups, rows, shape.keys});
  return {reshape(matmul(grouped, call.inputs[2]), types[0].shape)};
}

// No vjp: the gradient of the decomposition is softmax's and matmul's, which are as good as any that
// could be written here, and a mask of numbers gets its cotangent too.
const OpRegistrar attention_op(OpDef{
    .name = "attention",
    .summary = "softmax(q k^T scale + mask) v, for heads that may share keys",
    .tags = Tag::composite,
    .infer = infer,
    .decompose = decompose,
    .reference = attention_reference,
    .samples = attention_samples,
    .error_samples = attention_error_samples,
});

}  // namespace

Tensor attention(Tensor q, Tensor k, Tensor v, AttentionOptions options, SourceLoc loc) {
  require_tensor("attention", "q", q, loc);
  require_tensor("attention", "k", k, loc);
  require_tensor("attention", "v", v, loc);
  std::vector<Tensor> operands = {q, k, v};
  if (options.mask.valid()) operands.push_back(options.mask);
  if (options.dropout > 0) {
    require_tensor("attention", "the source's seed", options.random.seed, loc);
    require_tensor("attention", "the source's step", options.random.step, loc);
    operands.insert(operands.end(), {options.random.seed, options.random.step});
    if (options.random.trip.valid()) operands.push_back(options.random.trip);
  }
  const double width = q.rank() > 0 ? static_cast<double>(q.dim(-1)) : 1;
  const Attributes attributes{{"causal", options.causal},
                              {"masked", options.mask.valid()},
                              {"scale", options.scale.value_or(1 / std::sqrt(width))},
                              {"dropout", options.dropout},
                              {"site", options.dropout > 0 ? options.random.site : int64_t{0}}};
  return apply_all("attention", operands, attributes, loc)[0];
}

}  // namespace fullbore
