#include <cmath>
#include <limits>

#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 1);
  require_dtype(call, 0, "x", DTypeSet::numeric);
  const TensorType& x = call.inputs[0];
  const int axis = require_axis(call, require_attribute<int64_t>(call, "axis"), "x", x);
  if (x.shape[axis] == 0)
    call.fail(fmt::format("axis {} of {} is empty: it has no largest element", axis,
                          operand_text("x", x)));
  if (x.shape[axis] > std::numeric_limits<int32_t>::max())
    call.fail(fmt::format("axis {} of {} is too long for i32 indices", axis, operand_text("x", x)));
  return {{DType::i32, x.shape.without(axis)}};
}

// NaN counts as the largest, as in reduce_max: it must not be passed over in silence.
bool exceeds(const Literal& x, int64_t candidate, int64_t best) {
  const auto i = static_cast<size_t>(candidate);
  const auto j = static_cast<size_t>(best);
  if (!x.floating()) return x.integers()[i] > x.integers()[j];
  if (std::isnan(x.reals()[j])) return false;
  return std::isnan(x.reals()[i]) || x.reals()[i] > x.reals()[j];
}

void reference(ReferenceCall& call) {
  const Literal& x = *call.inputs[0];
  const AxisView view(x.shape(), static_cast<int>(call.attributes.get<int64_t>("axis")));
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t n = 0; n < view.inner; ++n) {
      int64_t best = 0;
      for (int64_t i = 1; i < view.extent; ++i)
        if (exceeds(x, view.at(o, i, n), view.at(o, best, n))) best = i;
      call.outputs[0].integers()[static_cast<size_t>(o * view.inner + n)] = best;
    }
}

std::vector<Sample> samples() {
  const auto random = [](const char* why, Shape shape, int64_t axis) {
    return Sample{.why = why,
                  .inputs = {SampleInput::normal({DType::f32, std::move(shape)})},
                  .attributes = {{"axis", axis}}};
  };
  return {random("one element", {1}, 0),
          random("rows, odd", {3, 5}, 1),
          random("columns", {33, 17}, 0),
          random("the middle axis", {3, 4, 5}, 1),
          random("one above 128", {2, 129}, 1),
          random("one above 1024", {1, 1025}, 1),
          random("no results", {0, 3}, 1),
          {.why = "ties: the lowest wins; zeros of both signs are equal",
           .inputs = {SampleInput::given({DType::f32, {3, 4}},
                                         {1, 3, 3, 2, -0.0, 0.0, -0.0, 0.0, -7, -7, -7, -7})},
           .attributes = {{"axis", int64_t{1}}}},
          {.why = "infinities, NaN, all -inf",
           .inputs = {SampleInput::given({DType::f32, {4, 3}},
                                         {1, HUGE_VAL, HUGE_VAL, 1, NAN, NAN, -HUGE_VAL, -HUGE_VAL,
                                          -HUGE_VAL, -HUGE_VAL, -5, -4})},
           .attributes = {{"axis", int64_t{1}}}},
          {.why = "integers beyond 2^53",
           .inputs = {SampleInput::integers({DType::i64, {3, 6}}, -9e18, 9e18)},
           .attributes = {{"axis", int64_t{1}}}}};
}

std::vector<ErrorSample> errors() {
  return {{"an axis beyond the last",
           {{DType::f32, {8, 4, 2}}},
           {{"axis", int64_t{3}}},
           "axis 3 out of range [-3, 2] for x f32[8,4,2]"},
          {"nothing to choose from",
           {{DType::f32, {3, 0}}},
           {{"axis", int64_t{1}}},
           "axis 1 of x f32[3,0] is empty"},
          {"truth values", {{DType::boolean, {4}}}, {{"axis", int64_t{0}}}, "needs numeric x"},
          {"no attribute", {{DType::f32, {4}}}, {}, "needs attribute 'axis'"}};
}

const OpRegistrar argmax_op(OpDef{
    .name = "argmax",
    .summary = "index of the largest element along an axis, which is removed",
    .tags = Tag::zero_gradient,
    .infer = infer,
    .cost = copy_cost,
    .reference = reference,
    .samples = samples,
    .error_samples = errors,
});

}  // namespace

Tensor argmax(Tensor x, int axis, SourceLoc loc) {
  require_tensor("argmax", "x", x, loc);
  return apply("argmax", {x}, {{"axis", normal_axis(axis, x.rank())}}, loc);
}

}  // namespace fullbore
