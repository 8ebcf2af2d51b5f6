#include "fullbore/ops/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fullbore/ops/compose.h"
#include "fullbore/ops/rules.h"

namespace fullbore {

Exponentials exponentials(Tensor x, int axis) {
  Exponentials e;
  const Tensor largest = reduce_max(x, {axis}, true);
  e.shift = select(is_finite(largest), largest, 0.0);
  e.shifted = x - e.shift;
  e.values = exp(e.shifted);
  e.sum = reduce_sum(e.values, {axis}, true);
  return e;
}

Tensor nonzero_sum(const Exponentials& e) { return select(equal(e.sum, 0.0), 1.0, e.sum); }

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

int axis_of(const Attributes& attributes) {
  return static_cast<int>(attributes.get<int64_t>("axis"));
}

int require_floating_and_axis(const OpCall& call) {
  require_inputs(call, 1);
  require_dtype(call, 0, "x", DTypeSet::floating);
  return require_axis(call, require_attribute<int64_t>(call, "axis"), "x", call.inputs[0]);
}

std::vector<TensorType> infer(const OpCall& call) {
  require_floating_and_axis(call);
  return {call.inputs[0]};
}

std::vector<TensorType> infer_without_axis(const OpCall& call) {
  const int axis = require_floating_and_axis(call);
  return {{call.inputs[0].dtype, call.inputs[0].shape.without(axis)}};
}

// --- softmax --------------------------------------------------------------------------------------
std::vector<Tensor> decompose_softmax(const DecomposeCall& call) {
  const Tensor x = call.inputs[0];
  const int axis = axis_of(call.attributes);
  if (x.dim(axis) == 0) return {x};
  const Exponentials e = exponentials(widened(x), axis);
  return {as_dtype(e.values * (1.0 / nonzero_sum(e)), x.dtype())};
}

// dx = y (dy - sum(y dy)): rows of zeros stay zeros.
std::vector<Tensor> softmax_vjp(const VjpCall& call) {
  const Tensor y = widened(call.outputs[0]);
  const Tensor dy = widened(call.cotangents[0]);
  const Tensor along = reduce_sum(y * dy, {axis_of(call.attributes)}, true);
  return {as_dtype(y * (dy - along), call.inputs[0].dtype())};
}

// Independent of the decomposition: the definition in plain loops.
void softmax_reference(ReferenceCall& call) {
  const std::vector<double>& x = call.inputs[0]->reals();
  std::vector<double>& y = call.outputs[0].reals();
  const AxisView view(call.inputs[0]->shape(), axis_of(call.attributes));
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t n = 0; n < view.inner; ++n) {
      const auto at = [&](int64_t i) { return static_cast<size_t>(view.at(o, i, n)); };
      double largest = -kInfinity;
      for (int64_t i = 0; i < view.extent; ++i)
        if (std::isnan(x[at(i)]) || x[at(i)] > largest) largest = x[at(i)];
      if (largest == -kInfinity) continue;  // zeros
      double sum = 0;
      for (int64_t i = 0; i < view.extent; ++i) sum += std::exp(x[at(i)] - largest);
      for (int64_t i = 0; i < view.extent; ++i) y[at(i)] = std::exp(x[at(i)] - largest) / sum;
    }
}

// --- log_softmax ----------------------------------------------------------------------------------
std::vector<Tensor> decompose_log_softmax(const DecomposeCall& call) {
  const Tensor x = call.inputs[0];
  const int axis = axis_of(call.attributes);
  if (x.dim(axis) == 0) return {x};
  const Exponentials e = exponentials(widened(x), axis);
  return {as_dtype(e.shifted - log(nonzero_sum(e)), x.dtype())};
}

// dx = dy - softmax(x) sum(dy). The softmax is exp(y), unless y was rounded to 8 bits or so, which
// its exponential would turn into an error of per cents.
std::vector<Tensor> log_softmax_vjp(const VjpCall& call) {
  const Tensor x = call.inputs[0];
  const int axis = axis_of(call.attributes);
  const Tensor dy = widened(call.cotangents[0]);
  const Tensor share =
      is_low_precision(x.dtype()) ? softmax(widened(x), axis) : exp(call.outputs[0]);
  return {as_dtype(dy - share * reduce_sum(dy, {axis}, true), x.dtype())};
}

// --- log_sum_exp ----------------------------------------------------------------------------------
std::vector<Tensor> decompose_log_sum_exp(const DecomposeCall& call) {
  const Tensor x = call.inputs[0];
  const int axis = axis_of(call.attributes);
  if (x.dim(axis) == 0)
    return {full(x.builder(), {x.dtype(), x.shape().without(axis)}, -kInfinity)};
  const Exponentials e = exponentials(widened(x), axis);
  return {as_dtype(squeeze(e.shift + log(e.sum), axis), x.dtype())};
}

