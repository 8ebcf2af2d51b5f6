#include <cmath>
#include <numbers>

#include "fullbore/ops/compose.h"
#include "fullbore/ops/rules.h"

/// Functions of one floating element, and pow. No attributes. Gradients reuse the result where it
/// saves the function: the result is often kept for its own readers anyway. Those that round more
/// than once do it in f32, or 16-bit constants such as 2 / sqrt(pi) would bias them.
namespace fullbore {
namespace {

const TensorType kScalar{DType::f32, {}};
const double kInfinity = HUGE_VAL;

std::vector<Sample> on_interval(double low, double high, Sample extremes) {
  return with(elementwise_samples({SampleInput::uniform(kScalar, low, high)}), {extremes});
}

std::vector<Sample> on_normals(Sample extremes) {
  return with(elementwise_samples({SampleInput::normal(kScalar)}), {extremes});
}

using Tensors = std::vector<Tensor>;

// dy times the slope, which is of a wider dtype.
Tensors chained(const VjpCall& call, const Tensor& slope) {
  return {as_dtype(widened(call.cotangents[0]) * slope, call.inputs[0].dtype())};
}

Tensors expm1_vjp(const VjpCall& call) { return chained(call, widened(call.outputs[0]) + 1.0); }

Tensors log1p_vjp(const VjpCall& call) {
  return chained(call, 1.0 / (widened(call.inputs[0]) + 1.0));
}

Tensors sqrt_vjp(const VjpCall& call) { return chained(call, 0.5 / widened(call.outputs[0])); }

Tensors rsqrt_vjp(const VjpCall& call) {
  const Tensor y = widened(call.outputs[0]);
  return chained(call, y * y * y * -0.5);
}

// From y; but of a y rounded to 8 bits 1 - y^2 has few left, so there it is made again.
Tensors tanh_vjp(const VjpCall& call) {
  const Tensor& x = call.inputs[0];
  const Tensor y = is_low_precision(x.dtype()) ? tanh(widened(x)) : call.outputs[0];
  return chained(call, 1.0 - y * y);
}

Tensors erf_vjp(const VjpCall& call) {
  const Tensor x = widened(call.inputs[0]);
  return chained(call, exp(-(x * x)) * (2 * std::numbers::inv_sqrtpi));
}

// a^b = e^(b log a). Where the derivative is defined as 0 the unused branch is given harmless
// operands, so that neither it nor its own derivative makes a NaN out of 0 * inf.
Tensors pow_vjp(const VjpCall& call) {
  const DType dtype = call.inputs[0].dtype();
  const Tensor dy = widened(call.cotangents[0]);
  const Tensor a = widened(call.inputs[0]), b = widened(call.inputs[1]);
  Tensor da, db;
  if (call.wanted[0]) {
    const Tensor exponent = select(equal(b, 0.0), b, b - 1.0);  // b = 0: 0 * a^0, not 0 * a^-1
    da = as_dtype(dy * b * pow(a, exponent), dtype);
  }
  if (call.wanted[1]) {
    const Tensor positive = greater(a, 0.0);
    const Tensor slope = widened(call.outputs[0]) * log(select(positive, a, 1.0));
    db = as_dtype(select(positive, dy * slope, 0.0), dtype);
  }
  return {da, db};
}

const OpRegistrar exp_op(OpDef{
    .name = "exp",
    .summary = "e^x",
    .tags = Tag::elementwise,
    .scalar = ScalarOp::exp,
    .infer = infer_floating_unary,
    .vjp = [](const VjpCall& call) -> Tensors { return {call.cotangents[0] * call.outputs[0]}; },
    .samples =
        [] {
          return on_normals(given_sample("overflow, underflow, zeros, infinities",
                                         {{-1000, 1000, 0, -0.0, 88.5, 88.8, -87.5, -104, 1e-40,
                                           -kInfinity, kInfinity, 1, -1, 11, -17}}));
        },
    .error_samples = floating_unary_errors,
});

const OpRegistrar expm1_op(OpDef{
    .name = "expm1",
    .summary = "e^x - 1, accurate near 0",
    .tags = Tag::elementwise,
    .scalar = ScalarOp::expm1,
    .infer = infer_floating_unary,
    .vjp = expm1_vjp,
    .samples =
        [] {
          return on_normals(given_sample("near 0, where exp(x) - 1 would lose every digit",
                                         {{1e-3, -1e-3, 1e-6, -1e-6, 1e-20, 0, -0.0, 1e-40, 0.35,
                                           -0.35, 80, -80, -1000, 1000, -kInfinity, kInfinity}}));
        },
    .error_samples = floating_unary_errors,
});

const OpRegistrar log_op(OpDef{
    .name = "log",
    .summary = "natural logarithm",
    .tags = Tag::elementwise,
    .scalar = ScalarOp::log,
    .infer = infer_floating_unary,
    .vjp = [](const VjpCall& call) -> Tensors { return {call.cotangents[0] / call.inputs[0]}; },
    .samples =
        [] {
          return on_interval(0.1, 5,
                             given_sample("near 1, powers of 2, denormals, zero and below",
                                          {{1, 0.999, 1.001, 0.5, 2, 4096, 1e-30, 1e30, 1e-40, 0,
                                            -0.0, -1, kInfinity, 0.70711, 1.41421}}));
        },
    .error_samples = floating_unary_errors,
});

const OpRegistrar log1p_op(OpDef{
    .name = "log1p",
    .summary = "log(1 + x), accurate near 0",
    .tags = Tag::elementwise,
    .scalar = ScalarOp::log1p,
    .infer = infer_floating_unary,
    .vjp = log1p_vjp,
    .samples =
        [] {
          return on_interval(-0.5, 3,
                             given_sample("near 0, near -1, denormals, below -1",
                                          {{1e-3, -1e-3, 1e-6, -1e-6, 1e-20, 0, -0.0, 1e-40, -0.99,
                                            -1, -2, 1000, 1e30, kInfinity}}));
        },
    .error_samples = floating_unary_errors,
});

const OpRegistrar sqrt_op(OpDef{
    .name = "sqrt",
    .summary = "square root",
    .tags = Tag::elementwise,
    .scalar = ScalarOp::sqrt,
    .infer = infer_floating_unary,
    .vjp = sqrt_vjp,
    .samples =
        [] {
          return on_interval(0.1, 5,
                             given_sample("squares, zeros, denormals, below 0",
                                          {{4, 9, 2, 0, -0.0, 1e-40, 1e-30, 1e30, -1, kInfinity}}));
        },
    .error_samples = floating_unary_errors,
});

const OpRegistrar rsqrt_op(OpDef{
    .name = "rsqrt",
    .summary = "1 / square root",
    .tags = Tag::elementwise,
    .scalar = ScalarOp::rsqrt,
    .infer = infer_floating_unary,
    .vjp = rsqrt_vjp,
    .samples =
        [] {
          return on_interval(0.1, 5,
                             given_sample("squares, large and small, zero, below 0",
                                          {{4, 9, 2, 1e-5, 1e-30, 1e30, 0, -1, kInfinity}}));
        },
    .error_samples = floating_unary_errors,
});

const OpRegistrar sin_op(OpDef{
    .name = "sin",
    .summary = "sine, radians",
    .tags = Tag::elementwise,
    .scalar = ScalarOp::sin,
    .infer = infer_floating_unary,
    .vjp = [](const VjpCall& call) -> Tensors {
      return {call.cotangents[0] * cos(call.inputs[0])};
    },
    .samples =
        [] {
          return on_normals(given_sample("quadrants, multiples of pi, arguments to reduce",
                                         {{0, -0.0, 0.7853982, 1.5707964, 3.1415927, 4.712389,
                                           6.2831855, -3.1415927, 100, -1000, 5000, 1e-40}}));
        },
    .error_samples = floating_unary_errors,
});

const OpRegistrar cos_op(OpDef{
    .name = "cos",
    .summary = "cosine, radians",
    .tags = Tag::elementwise,
    .scalar = ScalarOp::cos,
    .infer = infer_floating_unary,
    .vjp = [](const VjpCall& call) -> Tensors {
      return {-(call.cotangents[0] * sin(call.inputs[0]))};
    },
    .samples =
        [] {
          return on_normals(given_sample("quadrants, multiples of pi, arguments to reduce",
                                         {{0, -0.0, 0.7853982, 1.5707964, 3.1415927, 4.712389,
                                           6.2831855, -3.1415927, 100, -1000, 5000, 1e-40}}));
        },
    .error_samples = floating_unary_errors,
});

const OpRegistrar tanh_op(OpDef{
    .name = "tanh",
    .summary = "hyperbolic tangent",
    .tags = Tag::elementwise,
    .scalar = ScalarOp::tanh,
    .infer = infer_floating_unary,
    .vjp = tanh_vjp,
    .samples =
        [] {
          return on_normals(given_sample("near 0, saturated, infinities",
                                         {{0, -0.0, 1e-3, 1e-6, 1e-40, 0.6, -0.6, 4, 9, 9.5, -20,
                                           1000, -1000, kInfinity, -kInfinity}}));
        },
    .error_samples = floating_unary_errors,
});

const OpRegistrar erf_op(OpDef{
    .name = "erf",
    .summary = "error function",
    .tags = Tag::elementwise,
    .scalar = ScalarOp::erf,
    .infer = infer_floating_unary,
    .vjp = erf_vjp,
    .samples =
        [] {
          return on_normals(given_sample("near 0, the joints of approximations, saturated",
                                         {{0, -0.0, 1e-3, 1e-6, 1e-40, 0.84375, 0.921875, 1, 1.25,
                                           -2, 2.857, 3.9, 6, -1000, kInfinity, -kInfinity}}));
        },
    .error_samples = floating_unary_errors,
});

const OpRegistrar pow_op(OpDef{
    .name = "pow",
    .summary = "a to the power of b",
    .tags = Tag::elementwise,
    .scalar = ScalarOp::pow,
    .infer = infer_floating_binary,
    .vjp = pow_vjp,
    .samples =
        [] {
          Sample negative = given_sample("negative bases with whole exponents",
                                         {{-2, -2, -0.5, -3, -1, -1.5}, {2, 3, -1, 0, 5, 2}});
          negative.inputs[1].differentiable = false;  // complex in between
          negative.gradcheck = true;
          return with(elementwise_samples({SampleInput::uniform(kScalar, 0.2, 3),
                                           SampleInput::uniform(kScalar, -2, 2)}),
                      {negative, given_sample("zero, one and infinite bases and exponents",
                                              {{0, 0, 0, 1, 1, 2, 2, 2, 10, 10, 0.5, -2},
                                               {0, 2, -1, 1000, -kInfinity, kInfinity, -kInfinity,
                                                0, 30, -30, 1000, 0.5}})});
        },
    .error_samples = floating_binary_errors,
});

}  // namespace

Tensor exp(Tensor x, SourceLoc loc) { return apply("exp", {x}, {}, loc); }
Tensor expm1(Tensor x, SourceLoc loc) { return apply("expm1", {x}, {}, loc); }
Tensor log(Tensor x, SourceLoc loc) { return apply("log", {x}, {}, loc); }
Tensor log1p(Tensor x, SourceLoc loc) { return apply("log1p", {x}, {}, loc); }
Tensor sqrt(Tensor x, SourceLoc loc) { return apply("sqrt", {x}, {}, loc); }
Tensor rsqrt(Tensor x, SourceLoc loc) { return apply("rsqrt", {x}, {}, loc); }
Tensor sin(Tensor x, SourceLoc loc) { return apply("sin", {x}, {}, loc); }
Tensor cos(Tensor x, SourceLoc loc) { return apply("cos", {x}, {}, loc); }
Tensor tanh(Tensor x, SourceLoc loc) { return apply("tanh", {x}, {}, loc); }
Tensor erf(Tensor x, SourceLoc loc) { return apply("erf", {x}, {}, loc); }
Tensor pow(Operand a, Operand b) { return apply_broadcast("pow", std::vector{a, b}); }

}  // namespace fullbore
