#include "fullbore/ops/quantized_linear.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fullbore/base/error.h"
#include "fullbore/base/quantize.h"
#include "fullbore/ops/compose.h"
#include "fullbore/ops/operand_names.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 3);
  require_dtype(call, 0, "x", DTypeSet::floating);
  require_rank_at_least(call, 0, "x", 1);
  require_rank(call, 1, "weight", 2);
  const TensorType& x = call.inputs[0];
  const TensorType& weight = call.inputs[1];
  const TensorType& scale = call.inputs[2];
  OperandNames::note("scale", scale);
  if (weight.dtype != DType::i8)
    call.fail(fmt::format("needs i8 weight, got {}", operand_text("weight", weight)));
  const int last = x.shape.rank() - 1;
  const int64_t depth = x.shape[last];
  if (depth != weight.shape[1])
    call.fail(fmt::format("{} and {} differ in their last extent", operand_text("x", x),
                          operand_text("weight", weight)));
  if (depth < 1 || depth > kMostInt8Depth)
    call.fail(fmt::format("needs a last extent of 1 to {}, got {}: 32 bits must hold its sums",
                          kMostInt8Depth, operand_text("x", x)));
  const bool fits = scale.dtype == DType::f32 || scale.dtype == x.dtype;
  if (!fits || scale.shape != Shape{weight.shape[0]})
    call.fail(fmt::format("needs scale f32[{}], got {}", weight.shape[0], scale.text()));
  const Shape result = x.shape.with(last, weight.shape[0]);
  require_elements(call, result);
  return {{x.dtype, result}};
}

// As if x had not been rounded: dx = (dy s_o) q_W. The weights are constants.
std::vector<Tensor> vjp(const VjpCall& call) {
  if (call.wanted[1] || call.wanted[2])
    throw UsageError("quantized_linear: weights in 8 bits and their scales have no gradient",
                     call.loc);
  const Tensor x = call.inputs[0], scale = call.inputs[2], dy = call.cotangents[0];
  const Tensor weight = cast(call.inputs[1], x.dtype());
  const Tensor scaled = as_dtype(widened(dy) * as_dtype(scale, widened(dy).dtype()), x.dtype());
  const Tensor rows = reshape(scaled, {scaled.type().elements() / scaled.dim(-1), scaled.dim(-1)});
  return {reshape(matmul(rows, weight), x.shape()), {}, {}};
}

// In f64, which holds every sum exactly.
std::vector<Tensor> decompose(const DecomposeCall& call) {
  const Tensor x = widened(call.inputs[0]);
  const int64_t depth = x.dim(-1);
  const Tensor rows = reshape(x, {x.type().elements() / depth, depth});
  const Tensor exact = reduce_max(abs(rows), {-1}, true) / static_cast<double>(kInt8Largest);
  const Tensor row_scale = select(less(exact, dtype_smallest_normal(x.dtype())), 1.0, exact);
  const Tensor q = as_dtype(round(rows / row_scale), DType::f64);
  const Tensor sums = matmul(q, cast(call.inputs[1], DType::f64), {.transpose_b = true});
  const Tensor y = as_dtype(sums, x.dtype()) * as_dtype(call.inputs[2], x.dtype()) * row_scale;
  const Shape result = x.shape().with(x.rank() - 1, y.dim(1));
  return {as_dtype(reshape(y, result), call.inputs[0].dtype())};
}

Cost cost(const CostCall& call) {
  Cost cost = copy_cost(call);
  cost.flops = 2 * static_cast<double>(call.outputs[0].elements()) *
               static_cast<double>(call.inputs[1].shape[1]);
  return cost;
}

// The scale is rounded as kernels round it, and so is x / scale: otherwise q would differ by 1 now and then.
double row_of_integers(const double* x, int64_t depth, DType computed, std::vector<int64_t>& q) {
  double largest = 0;
  for (int64_t i = 0; i < depth; ++i)  // NaN is above all numbers, and stays
    if (const double size = std::fabs(x[i]); size > largest || std::isnan(size)) largest = size;
  const double scale = int8_scale(largest, computed);
  for (int64_t i = 0; i < depth; ++i)
    q[static_cast<size_t>(i)] =
        std::isnan(scale)
            ? 0
            : static_cast<int64_t>(std::nearbyint(round_to_dtype(x[i] / scale, computed)));
  return scale;
}

void reference(ReferenceCall& call) {
  const std::vector<double>& x = call.inputs[0]->reals();
  const std::vector<int64_t>& weight = call.inputs[1]->integers();
  const std::vector<double>& scale = call.inputs[2]->reals();
  std::vector<double>& y = call.outputs[0].reals();
  const DType computed = compute_dtype(call.inputs[0]->dtype());
  const int64_t columns = call.inputs[1]->shape()[0];
  const int64_t depth = call.inputs[1]->shape()[1];
  std::vector<int64_t> q(static_cast<size_t>(depth));
  std::vector<double> magnitudes(y.size());
  for (int64_t row = 0; row < static_cast<int64_t>(x.size()) / depth; ++row) {
    const double row_scale = row_of_integers(x.data() + row * depth, depth, computed, q);
    for (int64_t column = 0; column < columns; ++column) {
      int64_t sum = 0;
      for (int64_t i = 0; i < depth; ++i)
        sum += q[static_cast<size_t>(i)] * weight[static_cast<size_t>(column * depth + i)];
      const auto at = static_cast<size_t>(row * columns + column);
      y[at] = static_cast<double>(sum) * scale[static_cast<size_t>(column)] * row_scale;
      magnitudes[at] = 2 * std::abs(y[at]);  // the sum, and two products, are rounded
    }
  }
  call.magnitudes = {std::move(magnitudes)};
}

