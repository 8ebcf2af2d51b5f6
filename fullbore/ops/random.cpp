#include <cmath>
#include <numbers>

#include "fullbore/base/philox.h"
#include "fullbore/ops/random.h"

/// Floats made of the bits of philox; random.h tells how draws are told apart.
namespace fullbore {
namespace {

// Attributes site, dtype (f32 or f64), shape.
std::vector<TensorType> infer_draw(const OpCall& call) {
  const Shape shape = require_draw(call);
  const auto dtype = require_attribute<DType>(call, "dtype");
  if (dtype != DType::f32 && dtype != DType::f64)
    call.fail(fmt::format("draws f32 or f64, not {}", dtype_name(dtype)));
  return {{dtype, shape}};
}

// The same bits on the host.
uint64_t reference_bits(const ReferenceCall& call, int64_t element) {
  const auto input = [&](size_t i) { return static_cast<uint64_t>(call.inputs[i]->integers()[0]); };
  const uint64_t iteration = call.inputs.size() == 3 ? input(2) : 0;
  const auto site = static_cast<uint64_t>(call.attributes.get<int64_t>("site"));
  return philox_bits(input(0), static_cast<uint64_t>(element) + (iteration << 32),
                     input(1) + (site << 40));
}

// The upper 24 (f64: 53) bits as a fraction: every value is exact, so all devices agree.
std::vector<Tensor> decompose_uniform(const DecomposeCall& call) {
  const auto dtype = call.attributes.get<DType>("dtype");
  const int digits = dtype == DType::f64 ? 53 : 24;
  const Tensor bits = draw_bits(call.inputs, call.attributes.get<int64_t>("site"),
                                Shape(call.attributes.get<std::vector<int64_t>>("shape")));
  const Tensor whole = shift_right(bits, static_cast<double>(64 - digits));
  return {cast(whole, dtype) * std::ldexp(1.0, -digits)};
}

void reference_uniform(ReferenceCall& call) {
  Literal& y = call.outputs[0];
  const int digits = y.dtype() == DType::f64 ? 53 : 24;
  for (int64_t i = 0; i < y.elements(); ++i)
    y.put(i, std::ldexp(static_cast<double>(reference_bits(call, i) >> (64 - digits)), -digits));
}

// Box, Muller 1958: radius from one half of the bits, angle from the other. 24 of the 32 (f64: all)
// are used, so that both fractions are exact; the first is in (0, 1], for its logarithm.
std::vector<Tensor> decompose_normal(const DecomposeCall& call) {
  const auto dtype = call.attributes.get<DType>("dtype");
  const int digits = dtype == DType::f64 ? 32 : 24;
  const double unit = std::ldexp(1.0, -digits);
  const Tensor bits = draw_bits(call.inputs, call.attributes.get<int64_t>("site"),
                                Shape(call.attributes.get<std::vector<int64_t>>("shape")));
  const Tensor low = shift_right(shift_left(bits, 32.0), static_cast<double>(64 - digits));
  const Tensor high = shift_right(bits, static_cast<double>(64 - digits));
  const Tensor first = cast(low + 1.0, dtype) * unit;
  const Tensor angle = cast(high, dtype) * (unit * 2 * std::numbers::pi);
  return {sqrt(log(first) * -2.0) * cos(angle)};
}

void reference_normal(ReferenceCall& call) {
  Literal& y = call.outputs[0];
  const int digits = y.dtype() == DType::f64 ? 32 : 24;
  std::vector<double> magnitudes;
  for (int64_t i = 0; i < y.elements(); ++i) {
    const uint64_t bits = reference_bits(call, i);
    const uint64_t low = (bits & 0xFFFFFFFFU) >> (32 - digits), high = bits >> (64 - digits);
    const double radius =
        std::sqrt(-2 * std::log(std::ldexp(static_cast<double>(low + 1), -digits)));
    const double angle = std::ldexp(static_cast<double>(high), -digits) * 2 * std::numbers::pi;
    y.put(i, radius * std::cos(angle));
    // Where the cosine is near 0 the rounding of its angle is what remains.
    magnitudes.push_back(radius * (4 + angle));
  }
  call.magnitudes = {std::move(magnitudes)};
}

std::vector<Sample> draw_samples() {
  const auto sample = [](std::string why, std::vector<int64_t> shape, int64_t site, double step,
                         bool with_iteration) {
    const auto scalar = [](double value) { return SampleInput::given(kIndex, {value}); };
    Sample result{
        .why = std::move(why),
        .inputs = {scalar(1234567890123.0), scalar(step)},
        .attributes = {{"site", site}, {"dtype", DType::f32}, {"shape", std::move(shape)}}};
    if (with_iteration) result.inputs.push_back(scalar(3));
    return result;
  };
  return {sample("a scalar", {}, 0, 0, false), sample("no elements", {0, 3}, 1, 5, false),
          sample("a vector, one above 128", {129}, 2, 1e6, false),
          sample("rank 3, in a loop", {2, 3, 11}, kSites - 1, 1099511627775.0, true)};
}

std::vector<ErrorSample> draw_errors() {
  const auto attributes = [](int64_t site, DType dtype, std::vector<int64_t> shape) {
    return Attributes{{"site", site}, {"dtype", dtype}, {"shape", std::move(shape)}};
  };
  const std::vector<TensorType> source = {kIndex, kIndex};
  return {
      {"a 16-bit dtype", source, attributes(0, DType::bf16, {4}), "draws f32 or f64, not bf16"},
      {"a site that would reach into another's steps", source, attributes(kSites, DType::f32, {4}),
       "site 8388608 is not in [0, 8388608)"},
      {"a seed that is no scalar",
       {{DType::i64, {1}}, kIndex},
       attributes(0, DType::f32, {4}),
       "needs an i64 scalar as seed, got i64[1]"},
      {"a floating iteration",
       {kIndex, kIndex, {DType::f32, {}}},
       attributes(0, DType::f32, {4}),
       "needs an i64 scalar as iteration, got f32[]"},
      {"more elements than a counter has", source, attributes(0, DType::f32, {1 << 17, 1 << 16}),
       "[131072,65536] has more than 2^32 elements"},
      {"no step", {kIndex}, attributes(0, DType::f32, {4}), "needs 2 to 3 operands, got 1"}};
}

const OpRegistrar uniform_op(OpDef{
    .name = "random_uniform",
    .summary = "uniform in [0, 1)",
    .tags = Tag::composite | Tag::zero_gradient,
    .infer = infer_draw,
    .decompose = decompose_uniform,
    .reference = reference_uniform,
    .samples = draw_samples,
    .error_samples = draw_errors,
    .dtypes = {DType::f64, DType::f32},
});

const OpRegistrar normal_op(OpDef{
    .name = "random_normal",
    .summary = "standard normal (Box-Muller)",
    .tags = Tag::composite | Tag::zero_gradient,
    .infer = infer_draw,
    .decompose = decompose_normal,
    .reference = reference_normal,
    .samples = draw_samples,
    .error_samples = draw_errors,
    .dtypes = {DType::f64, DType::f32},
});

Tensor draw(std::string_view op, const RandomSource& source, const TensorType& type,
            SourceLoc loc) {
  return apply_all(op, source_operands(op, source, loc),
                   {{"site", source.site}, {"dtype", type.dtype}, {"shape", type.shape.dims()}},
                   loc)[0];
}

}  // namespace

Tensor random_uniform(const RandomSource& source, TensorType type, SourceLoc loc) {
  return draw("random_uniform", source, type, loc);
}

Tensor random_normal(const RandomSource& source, TensorType type, SourceLoc loc) {
  return draw("random_normal", source, type, loc);
}

}  // namespace fullbore
