#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

// Attribute axis.
std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 1);
  require_axis(call, require_attribute<int64_t>(call, "axis"), "x", call.inputs[0]);
  return {call.inputs[0]};
}

std::vector<Tensor> vjp(const VjpCall& call) {
  const auto axis = static_cast<int>(call.attributes.get<int64_t>("axis"));
  return {reverse(call.cotangents[0], axis, call.loc)};
}

void reference(ReferenceCall& call) {
  const auto axis = static_cast<int>(call.attributes.get<int64_t>("axis"));
  const AxisView view(call.outputs[0].shape(), axis);
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t i = 0; i < view.extent; ++i)
      for (int64_t n = 0; n < view.inner; ++n)
        copy_element(call.outputs[0], view.at(o, i, n), *call.inputs[0],
                     view.at(o, view.extent - 1 - i, n));
}

std::vector<Sample> samples() {
  const auto sample = [](std::string why, SampleInput x, int64_t axis) {
    return Sample{.why = std::move(why), .inputs = {std::move(x)}, .attributes = {{"axis", axis}}};
  };
  const auto f32 = [](Shape shape) { return SampleInput::normal({DType::f32, std::move(shape)}); };
  return {sample("a vector", f32({33}), 0),
          sample("one element", f32({1}), 0),
          sample("no elements", f32({3, 0}), 1),
          sample("the last axis", f32({3, 17}), 1),
          sample("the first axis", f32({4, 5}), 0),
          sample("a middle axis", f32({2, 3, 5}), 1),
          sample("integers", SampleInput::integers({DType::i64, {5}}, -1e15, 1e15), 0)};
}

std::vector<ErrorSample> error_samples() {
  return {{"an axis that is not there",
           {{DType::f32, {8, 4, 2}}},
           {{"axis", int64_t{3}}},
           "axis 3 out of range [-3, 2] for x f32[8,4,2]"},
          {"an axis left as counted from the end",
           {{DType::f32, {4}}},
           {{"axis", int64_t{-1}}},
           "axis -1 of a node must count from the front"},
          {"a scalar",
           {{DType::f32, {}}},
           {{"axis", int64_t{0}}},
           "axis 0 of x f32[], which has no axes"},
          {"no axis", {{DType::f32, {4}}}, {}, "needs attribute 'axis'"}};
}

const OpRegistrar registrar(OpDef{.name = "reverse",
                                  .summary = "the elements of one axis in reverse order",
                                  .tags = Tag::movement,
                                  .infer = infer,
                                  .vjp = vjp,
                                  .cost = copy_cost,
                                  .reference = reference,
                                  .samples = samples,
                                  .error_samples = error_samples});

}  // namespace

Tensor reverse(Tensor x, int axis, SourceLoc loc) {
  require_tensor("reverse", "x", x, loc);
  return apply("reverse", {x}, {{"axis", normal_axis(axis, x.rank())}}, loc);
}

}  // namespace fullbore
