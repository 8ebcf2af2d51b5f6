#include <algorithm>

#include "fullbore/ops/operand_names.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

int axis_of(const Attributes& attributes) {
  return static_cast<int>(attributes.get<int64_t>("axis"));
}

// A window of `extent` elements begins where asked, or as near to it as it fits.
int64_t window_start(const Literal& start, int64_t extent, int64_t of) {
  return std::clamp<int64_t>(start.integers()[0], 0, of - extent);
}

void require_start(const OpCall& call, size_t input) {
  OperandNames::note("start", call.inputs[input]);
  if (call.inputs[input] != TensorType{DType::i64, {}})
    call.fail(fmt::format("needs start i64[], got {}", call.inputs[input].text()));
}

// --- dynamic_slice --------------------------------------------------------------------------------
std::vector<TensorType> infer_slice(const OpCall& call) {
  require_inputs(call, 2);
  require_start(call, 1);
  const TensorType& x = call.inputs[0];
  const int axis = require_axis(call, require_attribute<int64_t>(call, "axis"), "x", x);
  const int64_t extent = require_attribute<int64_t>(call, "extent");
  if (extent < 0 || extent > x.shape[axis])
    call.fail(
        fmt::format("no window of {} fits axis {} of {}", extent, axis, operand_text("x", x)));
  return {{x.dtype, x.shape.with(axis, extent)}};
}

void slice_reference(ReferenceCall& call) {
  const Literal& x = *call.inputs[0];
  Literal& y = call.outputs[0];
  const AxisView source(x.shape(), axis_of(call.attributes));
  const AxisView view(y.shape(), axis_of(call.attributes));
  const int64_t start = window_start(*call.inputs[1], view.extent, source.extent);
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t i = 0; i < view.extent; ++i)
      for (int64_t n = 0; n < view.inner; ++n)
        copy_element(y, view.at(o, i, n), x, source.at(o, start + i, n));
}

std::vector<Tensor> slice_vjp(const VjpCall& call) {
  if (!call.wanted[0]) return {{}, {}};
  return {dynamic_update_slice(zeros_like(call.inputs[0]), call.cotangents[0], call.inputs[1],
                               axis_of(call.attributes)),
          {}};
}

Sample slice_sample(std::string why, Shape x, int64_t axis, int64_t extent, double start) {
  return {.why = std::move(why),
          .inputs = {SampleInput::normal({DType::f32, std::move(x)}),
                     SampleInput::given({DType::i64, {}}, {start}).constant()},
          .attributes = {{"axis", axis}, {"extent", extent}}};
}

std::vector<Sample> slice_samples() {
  std::vector<Sample> samples = {
      slice_sample("the first rows", {7, 3}, 0, 2, 0),
      slice_sample("rows within", {7, 3}, 0, 3, 2),
      slice_sample("the last rows", {7, 17}, 0, 3, 4),
      slice_sample("columns", {5, 33}, 1, 17, 9),
      slice_sample("the middle axis", {2, 9, 3}, 1, 4, 3),
      slice_sample("one element", {9}, 0, 1, 5),
      slice_sample("a start beyond the end is clamped", {7, 3}, 0, 3, 6),
      slice_sample("a start far beyond the end is clamped", {7, 3}, 0, 3, 1e15),
      slice_sample("a start before the beginning is clamped", {7, 3}, 0, 3, -5),
      slice_sample("everything, wherever it starts", {4, 2}, 0, 4, 1),
      slice_sample("an empty window", {4, 2}, 0, 0, 2),
      slice_sample("of an empty axis", {0, 2}, 0, 0, 0),
  };
  samples.push_back({.why = "tokens",
                     .inputs = {SampleInput::integers({DType::i32, {20}}, 0, 100),
                                SampleInput::given({DType::i64, {}}, {6}).constant()},
                     .attributes = {{"axis", int64_t{0}}, {"extent", int64_t{5}}}});
  return samples;
}

std::vector<ErrorSample> slice_errors() {
  const TensorType x{DType::f32, {4, 2}};
  const TensorType start{DType::i64, {}};
  const Attributes good{{"axis", int64_t{0}}, {"extent", int64_t{2}}};
  return {
      {"a window longer than the axis",
       {x, start},
       {{"axis", int64_t{0}}, {"extent", int64_t{5}}},
       "no window of 5 fits axis 0 of x f32[4,2]"},
      {"an axis beyond the last",
       {x, start},
       {{"axis", int64_t{2}}, {"extent", int64_t{1}}},
       "axis 2 out of range [-2, 1] for x f32[4,2]"},
      {"several starts", {x, {DType::i64, {2}}}, good, "needs start i64[], got i64[2]"},
      {"a start of another dtype", {x, {DType::i32, {}}}, good, "needs start i64[], got i32[]"}};
}

// --- dynamic_update_slice -------------------------------------------------------------------------
std::vector<TensorType> infer_update(const OpCall& call) {
  require_inputs(call, 3);
  require_same_dtype(call, 0, "x", 1, "update");
  require_start(call, 2);
  const TensorType& x = call.inputs[0];
  const TensorType& update = call.inputs[1];
  const int axis = require_axis(call, require_attribute<int64_t>(call, "axis"), "x", x);
  if (update.shape.rank() != x.shape.rank() ||
      update.shape.without(axis) != x.shape.without(axis) || update.shape[axis] > x.shape[axis])
    call.fail(fmt::format("{} is no window along axis {} of {}", operand_text("update", update),
                          axis, operand_text("x", x)));
  return {x};
}

