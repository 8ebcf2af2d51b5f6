#include "fullbore/ops/rules.h"
#include "fullbore/ops/scatter.h"

namespace fullbore {
namespace {

int axis_of(const Attributes& attributes) {
  return static_cast<int>(attributes.get<int64_t>("axis"));
}

std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 2);
  require_dtype(call, 0, "updates", DTypeSet::numeric);
  require_dtype(call, 1, "indices", DTypeSet::integer);
  require_same_shape(call, 0, "updates", 1, "indices");
  const TensorType& updates = call.inputs[0];
  const int axis = require_axis(call, require_attribute<int64_t>(call, "axis"), "updates", updates);
  const int64_t extent = require_attribute<int64_t>(call, "extent");
  if (extent < 0) call.fail(fmt::format("axis {} cannot have extent {}", axis, extent));
  const Shape shape = updates.shape.with(axis, extent);
  require_elements(call, shape);
  return {{updates.dtype, shape}};
}

void reference(ReferenceCall& call) {
  const Literal& indices = *call.inputs[1];
  Literal& y = call.outputs[0];
  const AxisView target(y.shape(), axis_of(call.attributes));
  const AxisView view(indices.shape(), axis_of(call.attributes));
  ScatterSums sums(y);
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t i = 0; i < view.extent; ++i)
      for (int64_t n = 0; n < view.inner; ++n) {
        const int64_t at = view.at(o, i, n);
        const int64_t index = indices.integers()[static_cast<size_t>(at)];
        if (index >= 0 && index < target.extent)
          sums.add(target.at(o, index, n), *call.inputs[0], at);
      }
  call.magnitudes = sums.finish();
}

std::vector<Tensor> vjp(const VjpCall& call) {
  if (!call.wanted[0]) return {{}, {}};
  return {take_along_axis(call.cotangents[0], call.inputs[1], axis_of(call.attributes)), {}};
}

std::vector<Sample> samples() {
  const auto of = [](const char* why, Shape updates, DType index_dtype, double high, int64_t axis,
                     int64_t extent) {
    return Sample{.why = why,
                  .inputs = {SampleInput::normal({DType::f32, updates}),
                             SampleInput::integers({index_dtype, updates}, 0, high)},
                  .attributes = {{"axis", axis}, {"extent", extent}}};
  };
  return {
      of("one element of each row", {5, 1}, DType::i32, 11, 1, 11),
      of("the last axis, many for few", {3, 33}, DType::i64, 2, 1, 2),
      of("the first axis", {7, 3}, DType::i32, 4, 0, 4),
      of("the middle axis, bytes", {2, 9, 3}, DType::u8, 5, 1, 5),
      of("one axis", {129}, DType::i32, 5, 0, 5),
      of("wider than 16 lanes", {3, 4, 17}, DType::i32, 2, 1, 2),
      of("no updates: zeros", {3, 0}, DType::i32, 7, 1, 7),
      of("no extent", {3, 2}, DType::i32, 7, 1, 0),
      of("no rows", {0, 3}, DType::i32, 3, 1, 4),
      {.why = "indices out of range write nothing",
       .inputs =
           {SampleInput::normal({DType::f32, {2, 4}}),
            SampleInput::given({DType::i64, {2, 4}}, {-1, 0, 3, 2, 1e15, 1, 1, -3}).constant()},
       .attributes = {{"axis", int64_t{1}}, {"extent", int64_t{3}}}},
      {.why = "a permutation of integers",
       .inputs = {SampleInput::integers({DType::i32, {1, 5}}, -100, 100),
                  SampleInput::given({DType::i32, {1, 5}}, {3, 0, 4, 1, 2}).constant()},
       .attributes = {{"axis", int64_t{1}}, {"extent", int64_t{5}}}},
  };
}

std::vector<ErrorSample> errors() {
  const Attributes good{{"axis", int64_t{1}}, {"extent", int64_t{4}}};
  return {{"two shapes",
           {{DType::f32, {4, 2}}, {DType::i32, {3, 2}}},
           good,
           "updates f32[4,2] and indices i32[3,2] differ in shape"},
          {"indices that are no integers",
           {{DType::f32, {4, 2}}, {DType::f32, {4, 2}}},
           good,
           "needs integer indices, got f32[4,2]"},
          {"a negative extent",
           {{DType::f32, {4, 2}}, {DType::i32, {4, 2}}},
           {{"axis", int64_t{1}}, {"extent", int64_t{-1}}},
           "axis 1 cannot have extent -1"},
          {"an axis beyond the last",
           {{DType::f32, {4, 2}}, {DType::i32, {4, 2}}},
           {{"axis", int64_t{2}}, {"extent", int64_t{4}}},
           "axis 2 out of range [-2, 1] for updates f32[4,2]"}};
}

const OpRegistrar scatter_along_axis_op(OpDef{
    .name = "scatter_along_axis",
    .summary = "adds an element per position into zeros, by index along one axis",
    .infer = infer,
    .vjp = vjp,
    .cost = scatter_cost,
    .reference = reference,
    .samples = samples,
    .error_samples = errors,
});

}  // namespace

Tensor scatter_along_axis(Tensor updates, Tensor indices, int axis, int64_t extent, SourceLoc loc) {
  require_tensor("scatter_along_axis", "updates", updates, loc);
  require_tensor("scatter_along_axis", "indices", indices, loc);
  return apply("scatter_along_axis", {updates, indices},
               {{"axis", normal_axis(axis, updates.rank())}, {"extent", extent}}, loc);
}

}  // namespace fullbore