Sample sample(std::string why, Shape x, int64_t columns) {
  const int64_t depth = x[x.rank() - 1];
  return {.why = std::move(why),
          .inputs = {SampleInput::normal({DType::f32, std::move(x)}),
                     SampleInput::integers({DType::i8, {columns, depth}}, -127, 128),
                     SampleInput::uniform({DType::f32, {columns}}, 1e-3, 1e-2)},
          .attributes = {},
          .gradcheck = false};
}

std::vector<Sample> samples() {
  std::vector<Sample> samples = {
      sample("one product", {1, 1}, 1),
      sample("a vector", {7}, 5),
      sample("one row, odd", {1, 67}, 33),
      sample("one row beside 64", {1, 128}, 17),
      sample("rows of rank 3", {2, 3, 31}, 9),
      sample("rows and columns beside tiles", {5, 65}, 13),
      sample("more rows than an item has", {67, 40}, 70),
      sample("a deep sum", {3, 1031}, 6),
      sample("no rows", {0, 4}, 3),
      sample("no columns", {3, 4}, 0),
  };
  Sample extremes = sample("the largest sums", {1, 300}, 2);
  extremes.inputs[0] = SampleInput::given({DType::f32, {1, 300}}, std::vector<double>(300, -2));
  extremes.inputs[1] = SampleInput::given({DType::i8, {2, 300}}, [] {
    std::vector<double> values(600, 127);
    std::fill(values.begin() + 300, values.end(), -127);
    return values;
  }());
  samples.push_back(std::move(extremes));
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Sample special = sample("ties, zeros, tiny numbers, infinity, NaN", {5, 4}, 3);
  // The first row has scale 1: its ties go to even.
  special.inputs[0] = SampleInput::given(
      {DType::f32, {5, 4}},
      {127, 0.5, 1.5, -2.5, 0, 0, -0.0, 0, 1e-40, 0, -1e-40, 0, infinity, 1, 2, 3, 1, nan, 2, 3});
  samples.push_back(std::move(special));
  return samples;
}

std::vector<ErrorSample> errors() {
  const TensorType x{DType::f32, {2, 3}};
  const TensorType weight{DType::i8, {5, 3}};
  const TensorType scale{DType::f32, {5}};
  return {
      {"two operands", {x, weight}, {}, "needs 3 operands, got 2"},
      {"integers", {{DType::i32, {2, 3}}, weight, scale}, {}, "needs floating x, got i32[2,3]"},
      {"a scalar", {{DType::f32, {}}, weight, scale}, {}, "needs x of rank 1 or more, got f32[]"},
      {"floating weights",
       {x, {DType::f32, {5, 3}}, scale},
       {},
       "needs i8 weight, got weight f32[5,3]"},
      {"bytes without a sign",
       {x, {DType::u8, {5, 3}}, scale},
       {},
       "needs i8 weight, got weight u8[5,3]"},
      {"a vector of weights", {x, {DType::i8, {3}}, scale}, {}, "needs weight of rank 2"},
      {"another depth",
       {x, {DType::i8, {5, 4}}, scale},
       {},
       "x f32[2,3] and weight i8[5,4] differ in their last extent"},
      {"no depth",
       {{DType::f32, {2, 0}}, {DType::i8, {5, 0}}, scale},
       {},
       "needs a last extent of 1 to 133144, got x f32[2,0]"},
      {"too deep",
       {{DType::f32, {1, 133145}}, {DType::i8, {5, 133145}}, scale},
       {},
       "needs a last extent of 1 to 133144"},
      {"a scale too few", {x, weight, {DType::f32, {4}}}, {}, "needs scale f32[5], got f32[4]"},
      {"a wide scale", {x, weight, {DType::f64, {5}}}, {}, "needs scale f32[5], got f64[5]"},
  };
}

const OpRegistrar quantized_linear_op(OpDef{
    .name = "quantized_linear",
    .summary = "x times the transpose of 8-bit weights, by sums of 8-bit products; no gradient",
    .tags = Tag::composite,
    .infer = infer,
    .vjp = vjp,
    .decompose = decompose,
    .cost = cost,
    .reference = reference,
    .samples = samples,
    .error_samples = errors,
});

}  // namespace

Tensor quantized_linear(Tensor x, Tensor weight, Tensor scale, SourceLoc loc) {
  return apply("quantized_linear", {x, weight, scale}, {}, loc);
}

}  // namespace fullbore
