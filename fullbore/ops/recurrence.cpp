#include "fullbore/ops/recurrence.h"

#include <algorithm>

#include "fullbore/ops/compose.h"
#include "fullbore/ops/operand_names.h"
#include "fullbore/ops/rules.h"

namespace fullbore {

RecurrenceShape::RecurrenceShape(const TensorType& k, const TensorType& v, const TensorType& g,
                                 const Attributes& attributes)
    : batch(v.shape[0]),
      tokens(v.shape[1]),
      heads(v.shape[2]),
      groups(k.shape[2]),
      keys(k.shape[3]),
      values(v.shape[3]),
      decays(g.shape[3]),
      chunk(std::max<int64_t>(1, std::min(tokens, attributes.get<int64_t>("chunk")))),
      chunks((tokens + chunk - 1) / chunk),
      inclusive(attributes.get<bool>("inclusive")),
      resets(attributes.get<bool>("resets")) {}

double recurrence_pair_flops(const RecurrenceShape& shape) {
  return static_cast<double>((shape.chunk + 1) * (shape.keys + shape.values));
}
double recurrence_state_flops(const RecurrenceShape& shape) {
  return static_cast<double>(2 * shape.keys * shape.values);
}

Attributes recurrence_attributes(int64_t chunk, bool inclusive, bool resets) {
  return {{"chunk", chunk}, {"inclusive", inclusive}, {"resets", resets}};
}

RecurrenceShape require_recurrence(const OpCall& call, size_t k, size_t v, size_t g) {
  require_dtype(call, k, "k", DTypeSet::floating);
  for (const auto& [index, name] : {std::pair{k, "k"}, {v, "v"}, {g, "log-decays"}})
    require_rank(call, index, name, 4);
  require_same_dtype(call, k, "k", v, "v");
  if (const auto chunk = require_attribute<int64_t>(call, "chunk"); chunk < 1)
    call.fail(fmt::format("a chunk has 1 token or more, not {}", chunk));
  require_attribute<bool>(call, "inclusive");
  require_attribute<bool>(call, "resets");
  const RecurrenceShape shape(call.inputs[k], call.inputs[v], call.inputs[g], call.attributes);
  const std::string both =
      operand_text("k", call.inputs[k]) + " and " + operand_text("v", call.inputs[v]);
  if (call.inputs[k].shape[0] != shape.batch || call.inputs[k].shape[1] != shape.tokens)
    call.fail(both + " differ in batch or tokens");
  if (shape.groups == 0 || shape.heads % shape.groups != 0)
    call.fail(fmt::format("{}: {} heads are no multiple of {}", both, shape.heads, shape.groups));
  if (shape.keys == 0 || shape.values == 0) call.fail(both + " have heads of no width");
  if (shape.decays != 1 && shape.decays != shape.keys)
    call.fail(fmt::format("needs log-decays of width {} or 1, got {}", shape.keys,
                          call.inputs[g].text()));
  require_operand(call, g, "log-decays", {shape.batch, shape.tokens, shape.heads, shape.decays});
  require_elements(call, shape.states());
  return shape;
}

void require_operand(const OpCall& call, size_t index, std::string_view name, const Shape& shape,
                     bool wide) {
  const DType dtype = call.inputs[0].dtype;
  const TensorType& type = call.inputs[index];
  OperandNames::note(name, type);
  if (type.shape == shape && (type.dtype == dtype || (wide && type.dtype == compute_dtype(dtype))))
    return;
  call.fail(fmt::format("needs {} {}, got {}", name,
                        TensorType{wide ? compute_dtype(dtype) : dtype, shape}.text(),
                        type.text()));
}

void require_resets(const OpCall& call, size_t index, const RecurrenceShape& shape) {
  require_inputs(call, index + (shape.resets ? 1 : 0));
  if (!shape.resets) return;
  const TensorType wanted{DType::boolean, {shape.batch, shape.tokens}};
  OperandNames::note("resets", call.inputs[index]);
  if (call.inputs[index] != wanted)
    call.fail(fmt::format("needs resets {}, got {}", wanted.text(), call.inputs[index].text()));
}

namespace {

size_t index_of_initial(const Attributes& attributes) {
  return attributes.get<bool>("inclusive") ? 4 : 5;
}
size_t index_of_initial(const OpCall& call) {
  return require_attribute<bool>(call, "inclusive") ? 4 : 5;
}

std::vector<TensorType> infer(const OpCall& call) {
  const size_t initial = index_of_initial(call);
  require_inputs(call, initial + 1, initial + 2);
  const RecurrenceShape shape = require_recurrence(call, 1, 2, 3);
  require_operand(call, 0, "r", call.inputs[1].shape, false);
  require_same_dtype(call, 0, "r", 1, "k");
  if (shape.bonus()) require_operand(call, 4, "the bonus", {shape.heads, shape.keys});
  require_operand(call, initial, "the initial state", shape.state());
  require_resets(call, initial + 1, shape);
  return {call.inputs[2], {compute_dtype(call.inputs[0].dtype), shape.state()}};
}

// The state before a single chunk is the initial one: then the op is dead where nobody asks for the last one.
// Of a single token it makes both in one sweep.
std::vector<Tensor> states(std::vector<Tensor> operands, Tensor resets, const Attributes& of,
                           bool reverse, SourceLoc loc) {
  Attributes attributes = of;
  attributes.set("reverse", reverse);
  if (resets.valid()) operands.push_back(resets);
  std::vector<Tensor> made = apply_all("recurrence_states", operands, attributes, loc);
  const RecurrenceShape shape(operands[0].type(), operands[1].type(), operands[2].type(),
                              attributes);
  if (shape.chunks == 1 && shape.tokens > 1)
    made[0] = expand_dims(as_dtype(operands[3], made[0].dtype()), 0);
  return made;
}

std::vector<Tensor> decompose(const DecomposeCall& call) {
  const auto& x = call.inputs;
  const size_t initial = index_of_initial(call.attributes);
  const Tensor resets = x.size() > initial + 1 ? x[initial + 1] : Tensor();
  const std::vector<Tensor> made =
      states({x[1], x[2], x[3], x[initial]}, resets, call.attributes, false, call.loc);
  std::vector<Tensor> operands(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(initial));
  operands.push_back(made[0]);
  if (resets.valid()) operands.push_back(resets);
  return {apply_all("recurrence_outputs", operands, call.attributes, call.loc)[0], made[1]};
}

// The states at the borders once more, of which the forward pass made the same; their cotangents; and
// then each chunk by itself.
std::vector<Tensor> vjp(const VjpCall& call) {
  const auto& x = call.inputs;
  const size_t initial = index_of_initial(call.attributes);
  const Tensor resets = x.size() > initial + 1 ? x[initial + 1] : Tensor();
  const Tensor dy = call.cotangents[0].valid() ? call.cotangents[0] : zeros_like(call.outputs[0]);
  const Tensor dlast =
      call.cotangents[1].valid() ? call.cotangents[1] : zeros_like(call.outputs[1]);
  const std::vector<Tensor> borders =
      states({x[1], x[2], x[3], x[initial]}, resets, call.attributes, false, call.loc);
  const std::vector<Tensor> slopes =
      states({x[0], dy, x[3], dlast}, resets, call.attributes, true, call.loc);
  std::vector<Tensor> operands = {x[0], x[1], x[2], dy, x[3]};
  if (initial == 5) operands.push_back(x[4]);
  operands.insert(operands.end(), {borders[0], slopes[0]});
  if (resets.valid()) operands.push_back(resets);
  const std::vector<Tensor> made =
      apply_all("recurrence_gradient", operands, call.attributes, call.loc);
  std::vector<Tensor> cotangents(x.size());
  std::copy(made.begin(), made.begin() + 3, cotangents.begin());
  cotangents[3] = as_dtype(made[3], x[3].dtype());
  if (initial == 5) cotangents[4] = as_dtype(reduce_sum(made[4], {0, 1}), x[4].dtype());
  cotangents[initial] = as_dtype(slopes[1], x[initial].dtype());
  return cotangents;
}

std::vector<ErrorSample> error_samples() {
  const auto f32 = [](Shape shape) { return TensorType{DType::f32, std::move(shape)}; };
  const TensorType r = f32({2, 5, 4, 3}), v = f32({2, 5, 4, 6}), u = f32({4, 3});
  const TensorType state = f32({2, 4, 3, 6});
  const Attributes plain = recurrence_attributes(16, false, false);
  const Attributes reset = recurrence_attributes(16, false, true);
  return {
      {"no state", {r, r, v, r, u}, plain, "needs 6 to 7 operands, got 5"},
      {"tokens that differ",
       {r, f32({2, 6, 4, 3}), v, r, u, state},
       plain,
       "differ in batch or tokens"},
      {"heads that cannot share",
       {r, f32({2, 5, 3, 3}), v, r, u, state},
       plain,
       "4 heads are no multiple of 3"},
      {"r of other keys", {v, r, v, r, u, state}, plain, "needs r f32[2,5,4,3], got f32[2,5,4,6]"},
      {"two dtypes", {r, r, {DType::bf16, v.shape}, r, u, state}, plain, "differ in dtype"},
      {"integers", {r, {DType::i32, r.shape}, v, r, u, state}, plain, "needs floating k"},
      {"decays of another width",
       {r, r, v, f32({2, 5, 4, 2}), u, state},
       plain,
       "needs log-decays of width 3 or 1, got f32[2,5,4,2]"},
      {"decays of other heads",
       {r, r, v, f32({2, 5, 2, 3}), u, state},
       plain,
       "needs log-decays f32[2,5,4,3], got f32[2,5,2,3]"},
      {"a bonus for all heads",
       {r, r, v, r, f32({3}), state},
       plain,
       "needs the bonus f32[4,3], got f32[3]"},
      {"a state transposed",
       {r, r, v, r, u, f32({2, 4, 6, 3})},
       plain,
       "needs the initial state f32[2,4,3,6], got f32[2,4,6,3]"},
      {"resets of numbers",
       {r, r, v, r, u, state, f32({2, 5})},
       reset,
       "needs resets bool[2,5], got f32[2,5]"},
      {"resets that are not there", {r, r, v, r, u, state}, reset, "needs 7 operands, got 6"},
      {"no chunk",
       {r, r, v, r, u, state},
       recurrence_attributes(0, false, false),
       "a chunk has 1 token or more, not 0"},
  };
}

const OpRegistrar linear_recurrence_op(OpDef{
    .name = "linear_recurrence",
    .summary = "y_t = r_t S_t with a matrix S_t that decays and takes k_t^T v_t, token by token",
    .tags = Tag::composite | Tag::contraction,
    .infer = infer,
    .vjp = vjp,
    .decompose = decompose,
    .reference = linear_recurrence_reference,
    .samples = linear_recurrence_samples,
    .error_samples = error_samples,
    .contracted_operands = 3,  // r, k, v
});

}  // namespace
}  // namespace fullbore
