#include <algorithm>

#include "fullbore/base/error.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

// Attribute shape [extents], all known: the builder has replaced -1.
std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 1);
  const TensorType& x = call.inputs[0];
  const Shape shape = require_shape_attribute(call);
  if (shape.elements() != x.elements())
    call.fail(fmt::format("{} of {} elements to {} of {}", operand_text("x", x), x.elements(),
                          shape.text(), shape.elements()));
  return {{x.dtype, shape}};
}

std::vector<Tensor> vjp(const VjpCall& call) {
  return {reshape(call.cotangents[0], call.inputs[0].shape(), call.loc)};
}

void reference(ReferenceCall& call) {
  for (int64_t i = 0; i < call.outputs[0].elements(); ++i)
    copy_element(call.outputs[0], i, *call.inputs[0], i);
}

std::vector<Sample> samples() {
  const auto sample = [](std::string why, SampleInput x, std::vector<int64_t> to) {
    return Sample{
        .why = std::move(why), .inputs = {std::move(x)}, .attributes = {{"shape", std::move(to)}}};
  };
  const auto f32 = [](Shape shape) { return SampleInput::normal({DType::f32, std::move(shape)}); };
  return {sample("splits an axis: heads", f32({5, 12}), {5, 3, 4}),
          sample("merges axes", f32({2, 3, 5}), {6, 5}),
          sample("to a scalar", f32({1, 1}), {}),
          sample("from a scalar", f32({}), {1}),
          sample("no elements", f32({0, 3}), {7, 0}),
          sample("integers", SampleInput::integers({DType::i32, {4}}, -9, 9), {2, 2})};
}

std::vector<ErrorSample> error_samples() {
  const TensorType x{DType::f32, {4, 3}};
  return {{"another number of elements",
           {x},
           {{"shape", std::vector<int64_t>{5, 2}}},
           "x f32[4,3] of 12 elements to [5,2] of 10"},
          {"an extent left open",
           {x},
           {{"shape", std::vector<int64_t>{-1}}},
           "negative extent in shape [-1]"},
          {"no shape", {x}, {}, "needs attribute 'shape'"}};
}

const OpRegistrar registrar(OpDef{.name = "reshape",
                                  .summary = "the same elements in row-major order, other extents",
                                  .tags = Tag::movement | Tag::identity,
                                  .infer = infer,
                                  .vjp = vjp,
                                  .reference = reference,
                                  .samples = samples,
                                  .error_samples = error_samples});

}  // namespace

Tensor reshape(Tensor x, Shape shape, SourceLoc loc) {
  require_tensor("reshape", "x", x, loc);
  // One -1 takes what the others leave.
  std::vector<int64_t> dims = shape.dims();
  const auto refuse = [&](const std::string& why) {
    throw UsageError(
        fmt::format("reshape: {} of {} elements to {}: {}", operand_text("x", x.type()),
                    x.shape().elements(), shape.text(), why),
        loc);
  };
  const auto open_extents = std::count(dims.begin(), dims.end(), -1);
  if (open_extents > 1) refuse("one extent may be -1, and takes what the others leave");
  if (open_extents == 1) {
    const auto open = std::find(dims.begin(), dims.end(), -1);
    int64_t others = 1;
    for (int64_t extent : dims) others *= extent == -1 ? 1 : extent;
    if (others == 0) refuse("what -1 stands for does not follow where another extent is 0");
    if (others > 0 && x.shape().elements() % others != 0)
      refuse(fmt::format("the others are {}, which does not divide that", others));
    if (others > 0) *open = x.shape().elements() / others;
  }
  if (Shape(dims) == x.shape()) return x;
  return apply("reshape", {x}, {{"shape", std::move(dims)}}, loc);
}

Tensor expand_dims(Tensor x, int axis, SourceLoc loc) {
  require_tensor("expand_dims", "x", x, loc);
  const int rank = x.rank() + 1;  // the axis is one of the result
  const int64_t position = normal_axis(axis, rank);
  if (position < 0 || position >= rank)
    throw UsageError(fmt::format("expand_dims: axis {} out of range [{}, {}] for {}", axis, -rank,
                                 rank - 1, operand_text("x", x.type())),
                     loc);
  return reshape(x, x.shape().inserted(static_cast<int>(position), 1), loc);
}

Tensor squeeze(Tensor x, int axis, SourceLoc loc) {
  require_tensor("squeeze", "x", x, loc);
  const int64_t position = normal_axis(axis, x.rank());
  if (position < 0 || position >= x.rank())
    throw UsageError(fmt::format("squeeze: axis {} out of range [{}, {}] for {}", axis, -x.rank(),
                                 x.rank() - 1, operand_text("x", x.type())),
                     loc);
  if (x.dim(axis) != 1)
    throw UsageError(
        fmt::format("squeeze: axis {} of {} has not extent 1", axis, operand_text("x", x.type())),
        loc);
  return reshape(x, x.shape().without(static_cast<int>(position)), loc);
}

}  // namespace fullbore