void update_reference(ReferenceCall& call) {
  const Literal& update = *call.inputs[1];
  Literal& y = call.outputs[0];
  y = *call.inputs[0];
  const AxisView target(y.shape(), axis_of(call.attributes));
  const AxisView view(update.shape(), axis_of(call.attributes));
  const int64_t start = window_start(*call.inputs[2], view.extent, target.extent);
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t i = 0; i < view.extent; ++i)
      for (int64_t n = 0; n < view.inner; ++n)
        copy_element(y, target.at(o, start + i, n), update, view.at(o, i, n));
}

std::vector<Tensor> update_vjp(const VjpCall& call) {
  const int axis = axis_of(call.attributes);
  const Tensor dy = call.cotangents[0];
  const Tensor update = call.inputs[1];
  const Tensor start = call.inputs[2];
  Tensor dx, dupdate;
  if (call.wanted[0]) dx = dynamic_update_slice(dy, zeros_like(update), start, axis);
  if (call.wanted[1]) dupdate = dynamic_slice(dy, start, axis, update.dim(axis));
  return {dx, dupdate, {}};
}

Sample update_sample(std::string why, Shape x, int64_t axis, int64_t extent, double start) {
  const Shape update = x.with(static_cast<int>(axis), extent);
  return {
      .why = std::move(why),
      .inputs = {SampleInput::normal({DType::f32, x}), SampleInput::normal({DType::f32, update}),
                 SampleInput::given({DType::i64, {}}, {start}).constant()},
      .attributes = {{"axis", axis}}};
}

std::vector<Sample> update_samples() {
  std::vector<Sample> samples = {
      update_sample("one row of a key cache", {2, 9, 5}, 1, 1, 6),
      update_sample("the first rows", {7, 3}, 0, 2, 0),
      update_sample("columns", {5, 33}, 1, 17, 9),
      update_sample("one element", {9}, 0, 1, 5),
      update_sample("a start beyond the end is clamped", {7, 3}, 0, 3, 6),
      update_sample("a start before the beginning is clamped", {7, 3}, 0, 3, -5),
      update_sample("everything", {4, 2}, 0, 4, 1),
      update_sample("nothing", {4, 2}, 0, 0, 2),
      update_sample("of an empty axis", {0, 2}, 0, 0, 0),
  };
  samples.push_back({.why = "tokens",
                     .inputs = {SampleInput::integers({DType::i32, {20}}, 0, 100),
                                SampleInput::integers({DType::i32, {1}}, 0, 100),
                                SampleInput::given({DType::i64, {}}, {19}).constant()},
                     .attributes = {{"axis", int64_t{0}}}});
  return samples;
}

std::vector<ErrorSample> update_errors() {
  const TensorType x{DType::f32, {4, 2}};
  const TensorType start{DType::i64, {}};
  const Attributes axis{{"axis", int64_t{0}}};
  return {{"an update longer than the axis",
           {x, {DType::f32, {5, 2}}, start},
           axis,
           "update f32[5,2] is no window along axis 0 of x f32[4,2]"},
          {"an update of other columns",
           {x, {DType::f32, {2, 3}}, start},
           axis,
           "update f32[2,3] is no window along axis 0 of x f32[4,2]"},
          {"two dtypes",
           {x, {DType::bf16, {2, 2}}, start},
           axis,
           "x f32[4,2] and update bf16[2,2] differ in dtype"},
          {"several starts",
           {x, {DType::f32, {2, 2}}, {DType::i64, {1}}},
           axis,
           "needs start i64[], got i64[1]"}};
}

const OpRegistrar dynamic_slice_op(OpDef{
    .name = "dynamic_slice",
    .summary = "a window of one axis from a start known at run time",
    .tags = Tag::movement,
    .infer = infer_slice,
    .vjp = slice_vjp,
    .cost = movement_cost,
    .reference = slice_reference,
    .samples = slice_samples,
    .error_samples = slice_errors,
});

const OpRegistrar dynamic_update_slice_op(OpDef{
    .name = "dynamic_update_slice",
    .summary = "x with a window of one axis replaced, from a start known at run time",
    .tags = Tag::movement,
    .infer = infer_update,
    .vjp = update_vjp,
    .cost = copy_cost,
    .reference = update_reference,
    .samples = update_samples,
    .error_samples = update_errors,
});

}  // namespace

Tensor dynamic_slice(Tensor x, Tensor start, int axis, int64_t extent, SourceLoc loc) {
  require_tensor("dynamic_slice", "x", x, loc);
  require_tensor("dynamic_slice", "start", start, loc);
  return apply("dynamic_slice", {x, start},
               {{"axis", normal_axis(axis, x.rank())}, {"extent", extent}}, loc);
}

Tensor dynamic_update_slice(Tensor x, Tensor update, Tensor start, int axis, SourceLoc loc) {
  require_tensor("dynamic_update_slice", "x", x, loc);
  require_tensor("dynamic_update_slice", "update", update, loc);
  require_tensor("dynamic_update_slice", "start", start, loc);
  return apply("dynamic_update_slice", {x, update, start}, {{"axis", normal_axis(axis, x.rank())}},
               loc);
}

}  // namespace fullbore