// dx = dy softmax(x), where softmax(x) = exp(x - y); see log_softmax for low precision. A row of
// -inf has y = -inf, and gradient zero.
std::vector<Tensor> log_sum_exp_vjp(const VjpCall& call) {
  const Tensor x = call.inputs[0];
  const int axis = axis_of(call.attributes);
  const Tensor dy = expand_dims(widened(call.cotangents[0]), axis);
  if (is_low_precision(x.dtype())) return {as_dtype(softmax(widened(x), axis) * dy, x.dtype())};
  const Tensor y = call.outputs[0];
  return {exp(x - expand_dims(select(is_finite(y), y, 0.0), axis)) * dy};
}

// --- samples --------------------------------------------------------------------------------------
std::vector<Sample> samples() {
  const auto random = [](const char* why, Shape shape, int64_t axis) {
    return Sample{.why = why,
                  .inputs = {SampleInput::normal({DType::f32, std::move(shape)})},
                  .attributes = {{"axis", axis}}};
  };
  const auto given = [](const char* why, Shape shape, std::vector<double> values) {
    return Sample{.why = why,
                  .inputs = {SampleInput::given({DType::f32, std::move(shape)}, std::move(values))},
                  .attributes = {{"axis", int64_t{1}}},
                  .gradcheck = false};
  };
  return {
      random("one element", {1}, 0),
      random("rows, odd", {3, 5}, 1),
      random("columns", {5, 3}, 0),
      random("the middle axis", {2, 7, 3}, 1),
      random("one below 16 lanes", {4, 15}, 1),
      random("one above 16 lanes", {4, 17}, 1),
      random("one below 128", {2, 127}, 1),
      random("one above 128", {2, 129}, 1),
      random("one above 1024", {1025}, 0),
      random("rows of one element", {4, 1}, 1),
      given("rows of no elements", {3, 0}, {}),
      random("no rows", {0, 3}, 1),
      {.why = "logits far apart",
       .inputs = {SampleInput::uniform({DType::f32, {6, 9}}, -40, 40)},
       .attributes = {{"axis", int64_t{1}}}},
      given("exponents beyond overflow and underflow", {3, 4},
            {1000, -1000, 999, 0, -1000, -1001, -1002, -1000, 1e4, -1e4, 1e4, 0}),
      given("several largest, zeros of both signs", {2, 4}, {3, 3, 1, 3, 0.0, -0.0, 0.0, -0.0}),
      given("masked elements", {2, 4}, {-kInfinity, 1, -kInfinity, 2, 0, -kInfinity, 1, 1}),
      given("a row that is masked whole", {2, 3},
            {-kInfinity, -kInfinity, -kInfinity, 1, 2, -kInfinity}),
      given("NaN spoils its row alone", {2, 3}, {1, NAN, 2, 1, 2, 3}),
  };
}

std::vector<ErrorSample> errors() {
  return {{"integers", {{DType::i32, {4}}}, {{"axis", int64_t{0}}}, "needs floating x, got i32[4]"},
          {"an axis beyond the last",
           {{DType::f32, {8, 4, 2}}},
           {{"axis", int64_t{3}}},
           "axis 3 out of range [-3, 2] for x f32[8,4,2]"},
          {"a scalar", {{DType::f32, {}}}, {{"axis", int64_t{0}}}, "which has no axes"},
          {"no attribute", {{DType::f32, {4}}}, {}, "needs attribute 'axis'"}};
}

const OpRegistrar softmax_op(OpDef{
    .name = "softmax",
    .summary = "exp(x - max) / sum along an axis; zeros where all are -inf",
    .tags = Tag::composite,
    .infer = infer,
    .vjp = softmax_vjp,
    .decompose = decompose_softmax,
    .reference = softmax_reference,
    .samples = samples,
    .error_samples = errors,
});

const OpRegistrar log_softmax_op(OpDef{
    .name = "log_softmax",
    .summary = "x - log(sum(exp(x))) along an axis",
    .tags = Tag::composite,
    .infer = infer,
    .vjp = log_softmax_vjp,
    .decompose = decompose_log_softmax,
    .samples = samples,
    .error_samples = errors,
});

const OpRegistrar log_sum_exp_op(OpDef{
    .name = "log_sum_exp",
    .summary = "log(sum(exp(x))) along an axis, which is removed",
    .tags = Tag::composite,
    .infer = infer_without_axis,
    .vjp = log_sum_exp_vjp,
    .decompose = decompose_log_sum_exp,
    .samples = samples,
    .error_samples = errors,
});

Tensor apply_along(std::string_view op, Tensor x, int axis, SourceLoc loc) {
  require_tensor(op, "x", x, loc);
  return apply(op, {x}, {{"axis", normal_axis(axis, x.rank())}}, loc);
}

}  // namespace

Tensor softmax(Tensor x, int axis, SourceLoc loc) { return apply_along("softmax", x, axis, loc); }
Tensor log_softmax(Tensor x, int axis, SourceLoc loc) {
  return apply_along("log_softmax", x, axis, loc);
}
Tensor log_sum_exp(Tensor x, int axis, SourceLoc loc) {
  return apply_along("log_sum_exp", x, axis, loc);
}

}  // namespace fullbore
