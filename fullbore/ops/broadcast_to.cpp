#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

// Attribute shape [extents]. Aligned at the last axis: output axis i is input axis i - missing.
std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 1);
  const Shape shape = require_shape_attribute(call);
  const TensorType& x = call.inputs[0];
  const auto common = broadcast_shapes(x.shape, shape);
  if (common != shape)
    call.fail(fmt::format("{} does not broadcast to {}", operand_text("x", x), shape.text()));
  return {{x.dtype, shape}};
}

// The cotangents of every copy, added up: over the axes that x has not, and those where it has
// extent 1 and the result another.
std::vector<Tensor> vjp(const VjpCall& call) {
  const Shape& from = call.inputs[0].shape();
  const Shape& to = call.outputs[0].shape();
  const int missing = to.rank() - from.rank();
  std::vector<int64_t> axes;
  for (int axis = 0; axis < to.rank(); ++axis)
    if (axis < missing || from[axis - missing] != to[axis]) axes.push_back(axis);
  return {reshape(reduce_sum(call.cotangents[0], axes, false, call.loc), from, call.loc)};
}

void reference(ReferenceCall& call) {
  const Literal& x = *call.inputs[0];
  Literal& output = call.outputs[0];
  const auto missing = static_cast<size_t>(output.shape().rank() - x.shape().rank());
  const std::vector<int64_t> x_strides = x.shape().strides();
  std::vector<int64_t> strides(missing, 0);
  for (size_t axis = 0; axis < x_strides.size(); ++axis)
    strides.push_back(x.shape()[static_cast<int>(axis)] == 1 ? 0 : x_strides[axis]);
  for_each_index(output.shape(), [&](const std::vector<int64_t>& index, int64_t flat) {
    copy_element(output, flat, x, flat_index(index, strides));
  });
}

std::vector<Sample> samples() {
  const auto sample = [](std::string why, TensorType from, std::vector<int64_t> to) {
    return Sample{.why = std::move(why),
                  .inputs = {SampleInput::normal(std::move(from))},
                  .attributes = {{"shape", std::move(to)}}};
  };
  const auto f32 = [](Shape shape) { return TensorType{DType::f32, std::move(shape)}; };
  Sample integers{.why = "integers",
                  .inputs = {SampleInput::integers({DType::i64, {3, 1}}, -9, 9)},
                  .attributes = {{"shape", std::vector<int64_t>{3, 4}}}};
  return {sample("a scalar to a vector", f32({}), {33}),
          sample("a scalar to nothing", f32({}), {0}),
          sample("the same shape", f32({3, 5}), {3, 5}),
          sample("a row to rows: bias", f32({17}), {5, 17}),
          sample("a column to columns: statistics", f32({5, 1}), {5, 31}),
          sample("a middle axis", f32({2, 1, 3}), {2, 4, 3}),
          sample("new and stretched axes at once", f32({3, 1, 5}), {2, 3, 4, 5}),
          sample("an extent of 1 that stays 1", f32({1, 3}), {1, 1, 3}),
          sample("one to no rows", f32({1, 3}), {0, 3}),
          std::move(integers)};
}

std::vector<ErrorSample> error_samples() {
  const TensorType x{DType::f32, {4}};
  return {{"an extent that is neither equal nor 1",
           {x},
           {{"shape", std::vector<int64_t>{4, 3}}},
           "x f32[4] does not broadcast to [4,3]"},
          {"to fewer axes", {x}, {{"shape", std::vector<int64_t>{}}}, "does not broadcast to []"},
          {"to an extent of 1", {x}, {{"shape", std::vector<int64_t>{1}}}, "does not broadcast"},
          {"no shape", {x}, {}, "needs attribute 'shape'"},
          {"a negative extent",
           {x},
           {{"shape", std::vector<int64_t>{-1, 4}}},
           "negative extent in shape [-1,4]"}};
}

const OpRegistrar registrar(OpDef{.name = "broadcast_to",
                                  .summary = "repeats along new axes and those of extent 1",
                                  .tags = Tag::movement,
                                  .infer = infer,
                                  .vjp = vjp,
                                  .cost = copy_cost,
                                  .reference = reference,
                                  .samples = samples,
                                  .error_samples = error_samples});

}  // namespace

Tensor broadcast_to(Tensor x, Shape shape, SourceLoc loc) {
  return apply("broadcast_to", {x}, {{"shape", shape.dims()}}, loc);
}

}  // namespace fullbore
