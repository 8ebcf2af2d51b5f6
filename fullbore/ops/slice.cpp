#include "fullbore/base/error.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

int64_t count(int64_t start, int64_t stop, int64_t stride) {
  return stop <= start ? 0 : (stop - start - 1) / stride + 1;
}

// Attributes axis, start, stop, stride: 0 <= start <= stop <= extent, stride > 0.
std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 1);
  const TensorType& x = call.inputs[0];
  const int axis = require_axis(call, require_attribute<int64_t>(call, "axis"), "x", x);
  const auto start = require_attribute<int64_t>(call, "start");
  const auto stop = require_attribute<int64_t>(call, "stop");
  const auto stride = require_attribute<int64_t>(call, "stride");
  if (stride < 1) call.fail(fmt::format("stride {} is not positive", stride));
  if (start < 0 || start > stop || stop > x.shape[axis])
    call.fail(fmt::format("[{}, {}) is not within axis {} of {}", start, stop, axis,
                          operand_text("x", x)));
  return {{x.dtype, x.shape.with(axis, count(start, stop, stride))}};
}

// Back to their places, zeros everywhere else.
std::vector<Tensor> vjp(const VjpCall& call) {
  const auto axis = static_cast<int>(call.attributes.get<int64_t>("axis"));
  const auto start = call.attributes.get<int64_t>("start");
  const auto stride = call.attributes.get<int64_t>("stride");
  const int64_t extent = call.inputs[0].shape()[axis];
  const int64_t taken = call.outputs[0].shape()[axis];
  if (taken == 0) return {zeros_like(call.inputs[0], call.loc)};
  const int64_t after = extent - (start + (taken - 1) * stride + 1);
  return {pad(call.cotangents[0], axis, start, after, stride - 1, call.loc)};
}

void reference(ReferenceCall& call) {
  const auto axis = static_cast<int>(call.attributes.get<int64_t>("axis"));
  const auto start = call.attributes.get<int64_t>("start");
  const auto stride = call.attributes.get<int64_t>("stride");
  const Literal& x = *call.inputs[0];
  Literal& output = call.outputs[0];
  const AxisView from(x.shape(), axis), to(output.shape(), axis);
  for (int64_t o = 0; o < to.outer; ++o)
    for (int64_t i = 0; i < to.extent; ++i)
      for (int64_t n = 0; n < to.inner; ++n)
        copy_element(output, to.at(o, i, n), x, from.at(o, start + i * stride, n));
}

Attributes attributes(int64_t axis, int64_t start, int64_t stop, int64_t stride) {
  return {{"axis", axis}, {"start", start}, {"stop", stop}, {"stride", stride}};
}

std::vector<Sample> samples() {
  const auto sample = [](std::string why, SampleInput x, Attributes window) {
    return Sample{.why = std::move(why), .inputs = {std::move(x)}, .attributes = std::move(window)};
  };
  const auto f32 = [](Shape shape) { return SampleInput::normal({DType::f32, std::move(shape)}); };
  return {sample("a part of a vector", f32({40}), attributes(0, 3, 36, 1)),
          sample("all of it", f32({5}), attributes(0, 0, 5, 1)),
          sample("nothing", f32({5, 3}), attributes(0, 2, 2, 1)),
          sample("one element", f32({5}), attributes(0, 4, 5, 1)),
          sample("the last axis: one of three projections", f32({4, 51}), attributes(1, 17, 34, 1)),
          sample("the first axis: contiguous", f32({7, 5}), attributes(0, 2, 6, 1)),
          sample("a middle axis", f32({3, 6, 4}), attributes(1, 1, 4, 1)),
          sample("every other: the halves of rotary pairs", f32({3, 34}), attributes(1, 1, 34, 2)),
          sample("a stride that does not divide", f32({11, 2}), attributes(0, 1, 10, 4)),
          sample("integers", SampleInput::integers({DType::i64, {9}}, -1e15, 1e15),
                 attributes(0, 2, 9, 3))};
}

std::vector<ErrorSample> error_samples() {
  const TensorType x{DType::f32, {4, 3}};
  return {
      {"an axis that is not there",
       {x},
       attributes(2, 0, 1, 1),
       "axis 2 out of range [-2, 1] for x f32[4,3]"},
      {"past the end", {x}, attributes(0, 1, 5, 1), "[1, 5) is not within axis 0 of x f32[4,3]"},
      {"before the start", {x}, attributes(0, -1, 2, 1), "[-1, 2) is not within axis 0"},
      {"backwards", {x}, attributes(1, 2, 1, 1), "[2, 1) is not within axis 1"},
      {"no stride", {x}, attributes(0, 0, 2, 0), "stride 0 is not positive"},
      {"a scalar", {{DType::f32, {}}}, attributes(0, 0, 1, 1), "which has no axes"}};
}

const OpRegistrar registrar(OpDef{.name = "slice",
                                  .summary = "elements start, start + stride, ... of one axis",
                                  .tags = Tag::movement,
                                  .infer = infer,
                                  .vjp = vjp,
                                  .cost = movement_cost,
                                  .reference = reference,
                                  .samples = samples,
                                  .error_samples = error_samples});

}  // namespace

Tensor slice(Tensor x, int axis, int64_t start, int64_t stop, int64_t stride, SourceLoc loc) {
  require_tensor("slice", "x", x, loc);
  return apply("slice", {x}, attributes(normal_axis(axis, x.rank()), start, stop, stride), loc);
}

std::vector<Tensor> split(Tensor x, int axis, std::vector<int64_t> extents, SourceLoc loc) {
  require_tensor("split", "x", x, loc);
  const int64_t position = normal_axis(axis, x.rank());
  if (position < 0 || position >= x.rank())
    throw UsageError(fmt::format("split: axis {} out of range [{}, {}] for {}", axis, -x.rank(),
                                 x.rank() - 1, operand_text("x", x.type())),
                     loc);
  int64_t total = 0;
  for (int64_t extent : extents) total += extent;
  if (total != x.dim(axis))
    throw UsageError(fmt::format("split: the parts of axis {} add up to {}, not to the {} of {}",
                                 axis, total, x.dim(axis), operand_text("x", x.type())),
                     loc);
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (int64_t extent : extents) {
    parts.push_back(slice(x, axis, start, start + extent, 1, loc));
    start += extent;
  }
  return parts;
}

}  // namespace fullbore
