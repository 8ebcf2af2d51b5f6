#include <cmath>

#include "fullbore/ops/compose.h"
#include "fullbore/ops/rules.h"
#include "fullbore/ops/selection.h"

namespace fullbore {
namespace {

int axis_of(const Attributes& attributes) {
  return static_cast<int>(attributes.get<int64_t>("axis"));
}

// x [...], updates and indices [..., I, ...] -> y as x
std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 3);
  require_dtype(call, 0, "x", DTypeSet::numeric);
  require_same_dtype(call, 0, "x", 1, "updates");
  require_dtype(call, 2, "indices", DTypeSet::integer);
  require_same_shape(call, 1, "updates", 2, "indices");
  const TensorType &x = call.inputs[0], &updates = call.inputs[1];
  const int axis = require_axis(call, require_attribute<int64_t>(call, "axis"), "x", x);
  if (updates.shape.rank() != x.shape.rank() ||
      updates.shape.with(axis, 0) != x.shape.with(axis, 0))
    call.fail(fmt::format("updates {} do not fit {} along axis {}", updates.text(),
                          operand_text("x", x), axis));
  return {x};
}

// NaN counts as the largest.
bool exceeds(const Literal& updates, int64_t from, const Literal& y, int64_t to) {
  if (!y.floating())
    return updates.integers()[static_cast<size_t>(from)] > y.integers()[static_cast<size_t>(to)];
  return !std::isnan(y.at(to)) && !(updates.at(from) <= y.at(to));
}

void reference(ReferenceCall& call) {
  const Literal &updates = *call.inputs[1], &indices = *call.inputs[2];
  Literal& y = call.outputs[0];
  y = *call.inputs[0];
  const AxisView target(y.shape(), axis_of(call.attributes));
  const AxisView view(indices.shape(), axis_of(call.attributes));
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t i = 0; i < view.extent; ++i)
      for (int64_t n = 0; n < view.inner; ++n) {
        const int64_t from = view.at(o, i, n);
        const int64_t index = indices.integers()[static_cast<size_t>(from)];
        if (index < 0 || index >= target.extent) continue;
        const int64_t to = target.at(o, index, n);
        if (exceeds(updates, from, y, to)) copy_element(y, to, updates, from);
      }
}

// x's element and all updates that equal the maximum share the cotangent.
std::vector<Tensor> vjp(const VjpCall& call) {
  const Tensor x = call.inputs[0], updates = call.inputs[1], indices = call.inputs[2];
  const Tensor y = call.outputs[0], dy = widened(call.cotangents[0]);
  const int axis = axis_of(call.attributes);
  const Tensor kept = equal(x, y), taken = equal(updates, take_along_axis(y, indices, axis));
  const Tensor count = cast(kept, dy.dtype()) +
                       scatter_along_axis(cast(taken, dy.dtype()), indices, axis, x.dim(axis));
  const Tensor share = dy / maximum(count, 1.0);
  return {as_dtype(select(kept, share, 0.0), x.dtype()),
          as_dtype(select(taken, take_along_axis(share, indices, axis), 0.0), x.dtype()),
          {}};
}

std::vector<Sample> samples() {
  const auto of = [](const char* why, Shape x, const Shape& updates, int64_t axis, double high) {
    return Sample{.why = why,
                  .inputs = {SampleInput::normal({DType::f32, std::move(x)}),
                             SampleInput::normal({DType::f32, updates}),
                             SampleInput::integers({DType::i32, updates}, -1, high)},
                  .attributes = {{"axis", axis}}};
  };
  Sample ties = of("equal updates", {3}, {4}, 0, 3);
  ties.inputs[0] = SampleInput::given({DType::f32, {3}}, {1, 2, -HUGE_VAL});
  ties.inputs[1] = SampleInput::given({DType::f32, {4}}, {2, 2, 5, 1});
  ties.inputs[2] = SampleInput::given({DType::i32, {4}}, {1, 1, 2, 0});
  ties.gradcheck = false;
  return {of("the last axis, out of range too", {3, 4}, {3, 9}, 1, 6),
          of("the first axis", {5, 3}, {7, 3}, 0, 5),
          of("a middle axis, wider than 16 lanes", {2, 3, 17}, {2, 4, 17}, 1, 3),
          of("one axis, many for few", {2}, {129}, 0, 2),
          of("no updates", {3, 2}, {3, 0}, 1, 2),
          std::move(ties),
          {.why = "integers",
           .inputs = {SampleInput::integers({DType::i64, {4, 2}}, -9e18, 9e18),
                      SampleInput::integers({DType::i64, {5, 2}}, -9e18, 9e18),
                      SampleInput::integers({DType::u8, {5, 2}}, 0, 4)},
           .attributes = {{"axis", int64_t{0}}}}};
}

std::vector<ErrorSample> errors() {
  const TensorType x{DType::f32, {4, 2}}, updates{DType::f32, {3, 2}}, indices{DType::i32, {3, 2}};
  const Attributes first{{"axis", int64_t{0}}};
  return {{"another extent beside the axis",
           {x, {DType::f32, {3, 5}}, {DType::i32, {3, 5}}},
           first,
           "updates f32[3,5] do not fit x f32[4,2] along axis 0"},
          {"indices of another shape",
           {x, updates, {DType::i32, {2, 2}}},
           first,
           "updates f32[3,2] and indices i32[2,2] differ in shape"},
          {"indices that are no integers", {x, updates, updates}, first, "needs integer indices"},
          {"an axis that is not there",
           {x, updates, indices},
           {{"axis", int64_t{2}}},
           "axis 2 out of range [-2, 1] for x f32[4,2]"}};
}

const OpRegistrar scatter_max_op(OpDef{
    .name = "scatter_max",
    .summary = "the largest of x's element and all updates for it, by index along one axis",
    .infer = infer,
    .vjp = vjp,
    .cost = copy_cost,
    .reference = reference,
    .samples = samples,
    .error_samples = errors,
});

}  // namespace
}  // namespace fullbore
