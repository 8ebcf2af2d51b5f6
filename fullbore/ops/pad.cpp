#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

// Extent of the axis with zeros between its elements, before padding and cropping.
int64_t spread(int64_t extent, int64_t interior) {
  return extent == 0 ? 0 : (extent - 1) * (interior + 1) + 1;
}

// Attributes axis, before, after, interior. Element i goes to before + i (interior + 1).
std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 1);
  const TensorType& x = call.inputs[0];
  const int axis = require_axis(call, require_attribute<int64_t>(call, "axis"), "x", x);
  const auto before = require_attribute<int64_t>(call, "before");
  const auto after = require_attribute<int64_t>(call, "after");
  const auto interior = require_attribute<int64_t>(call, "interior");
  constexpr int64_t kWidest = int64_t{1} << 40;  // far above any tensor, far below overflow
  for (int64_t width : {before, after, interior})
    if (width > kWidest || width < -kWidest) call.fail(fmt::format("width {} is absurd", width));
  if (interior < 0) call.fail(fmt::format("interior {} is negative", interior));
  if (x.shape[axis] > 0 && interior > kWidest / x.shape[axis])
    call.fail(fmt::format("interior {} is absurd for {}", interior, operand_text("x", x)));
  const int64_t extent = before + spread(x.shape[axis], interior) + after;
  if (extent < 0)
    call.fail(fmt::format("crops {} elements of the {} of axis {} of {}", -before - after,
                          spread(x.shape[axis], interior), axis, operand_text("x", x)));
  const Shape shape = x.shape.with(axis, extent);
  require_elements(call, shape);
  return {{x.dtype, shape}};
}

// The elements that were kept, from where they went; zeros for those that were cropped.
std::vector<Tensor> vjp(const VjpCall& call) {
  const auto axis = static_cast<int>(call.attributes.get<int64_t>("axis"));
  const auto before = call.attributes.get<int64_t>("before");
  const auto after = call.attributes.get<int64_t>("after");
  const auto interior = call.attributes.get<int64_t>("interior");
  const int64_t extent = call.inputs[0].shape()[axis];
  if (extent == 0) return {zeros_like(call.inputs[0], call.loc)};
  // Negative widths undo positive ones, and pads undo crops; then every (interior + 1)-th is one.
  const Tensor aligned = pad(call.cotangents[0], axis, -before, -after, 0, call.loc);
  return {interior == 0 ? aligned
                        : slice(aligned, axis, 0, aligned.dim(axis), interior + 1, call.loc)};
}

void reference(ReferenceCall& call) {
  const auto axis = static_cast<int>(call.attributes.get<int64_t>("axis"));
  const auto before = call.attributes.get<int64_t>("before");
  const auto step = call.attributes.get<int64_t>("interior") + 1;
  const Literal& x = *call.inputs[0];
  Literal& output = call.outputs[0];
  const AxisView from(x.shape(), axis), to(output.shape(), axis);
  for (int64_t o = 0; o < from.outer; ++o)
    for (int64_t i = 0; i < from.extent; ++i) {
      const int64_t place = before + i * step;
      if (place < 0 || place >= to.extent) continue;
      for (int64_t n = 0; n < from.inner; ++n)
        copy_element(output, to.at(o, place, n), x, from.at(o, i, n));
    }
}

Attributes attributes(int64_t axis, int64_t before, int64_t after, int64_t interior) {
  return {{"axis", axis}, {"before", before}, {"after", after}, {"interior", interior}};
}

std::vector<Sample> samples() {
  const auto sample = [](std::string why, SampleInput x, Attributes widths) {
    return Sample{.why = std::move(why), .inputs = {std::move(x)}, .attributes = std::move(widths)};
  };
  const auto f32 = [](Shape shape) { return SampleInput::normal({DType::f32, std::move(shape)}); };
  return {sample("both ends of a vector", f32({33}), attributes(0, 2, 3, 0)),
          sample("nothing", f32({5}), attributes(0, 0, 0, 0)),
          sample("the last axis", f32({3, 15}), attributes(1, 1, 0, 0)),
          sample("the first axis", f32({3, 5}), attributes(0, 0, 2, 0)),
          sample("a middle axis: convolution", f32({2, 4, 3}), attributes(1, 1, 1, 0)),
          sample("between the elements", f32({5, 2}), attributes(0, 1, 2, 2)),
          sample("between the elements of the last axis", f32({2, 16}), attributes(1, 0, 1, 1)),
          sample("crops the start", f32({7, 3}), attributes(0, -2, 1, 0)),
          sample("crops both ends", f32({2, 9}), attributes(1, -3, -2, 0)),
          sample("crops into the interior", f32({4}), attributes(0, -1, -2, 2)),
          sample("crops everything", f32({4}), attributes(0, -4, 0, 0)),
          sample("crops everything and grows again", f32({4, 2}), attributes(0, -6, 5, 0)),
          sample("no elements become zeros", f32({0, 3}), attributes(0, 2, 1, 5)),
          sample("one element", f32({1}), attributes(0, 1, 1, 7)),
          sample("integers", SampleInput::integers({DType::i64, {5}}, -1e15, 1e15),
                 attributes(0, 1, 1, 1))};
}

std::vector<ErrorSample> error_samples() {
  const TensorType x{DType::f32, {4, 3}};
  return {{"an axis that is not there",
           {x},
           attributes(-3, 0, 1, 0),
           "axis -3 out of range [-2, 1] for x f32[4,3]"},
          {"crops more than there is",
           {x},
           attributes(0, -3, -2, 0),
           "crops 5 elements of the 4 of axis 0 of x f32[4,3]"},
          {"a negative interior", {x}, attributes(0, 0, 0, -1), "interior -1 is negative"},
          {"a width beyond reason",
           {x},
           attributes(0, int64_t{1} << 50, 0, 0),
           "width 1125899906842624 is absurd"},
          {"an interior beyond reason",
           {x},
           attributes(0, 0, 0, int64_t{1} << 39),
           "interior 549755813888 is absurd for x f32[4,3]"},
          {"more elements than can be counted",
           {{DType::f32, {1024, 1 << 20}}},
           attributes(0, int64_t{1} << 30, 0, 0),
           "more than 2^48 elements"},
          {"a scalar", {{DType::f32, {}}}, attributes(0, 0, 1, 0), "which has no axes"}};
}

const OpRegistrar registrar(OpDef{
    .name = "pad",
    .summary = "zeros before, after and between the elements of an axis",
    .tags = Tag::movement,
    .infer = infer,
    .vjp = vjp,
    .cost = copy_cost,
    .reference = reference,
    .samples = samples,
    .error_samples = error_samples});

}  // namespace

Tensor pad(Tensor x, int axis, int64_t before, int64_t after, int64_t interior, SourceLoc loc) {
  require_tensor("pad", "x", x, loc);
  return apply("pad", {x}, attributes(normal_axis(axis, x.rank()), before, after, interior), loc);
}

}  // namespace fullbore
