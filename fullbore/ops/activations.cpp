#include <cmath>
#include <limits>
#include <numbers>

#include "fullbore/ops/compose.h"
#include "fullbore/ops/rules.h"

/// Functions of one element that are made of several. All but relu and clamp, which round nothing,
/// are computed in f32 or better.
namespace fullbore {
namespace {

const TensorType kF32{DType::f32, {}};
constexpr double kSqrt2OverPi = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
constexpr double kInvSqrt2Pi = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
constexpr double kCubic = 0.044715;  // Hendrycks, Gimpel 2016, section 2

// f(x) for a floating x of any width.
template <Tensor (*function)(Tensor)>
std::vector<Tensor> decompose_widened(const DecomposeCall& call) {
  return {as_dtype(function(widened(call.inputs[0])), call.inputs[0].dtype())};
}
// dy f'(x).
template <Tensor (*derivative)(Tensor)>
std::vector<Tensor> vjp_widened(const VjpCall& call) {
  const Tensor slope = derivative(widened(call.inputs[0]));
  return {as_dtype(widened(call.cotangents[0]) * slope, call.inputs[0].dtype())};
}

std::vector<Sample> samples_of(const Attributes& attributes = {}) {
  return with(
      elementwise_samples({SampleInput::normal(kF32)}, attributes),
      {given_sample("flat and steep ends, zeros",
                    {{-1000, -100, -20, -5, -1, -1e-4, -0.0, 0, 1e-4, 1, 5, 20, 100, 1000, NAN}},
                    attributes),
       {.why = "both tails, within the range of finite differences",
        .inputs = {SampleInput::uniform({DType::f32, {40}}, -9, 9)},
        .attributes = attributes}});
}

// --- relu -----------------------------------------------------------------------------------------
std::vector<Tensor> decompose_relu(const DecomposeCall& call) {
  return {maximum(call.inputs[0], 0.0)};
}

// From y, which the next layer keeps anyway; derivative 0 at 0, where that of maximum is 1/2.
std::vector<Tensor> relu_vjp(const VjpCall& call) {
  return {select(greater(call.outputs[0], 0.0), call.cotangents[0], 0.0)};
}

// --- sigmoid, silu, softplus ----------------------------------------------------------------------
// For x below -88 exp(-x) is infinite in f32 and the result 0, as it should be.
Tensor sigmoid_of(Tensor x) { return 1.0 / (exp(-x) + 1.0); }

Tensor sigmoid_slope(Tensor x) {
  const Tensor y = sigmoid_of(x);
  return y * (1.0 - y);
}

// From y, whose layer keeps it; but not from one rounded to 8 bits, of which 1 - y has few left.
std::vector<Tensor> sigmoid_vjp(const VjpCall& call) {
  if (is_low_precision(call.inputs[0].dtype())) return vjp_widened<sigmoid_slope>(call);
  const Tensor y = call.outputs[0];
  return {call.cotangents[0] * (y * (1.0 - y))};
}

Tensor silu_of(Tensor x) { return x * sigmoid_of(x); }
Tensor silu_slope(Tensor x) {
  const Tensor s = sigmoid_of(x);
  return s * (x * (1.0 - s) + 1.0);
}

Tensor softplus_of(Tensor x) { return maximum(x, 0.0) + log1p(exp(-abs(x))); }

// --- gelu -----------------------------------------------------------------------------------------
Tensor gelu_of(Tensor x) { return x * 0.5 * (erf(x * (1 / std::numbers::sqrt2)) + 1.0); }
// The normal distribution's P(x), and x times its density.
Tensor gelu_slope(Tensor x) {
  const Tensor below = (erf(x * (1 / std::numbers::sqrt2)) + 1.0) * 0.5;
  return below + x * exp(x * x * -0.5) * kInvSqrt2Pi;
}

Tensor tanh_gelu_of(Tensor x) {
  return x * 0.5 * (tanh((x + x * x * x * kCubic) * kSqrt2OverPi) + 1.0);
}
// In other terms than the function: what both have in common is kept from one to the other, and that
// should be t alone, not what a multiplication makes of t or x.
Tensor tanh_gelu_slope(Tensor x) {
  const Tensor t = tanh((x + x * x * x * kCubic) * kSqrt2OverPi);
  const Tensor half_inner = x * (x * (1.5 * kCubic * kSqrt2OverPi)) + 0.5 * kSqrt2OverPi;
  return (t * 0.5 + 0.5) + x * (1.0 - t * t) * half_inner;
}

bool tanh_form(const Attributes& attributes) { return attributes.get<bool>("tanh_form"); }

std::vector<TensorType> infer_gelu(const OpCall& call) {
  require_attribute<bool>(call, "tanh_form");
  return infer_floating_unary(call);
}
std::vector<Tensor> decompose_gelu(const DecomposeCall& call) {
  return tanh_form(call.attributes) ? decompose_widened<tanh_gelu_of>(call)
                                    : decompose_widened<gelu_of>(call);
}
std::vector<Tensor> gelu_vjp(const VjpCall& call) {
  return tanh_form(call.attributes) ? vjp_widened<tanh_gelu_slope>(call)
                                    : vjp_widened<gelu_slope>(call);
}

std::vector<ErrorSample> gelu_errors() {
  return {{"integers", {{DType::i32, {4}}}, {{"tanh_form", false}}, "needs floating x, got i32[4]"},
          {"no attribute", {{DType::f32, {4}}}, {}, "needs attribute 'tanh_form'"}};
}

// --- clamp ----------------------------------------------------------------------------------------
std::vector<TensorType> infer_clamp(const OpCall& call) {
  const std::vector<TensorType> types = infer_numeric_unary(call);
  const double low = require_attribute<double>(call, "low");
  const double high = require_attribute<double>(call, "high");
  if (!(low <= high)) call.fail(fmt::format("needs low <= high, got [{}, {}]", low, high));
  if (is_integer(types[0].dtype))
    for (const double bound : {low, high})
      if (round_to_dtype(bound, types[0].dtype) != bound)
        call.fail(fmt::format("bound {} is no {}", bound, dtype_name(types[0].dtype)));
  return types;
}

// A bound beyond the dtype's range is its infinity: it limits nothing.
Tensor bound(Tensor x, double value) {
  return constant(x.builder(), {x.dtype(), {}}, {round_to_dtype(value, x.dtype())});
}

std::vector<Tensor> decompose_clamp(const DecomposeCall& call) {
  const Tensor x = call.inputs[0];
  const Tensor low = bound(x, call.attributes.get<double>("low"));
  const Tensor high = bound(x, call.attributes.get<double>("high"));
  return {minimum(maximum(x, low), high)};
}

std::vector<Tensor> clamp_vjp(const VjpCall& call) {
  const Tensor x = call.inputs[0];
  const Tensor within = logical_and(greater_equal(x, bound(x, call.attributes.get<double>("low"))),
                                    less_equal(x, bound(x, call.attributes.get<double>("high"))));
  return {select(within, call.cotangents[0], 0.0)};
}

std::vector<Sample> clamp_samples() {
  const Attributes bounds{{"low", -0.5}, {"high", 1.25}};
  return with(samples_of(bounds),
              {given_sample("the bounds themselves", {{-0.5, 1.25, -0.4999, 1.2499}}, bounds),
               {.why = "one side only",
                .inputs = {SampleInput::normal({DType::f32, {9}})},
                .attributes = {{"low", 0.25}, {"high", std::numeric_limits<double>::infinity()}}},
               {.why = "integers",
                .inputs = {SampleInput::integers({DType::i32, {20}}, -9, 9)},
                .attributes = {{"low", -3.0}, {"high", 4.0}}}});
}

std::vector<ErrorSample> clamp_errors() {
  const auto between = [](double low, double high) {
    return Attributes{{"low", low}, {"high", high}};
  };
  return {{"truth values", {{DType::boolean, {4}}}, between(0, 1), "needs numeric x, got bool[4]"},
          {"bounds the wrong way round",
           {{DType::f32, {4}}},
           between(2, 1),
           "needs low <= high, got [2, 1]"},
          {"no bound", {{DType::f32, {4}}}, between(NAN, 1), "needs low <= high"},
          {"a fraction of integers", {{DType::i32, {4}}}, between(0.5, 3), "bound 0.5 is no i32"}};
}

// --- registration ---------------------------------------------------------------------------------
OpDef activation(std::string_view name, std::string_view summary,
                 std::vector<Tensor> (*decompose)(const DecomposeCall&),
                 std::vector<Tensor> (*vjp)(const VjpCall&)) {
  return {
      .name = name,
      .summary = summary,
      .tags = Tag::composite,
      .infer = infer_floating_unary,
      .vjp = vjp,
      .decompose = decompose,
      .samples = [] { return samples_of(); },
      .error_samples = floating_unary_errors,
  };
}

const OpRegistrar relu_op(activation("relu", "max(x, 0)", decompose_relu, relu_vjp));
const OpRegistrar sigmoid_op(activation("sigmoid", "1 / (1 + exp(-x))",
                                        decompose_widened<sigmoid_of>, sigmoid_vjp));
const OpRegistrar silu_op(activation("silu", "x sigmoid(x)", decompose_widened<silu_of>,
                                     vjp_widened<silu_slope>));
const OpRegistrar softplus_op(activation("softplus", "log(1 + exp(x))",
                                         decompose_widened<softplus_of>, vjp_widened<sigmoid_of>));

const OpRegistrar gelu_op(OpDef{
    .name = "gelu",
    .summary = "x P(x) of the normal distribution, exact or by tanh",
    .tags = Tag::composite,
    .infer = infer_gelu,
    .vjp = gelu_vjp,
    .decompose = decompose_gelu,
    .samples =
        [] {
          return with(samples_of({{"tanh_form", false}}), samples_of({{"tanh_form", true}}));
        },
    .error_samples = gelu_errors,
});

const OpRegistrar clamp_op(OpDef{
    .name = "clamp",
    .summary = "x limited to [low, high]",
    .tags = Tag::composite,
    .infer = infer_clamp,
    .vjp = clamp_vjp,
    .decompose = decompose_clamp,
    .samples = clamp_samples,
    .error_samples = clamp_errors,
});

}  // namespace

Tensor relu(Tensor x, SourceLoc loc) { return apply("relu", {x}, {}, loc); }
Tensor sigmoid(Tensor x, SourceLoc loc) { return apply("sigmoid", {x}, {}, loc); }
Tensor silu(Tensor x, SourceLoc loc) { return apply("silu", {x}, {}, loc); }
Tensor softplus(Tensor x, SourceLoc loc) { return apply("softplus", {x}, {}, loc); }
Tensor gelu(Tensor x, bool tanh_form, SourceLoc loc) {
  return apply("gelu", {x}, {{"tanh_form", tanh_form}}, loc);
}
Tensor clamp(Tensor x, double low, double high, SourceLoc loc) {
  return apply("clamp", {x}, {{"low", low}, {"high", high}}, loc);
}

}  // namespace fullbore
