#include <algorithm>
#include <cmath>

#include "fullbore/ops/compose.h"
#include "fullbore/ops/reduce.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

using Axes = std::vector<int64_t>;

const Axes& axes_of(const Attributes& attributes) { return attributes.get<Axes>("axes"); }

// All of x's elements that end in one result, in row-major order of x: visit(result, element).
template <class Visit>
void for_each_term(const ReferenceCall& call, const Visit& visit) {
  const Shape& shape = call.inputs[0]->shape();
  const std::vector<int64_t> strides = reduced_strides(shape, axes_of(call.attributes));
  for_each_index(shape, [&](const std::vector<int64_t>& index, int64_t flat) {
    visit(static_cast<size_t>(flat_index(index, strides)), static_cast<size_t>(flat));
  });
}

int64_t terms_of(const ReferenceCall& call) {
  int64_t terms = 1;
  for (int64_t axis : axes_of(call.attributes))
    terms *= call.inputs[0]->shape()[static_cast<int>(axis)];
  return terms;
}

// --- sum ------------------------------------------------------------------------------------------
void sum_reference(ReferenceCall& call) {
  const Literal& x = *call.inputs[0];
  Literal& y = call.outputs[0];
  if (!x.floating()) {
    // Unsigned, for integers wrap by definition.
    for_each_term(call, [&](size_t to, size_t from) {
      y.integers()[to] = static_cast<int64_t>(static_cast<uint64_t>(y.integers()[to]) +
                                              static_cast<uint64_t>(x.integers()[from]));
    });
    y.round();
    return;
  }
  std::vector<double> magnitude(y.reals().size(), 0);
  for_each_term(call, [&](size_t to, size_t from) {
    y.reals()[to] += x.reals()[from];
    magnitude[to] += std::abs(x.reals()[from]);
  });
  for (double& each : magnitude) each *= static_cast<double>(terms_of(call));
  call.magnitudes = {std::move(magnitude)};
}

std::vector<Tensor> sum_vjp(const VjpCall& call) {
  return {restore_axes(call.cotangents[0], call.inputs[0].shape(), axes_of(call.attributes))};
}

// --- max, min -------------------------------------------------------------------------------------
std::vector<TensorType> infer_extremum(const OpCall& call) {
  std::vector<TensorType> types = infer_reduction(call);
  for (int64_t axis : axes_of(call.attributes))
    if (call.inputs[0].shape[static_cast<int>(axis)] == 0)
      call.fail(fmt::format("axis {} of {} is empty: it has no extreme element", axis,
                            operand_text("x", call.inputs[0])));
  return types;
}

template <ScalarOp op>
void extremum_reference(ReferenceCall& call) {
  const Literal& x = *call.inputs[0];
  Literal& y = call.outputs[0];
  std::vector<bool> begun(static_cast<size_t>(y.elements()), false);
  for_each_term(call, [&](size_t to, size_t from) {
    if (x.floating())
      y.reals()[to] =
          begun[to] ? evaluate_real(op, y.reals()[to], x.reals()[from]) : x.reals()[from];
    else
      y.integers()[to] = begun[to]
                             ? evaluate_integer(op, x.dtype(), y.integers()[to], x.integers()[from])
                             : x.integers()[from];
    begun[to] = true;
  });
}

// Elements equal to the extreme one share its cotangent equally: the one choice that does not
// depend on the order in which a kernel looks at them.
std::vector<Tensor> extremum_vjp(const VjpCall& call) {
  const Tensor x = call.inputs[0];
  const Axes& axes = axes_of(call.attributes);
  const Tensor chosen = equal(x, restore_axes(call.outputs[0], x.shape(), axes));
  // Counted in f32: bf16 cannot count beyond 256.
  const Tensor count = reduce_sum(cast(chosen, compute_dtype(x.dtype())), axes);
  const Tensor share = as_dtype(widened(call.cotangents[0]) / count, x.dtype());
  return {select(chosen, restore_axes(share, x.shape(), axes), 0.0)};
}

