#include "fullbore/ops/update_rows.h"

#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 3);
  require_rank_at_least(call, 0, "x", 1);
  require_same_dtype(call, 0, "x", 1, "updates");
  require_dtype(call, 2, "indices", DTypeSet::integer);
  const Shape& x = call.inputs[0].shape;
  Shape shape = call.inputs[2].shape;
  for (int axis = 1; axis < x.rank(); ++axis) shape = shape.inserted(shape.rank(), x[axis]);
  if (call.inputs[1].shape != shape)
    call.fail(fmt::format("needs {} updates for {} and {}, got {}", shape.text(),
                          operand_text("x", call.inputs[0]),
                          operand_text("indices", call.inputs[2]), call.inputs[1].text()));
  return {call.inputs[0]};
}

void reference(ReferenceCall& call) {
  const Literal& updates = *call.inputs[1];
  const Literal& indices = *call.inputs[2];
  Literal& y = call.outputs[0];
  y = *call.inputs[0];
  const AxisView rows(y.shape(), 0);
  for (int64_t i = 0; i < indices.elements(); ++i) {
    const int64_t row = indices.integers()[static_cast<size_t>(i)];
    if (row < 0 || row >= rows.extent) continue;
    for (int64_t n = 0; n < rows.inner; ++n)
      copy_element(y, row * rows.inner + n, updates, i * rows.inner + n);
  }
}

// An update counts if no later one is for the same row: `last` names it by row, from 1.
std::vector<Tensor> vjp(const VjpCall& call) {
  const Tensor dy = call.cotangents[0];
  const Tensor updates = call.inputs[1];
  const Tensor indices = call.inputs[2];
  Tensor dx, dupdates;
  if (call.wanted[0]) dx = update_rows(dy, zeros_like(updates), indices);
  if (call.wanted[1]) {
    const int64_t rows = call.inputs[0].dim(0);
    const Tensor order = iota(dy.builder(), {DType::i64, {indices.type().elements()}}, 0);
    const Tensor numbers = reshape(order, indices.shape());
    const Tensor last = gather(
        update_rows(full(dy.builder(), {DType::i64, {rows}}, -1), numbers, indices), indices);
    const Shape ones =
        Shape(std::vector<int64_t>(static_cast<size_t>(updates.rank() - indices.rank()), 1));
    Shape shape = indices.shape();
    for (int axis = 0; axis < ones.rank(); ++axis) shape = shape.inserted(shape.rank(), 1);
    const Tensor counts = reshape(equal(last, numbers), shape);
    // What gather reads out of range is zero already, but so is `last` there, which is a number.
    dupdates = select(broadcast_to(counts, updates.shape()), gather(dy, indices), 0.0);
  }
  return {dx, dupdates, {}};
}

Cost cost(const CostCall& call) {
  // In place: x is neither read nor written but where there are updates.
  return {0, static_cast<double>(call.inputs[2].bytes()) +
                 2 * static_cast<double>(call.inputs[1].bytes())};
}

Sample sample(std::string why, Shape x, Shape indices, double low, double high) {
  Shape updates = indices;
  for (int axis = 1; axis < x.rank(); ++axis) updates = updates.inserted(updates.rank(), x[axis]);
  return {
      .why = std::move(why),
      .inputs = {SampleInput::normal({DType::f32, x}), SampleInput::normal({DType::f32, updates}),
                 SampleInput::integers({DType::i32, std::move(indices)}, low, high)},
      .attributes = {}};
}

std::vector<Sample> samples() {
  return {
      sample("places of a pool of pages", {64, 2, 5}, {3, 2}, 0, 64),
      sample("several updates of a row: the last counts", {3, 4}, {17}, 0, 3),
      sample("indices out of range write nothing", {5, 3}, {9}, -4, 9),
      sample("rows of one element", {9}, {4}, 0, 9),
      sample("one index", {4, 3}, {}, 0, 4),
      sample("rows of more than a vector", {6, 67}, {5}, 0, 6),
      sample("no updates", {4, 3}, {0}, 0, 4),
      sample("no rows", {0, 3}, {2}, 0, 4),
      sample("rows of no elements", {4, 0}, {2}, 0, 4),
  };
}

std::vector<ErrorSample> errors() {
  const TensorType x{DType::f32, {4, 2}};
  const TensorType indices{DType::i32, {3}};
  return {{"updates of other rows",
           {x, {DType::f32, {3, 3}}, indices},
           {},
           "needs [3,2] updates for x f32[4,2] and indices i32[3], got f32[3,3]"},
          {"two dtypes",
           {x, {DType::bf16, {3, 2}}, indices},
           {},
           "x f32[4,2] and updates bf16[3,2] differ in dtype"},
          {"indices that are no integers",
           {x, {DType::f32, {3, 2}}, {DType::f32, {3}}},
           {},
           "needs integer indices, got f32[3]"}};
}

const OpRegistrar update_rows_op(OpDef{
    .name = "update_rows",
    .summary = "x with rows replaced by index",
    .infer = infer,
    .vjp = vjp,
    .cost = cost,
    .reference = reference,
    .samples = samples,
    .error_samples = errors,
});

}  // namespace

Tensor update_rows(Tensor x, Tensor updates, Tensor indices, SourceLoc loc) {
  require_tensor("update_rows", "x", x, loc);
  require_tensor("update_rows", "updates", updates, loc);
  require_tensor("update_rows", "indices", indices, loc);
  return apply("update_rows", {x, updates, indices}, {}, loc);
}

}  // namespace fullbore
