#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

int axis_of(const Attributes& attributes) {
  return static_cast<int>(attributes.get<int64_t>("axis"));
}

std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 2);
  require_dtype(call, 1, "indices", DTypeSet::integer);
  const TensorType& x = call.inputs[0];
  const TensorType& indices = call.inputs[1];
  const int axis = require_axis(call, require_attribute<int64_t>(call, "axis"), "x", x);
  if (indices.shape.rank() != x.shape.rank() ||
      indices.shape.without(axis) != x.shape.without(axis))
    call.fail(fmt::format("{} and {} differ outside of axis {}", operand_text("x", x),
                          operand_text("indices", indices), axis));
  return {{x.dtype, indices.shape}};
}

void reference(ReferenceCall& call) {
  const Literal& x = *call.inputs[0];
  const Literal& indices = *call.inputs[1];
  const AxisView source(x.shape(), axis_of(call.attributes));
  const AxisView view(indices.shape(), axis_of(call.attributes));
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t i = 0; i < view.extent; ++i)
      for (int64_t n = 0; n < view.inner; ++n) {
        const int64_t at = view.at(o, i, n);
        const int64_t index = indices.integers()[static_cast<size_t>(at)];
        if (index >= 0 && index < source.extent)
          copy_element(call.outputs[0], at, x, source.at(o, index, n));
      }
}

std::vector<Tensor> vjp(const VjpCall& call) {
  if (!call.wanted[0]) return {{}, {}};
  const int axis = axis_of(call.attributes);
  return {scatter_along_axis(call.cotangents[0], call.inputs[1], axis, call.inputs[0].dim(axis)),
          {}};
}

Cost cost(const CostCall& call) {
  return {0, static_cast<double>(call.inputs[1].bytes()) +
                 2 * static_cast<double>(call.outputs[0].bytes())};
}

std::vector<Sample> samples() {
  const auto of = [](const char* why, Shape x, TensorType indices, double high, int64_t axis) {
    return Sample{.why = why,
                  .inputs = {SampleInput::normal({DType::f32, std::move(x)}),
                             SampleInput::integers(std::move(indices), 0, high)},
                  .attributes = {{"axis", axis}}};
  };
  return {
      of("one logit of each row", {5, 11}, {DType::i32, {5, 1}}, 11, 1),
      of("the last axis", {3, 7}, {DType::i64, {3, 5}}, 7, 1),
      of("the first axis", {7, 3}, {DType::i32, {4, 3}}, 7, 0),
      of("the middle axis, bytes", {2, 5, 3}, {DType::u8, {2, 9, 3}}, 5, 1),
      of("one axis", {9}, {DType::i32, {33}}, 9, 0),
      of("wider than 16 lanes", {3, 2, 17}, {DType::i32, {3, 4, 17}}, 2, 1),
      of("nothing taken", {3, 7}, {DType::i32, {3, 0}}, 7, 1),
      of("nothing to take from", {3, 0}, {DType::i32, {3, 2}}, 7, 1),
      of("no rows", {0, 3}, {DType::i32, {0, 2}}, 3, 1),
      {.why = "indices out of range read zero",
       .inputs =
           {SampleInput::normal({DType::f32, {2, 3}}),
            SampleInput::given({DType::i64, {2, 4}}, {-1, 0, 3, 2, 1e15, 1, 1, -3}).constant()},
       .attributes = {{"axis", int64_t{1}}}},
      {.why = "integers",
       .inputs = {SampleInput::integers({DType::i64, {4, 5}}, -9e18, 9e18),
                  SampleInput::integers({DType::i32, {4, 2}}, 0, 5)},
       .attributes = {{"axis", int64_t{1}}}},
  };
}

std::vector<ErrorSample> errors() {
  const Attributes axis{{"axis", int64_t{1}}};
  return {{"other rows",
           {{DType::f32, {4, 2}}, {DType::i32, {3, 2}}},
           axis,
           "x f32[4,2] and indices i32[3,2] differ outside of axis 1"},
          {"another rank",
           {{DType::f32, {4, 2}}, {DType::i32, {4}}},
           axis,
           "x f32[4,2] and indices i32[4] differ outside of axis 1"},
          {"indices that are no integers",
           {{DType::f32, {4, 2}}, {DType::f32, {4, 2}}},
           axis,
           "needs integer indices, got f32[4,2]"},
          {"an axis beyond the last",
           {{DType::f32, {4, 2}}, {DType::i32, {4, 2}}},
           {{"axis", int64_t{2}}},
           "axis 2 out of range [-2, 1] for x f32[4,2]"}};
}

const OpRegistrar take_along_axis_op(OpDef{
    .name = "take_along_axis",
    .summary = "an element per position, by index along one axis",
    .tags = Tag::movement,
    .infer = infer,
    .vjp = vjp,
    .cost = cost,
    .reference = reference,
    .samples = samples,
    .error_samples = errors,
});

}  // namespace

Tensor take_along_axis(Tensor x, Tensor indices, int axis, SourceLoc loc) {
  require_tensor("take_along_axis", "x", x, loc);
  require_tensor("take_along_axis", "indices", indices, loc);
  return apply("take_along_axis", {x, indices}, {{"axis", normal_axis(axis, x.rank())}}, loc);
}

}  // namespace fullbore