// --- prod -----------------------------------------------------------------------------------------
void prod_reference(ReferenceCall& call) {
  const Literal& x = *call.inputs[0];
  Literal& y = call.outputs[0];
  if (!x.floating()) {
    for (int64_t& value : y.integers()) value = 1;
    for_each_term(call, [&](size_t to, size_t from) {
      y.integers()[to] = static_cast<int64_t>(static_cast<uint64_t>(y.integers()[to]) *
                                              static_cast<uint64_t>(x.integers()[from]));
    });
    y.round();
    return;
  }
  for (double& value : y.reals()) value = 1;
  for_each_term(call, [&](size_t to, size_t from) { y.reals()[to] *= x.reals()[from]; });
  std::vector<double> magnitude;
  for (double value : y.reals())
    magnitude.push_back(std::abs(value) * static_cast<double>(terms_of(call)));
  call.magnitudes = {std::move(magnitude)};
}

// Products of the elements before each one of the last axis, by doubling: log2(n) sweeps.
Tensor exclusive_products(Tensor x) {
  const int axis = x.rank() - 1;
  const int64_t extent = x.dim(axis);
  const auto shifted = [&](Tensor y, int64_t by) {
    const Tensor ones = full(y.builder(), {y.dtype(), y.shape().with(axis, by)}, 1.0);
    return concat(std::vector{ones, slice(y, axis, 0, extent - by)}, axis);
  };
  Tensor products = shifted(x, 1);
  for (int64_t by = 1; by < extent; by *= 2) products = products * shifted(products, by);
  return products;
}

// The cotangent times the product of all other elements. Not y / x, which is 0 / 0 where x has a
// zero: with one zero its own derivative is the product of the rest, with two all are 0.
std::vector<Tensor> prod_vjp(const VjpCall& call) {
  const Tensor x = call.inputs[0];
  if (x.shape().elements() == 0) return {zeros_like(x)};
  const Axes& axes = axes_of(call.attributes);
  Axes order;  // the kept axes, then those of the product
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) order.push_back(axis);
  order.insert(order.end(), axes.begin(), axes.end());
  Axes inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);

  const int64_t results = call.outputs[0].shape().elements();
  const Tensor moved = transpose(widened(x), order);
  const Tensor rows = reshape(moved, {results, x.shape().elements() / results});
  const Tensor before = exclusive_products(rows);
  const Tensor after = reverse(exclusive_products(reverse(rows, 1)), 1);
  const Tensor others = transpose(reshape(before * after, moved.shape()), inverse);
  const Tensor cotangent = restore_axes(widened(call.cotangents[0]), x.shape(), axes);
  return {as_dtype(cotangent * others, x.dtype())};
}

// --- samples --------------------------------------------------------------------------------------
std::vector<Sample> sum_samples() {
  const TensorType type{DType::f32, {}};
  return with(reduction_samples(SampleInput::normal(type), true),
              {{.why = "a small rest of large terms that cancel",
                .inputs = {SampleInput::given({DType::f32, {2, 4}},
                                              {1000, 1, -1000, 0.25, 3e4, -3e4, 1e-3, 0})},
                .attributes = {{"axes", Axes{1}}}},
               {.why = "infinities of one sign, of both, NaN",
                .inputs = {SampleInput::given({DType::f32, {3, 2}},
                                              {HUGE_VAL, 1, HUGE_VAL, -HUGE_VAL, NAN, 1})},
                .attributes = {{"axes", Axes{1}}},
                .gradcheck = false},
               {.why = "i32 wraps around",
                .inputs = {SampleInput::given({DType::i32, {3}}, {2147483647, 1, 5}).constant()},
                .attributes = {{"axes", Axes{0}}}},
               {.why = "i64 counts",
                .inputs = {SampleInput::integers({DType::i64, {4, 5}}, -9, 9)},
                .attributes = {{"axes", Axes{0}}}}});
}

std::vector<Sample> extremum_samples() {
  const TensorType type{DType::f32, {}};
  return with(
      reduction_samples(SampleInput::normal(type), false),
      {{.why = "ties, zeros of both signs, all negative",
        .inputs = {SampleInput::given({DType::f32, {4, 4}}, {1, 3, 3, 2, 0.0, -0.0, 0.0, -0.0, -5,
                                                             -5, -5, -5, -4, -3, -2, -1})},
        .attributes = {{"axes", Axes{1}}},
        .gradcheck = false},
       {.why = "infinities and NaN",
        .inputs = {SampleInput::given({DType::f32, {4, 3}}, {-HUGE_VAL, -HUGE_VAL, -HUGE_VAL, 1,
                                                             HUGE_VAL, 2, 1, NAN, 3, NAN, -1, -2})},
        .attributes = {{"axes", Axes{1}}},
        .gradcheck = false},
       {.why = "integers",
        .inputs = {SampleInput::integers({DType::i32, {3, 7}}, -100, 100)},
        .attributes = {{"axes", Axes{1}}}},
       {.why = "no rows of some columns",
        .inputs = {SampleInput::normal({DType::f32, {0, 4}})},
        .attributes = {{"axes", Axes{1}}}}});
}

