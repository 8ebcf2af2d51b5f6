#include "fullbore/base/error.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

// Attribute axis. At least one operand; all extents but the axis's are equal.
std::vector<TensorType> infer(const OpCall& call) {
  if (call.inputs.empty()) call.fail("needs at least one part");
  const TensorType& first = call.inputs[0];
  const int axis = require_axis(call, require_attribute<int64_t>(call, "axis"), "part 0", first);
  int64_t extent = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const TensorType& part = call.inputs[i];
    if (part.dtype != first.dtype || part.shape.rank() != first.shape.rank() ||
        part.shape.with(axis, 0) != first.shape.with(axis, 0))
      call.fail(fmt::format("part {} {} does not fit part 0 {} along axis {}", i, part.text(),
                            first.text(), axis));
    extent += part.shape[axis];
  }
  return {{first.dtype, first.shape.with(axis, extent)}};
}

std::vector<Tensor> vjp(const VjpCall& call) {
  const auto axis = static_cast<int>(call.attributes.get<int64_t>("axis"));
  std::vector<Tensor> cotangents;
  int64_t start = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const int64_t extent = call.inputs[i].dim(axis);
    cotangents.push_back(call.wanted[i]
                             ? slice(call.cotangents[0], axis, start, start + extent, 1, call.loc)
                             : Tensor{});
    start += extent;
  }
  return cotangents;
}

void reference(ReferenceCall& call) {
  const auto axis = static_cast<int>(call.attributes.get<int64_t>("axis"));
  Literal& output = call.outputs[0];
  const AxisView to(output.shape(), axis);
  int64_t start = 0;
  for (const Literal* part : call.inputs) {
    const AxisView from(part->shape(), axis);
    for (int64_t o = 0; o < from.outer; ++o)
      for (int64_t i = 0; i < from.extent; ++i)
        for (int64_t n = 0; n < from.inner; ++n)
          copy_element(output, to.at(o, start + i, n), *part, from.at(o, i, n));
    start += from.extent;
  }
}

std::vector<Sample> samples() {
  const auto sample = [](std::string why, DType dtype, std::vector<Shape> shapes, int64_t axis) {
    Sample result{.why = std::move(why), .inputs = {}, .attributes = {{"axis", axis}}};
    for (Shape& shape : shapes) {
      const TensorType type{dtype, std::move(shape)};
      result.inputs.push_back(is_floating(dtype) ? SampleInput::normal(type)
                                                 : SampleInput::integers(type, -1e15, 1e15));
    }
    return result;
  };
  return {sample("vectors", DType::f32, {{3}, {16}, {14}}, 0),
          sample("one part", DType::f32, {{3, 5}}, 1),
          sample("an empty part", DType::f32, {{2, 3}, {2, 0}, {2, 1}}, 1),
          sample("rows: a cache and its next token", DType::f32, {{5, 4}, {1, 4}}, 0),
          sample("the last axis", DType::f32, {{3, 17}, {3, 15}}, 1),
          sample("a middle axis", DType::f32, {{2, 3, 5}, {2, 1, 5}}, 1),
          sample("no rows", DType::f32, {{0, 3}, {0, 2}}, 1),
          sample("integers", DType::i64, {{3}, {2}}, 0)};
}

std::vector<ErrorSample> error_samples() {
  const TensorType x{DType::f32, {4, 3}};
  const Attributes first{{"axis", int64_t{0}}};
  return {{"no parts", {}, first, "needs at least one part"},
          {"an axis that is not there",
           {x, x},
           {{"axis", int64_t{2}}},
           "axis 2 out of range [-2, 1] for part 0 f32[4,3]"},
          {"another extent beside the axis",
           {x, {DType::f32, {4, 2}}},
           first,
           "part 1 f32[4,2] does not fit part 0 f32[4,3] along axis 0"},
          {"another rank", {x, {DType::f32, {4}}}, first, "part 1 f32[4] does not fit"},
          {"another dtype", {x, {DType::i32, {4, 3}}}, first, "part 1 i32[4,3] does not fit"}};
}

const OpRegistrar registrar(OpDef{.name = "concat",
                                  .summary = "parts one after the other along an axis",
                                  .tags = Tag::movement,
                                  .infer = infer,
                                  .vjp = vjp,
                                  .cost = copy_cost,
                                  .reference = reference,
                                  .samples = samples,
                                  .error_samples = error_samples});

}  // namespace

Tensor concat(std::span<const Tensor> parts, int axis, SourceLoc loc) {
  if (parts.empty()) throw UsageError("concat: needs at least one part", loc);
  for (const Tensor& part : parts) require_tensor("concat", "a part", part, loc);
  return apply_all("concat", parts, {{"axis", normal_axis(axis, parts[0].rank())}}, loc)[0];
}

}  // namespace fullbore