std::vector<Sample> prod_samples() {
  const TensorType type{DType::f32, {}};
  return with(
      reduction_samples(SampleInput::uniform(type, 0.97, 1.03), true),
      {{.why = "no zero, one zero, two zeros",
        .inputs = {SampleInput::given({DType::f32, {3, 4}},
                                      {2, -3, 0.5, 4, 2, 0, 0.5, 4, 0, -3, 0, 4})},
        .attributes = {{"axes", Axes{1}}}},
       {.why = "zeros across two axes",
        .inputs = {SampleInput::given({DType::f32, {2, 2, 2}}, {2, 3, 0, 5, 1.5, -2, 3, 0.5})},
        .attributes = {{"axes", Axes{0, 2}}}},
       {.why = "integers",
        .inputs = {SampleInput::integers({DType::i64, {4, 3}}, -5, 6)},
        .attributes = {{"axes", Axes{0}}}}});
}

std::vector<ErrorSample> sum_errors() { return reduction_errors(); }
std::vector<ErrorSample> extremum_errors() {
  std::vector<ErrorSample> errors = reduction_errors();
  errors.push_back({"nothing to choose from",
                    {{DType::f32, {3, 0}}},
                    {{"axes", Axes{1}}},
                    "axis 1 of x f32[3,0] is empty"});
  return errors;
}

const OpRegistrar reduce_sum_op(OpDef{
    .name = "reduce_sum",
    .summary = "sum along axes, which are removed",
    .tags = Tag::reduction,
    .scalar = ScalarOp::add,
    .infer = infer_reduction,
    .vjp = sum_vjp,
    .cost = reduction_cost,
    .reference = sum_reference,
    .samples = sum_samples,
    .error_samples = sum_errors,
});

const OpRegistrar reduce_max_op(OpDef{
    .name = "reduce_max",
    .summary = "largest element along axes, which are removed",
    .tags = Tag::reduction,
    .scalar = ScalarOp::maximum,
    .infer = infer_extremum,
    .vjp = extremum_vjp,
    .cost = reduction_cost,
    .reference = extremum_reference<ScalarOp::maximum>,
    .samples = extremum_samples,
    .error_samples = extremum_errors,
});

const OpRegistrar reduce_min_op(OpDef{
    .name = "reduce_min",
    .summary = "smallest element along axes, which are removed",
    .tags = Tag::reduction,
    .scalar = ScalarOp::minimum,
    .infer = infer_extremum,
    .vjp = extremum_vjp,
    .cost = reduction_cost,
    .reference = extremum_reference<ScalarOp::minimum>,
    .samples = extremum_samples,
    .error_samples = extremum_errors,
});

const OpRegistrar reduce_prod_op(OpDef{
    .name = "reduce_prod",
    .summary = "product along axes, which are removed",
    .tags = Tag::reduction,
    .scalar = ScalarOp::mul,
    .infer = infer_reduction,
    .vjp = prod_vjp,
    .cost = reduction_cost,
    .reference = prod_reference,
    .samples = prod_samples,
    .error_samples = sum_errors,
});

}  // namespace

Tensor reduce_sum(Tensor x, std::vector<int64_t> axes, bool keep_dims, SourceLoc loc) {
  return apply_reduction("reduce_sum", x, std::move(axes), keep_dims, loc);
}
Tensor reduce_max(Tensor x, std::vector<int64_t> axes, bool keep_dims, SourceLoc loc) {
  return apply_reduction("reduce_max", x, std::move(axes), keep_dims, loc);
}
Tensor reduce_min(Tensor x, std::vector<int64_t> axes, bool keep_dims, SourceLoc loc) {
  return apply_reduction("reduce_min", x, std::move(axes), keep_dims, loc);
}
Tensor reduce_prod(Tensor x, std::vector<int64_t> axes, bool keep_dims, SourceLoc loc) {
  return apply_reduction("reduce_prod", x, std::move(axes), keep_dims, loc);
}

}  // namespace fullbore
