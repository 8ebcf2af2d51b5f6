#include "fullbore/ops/elementary.h"

#include <cmath>
#include <numbers>

#include "fullbore/ops/arc_tangent.h"
#include "fullbore/ops/compose.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

// Beyond these, what is left out is below half a unit in the last place of a double.
constexpr double kLargeRoot = 1e8;     // sqrt(a^2 + 1) = a
constexpr double kLargeExponent = 20;  // exp(a) + exp(-a) = exp(a)

Tensor with_sign_of(Tensor x, Tensor magnitude) {
  return select(less(x, 0.0), -magnitude, magnitude);
}

// exp(a) / 2 where exp(a) itself may overflow.
Tensor half_exp(Tensor a) {
  const Tensor root = exp(a * 0.5);
  return root * 0.5 * root;
}

// Each function: value and slope of widened operands, and the definition, in double. `low` and `high` bound its samples.
struct Tan {
  static constexpr auto kName = "tan", kSummary = "tangent, radians";
  static constexpr double kLow = -1.4, kHigh = 1.4;
  static Tensor value(Tensor x) { return sin(x) / cos(x); }
  static Tensor slope(Tensor, Tensor y) { return y * y + 1.0; }
  static double real(double x) { return std::tan(x); }
};
struct Asin {
  static constexpr auto kName = "asin", kSummary = "arc sine, radians";
  static constexpr double kLow = -0.95, kHigh = 0.95;
  // (1 - x) (1 + x) has no cancellation, unlike 1 - x^2.
  static Tensor value(Tensor x) {
    return arc_tangent(x / (sqrt((1.0 - x) * (x + 1.0)) + 1.0)) * 2.0;
  }
  static Tensor slope(Tensor x, Tensor) { return rsqrt((1.0 - x) * (x + 1.0)); }
  static double real(double x) { return std::asin(x); }
};
struct Acos {
  static constexpr auto kName = "acos", kSummary = "arc cosine, radians";
  static constexpr double kLow = -0.95, kHigh = 0.95;
  static Tensor value(Tensor x) { return arc_tangent(sqrt((1.0 - x) / (x + 1.0))) * 2.0; }
  static Tensor slope(Tensor x, Tensor) { return -rsqrt((1.0 - x) * (x + 1.0)); }
  static double real(double x) { return std::acos(x); }
};
struct Atan {
  static constexpr auto kName = "atan", kSummary = "arc tangent, radians";
  static constexpr double kLow = -4, kHigh = 4;
  static Tensor value(Tensor x) { return arc_tangent(x); }
  static Tensor slope(Tensor x, Tensor) { return 1.0 / (x * x + 1.0); }
  static double real(double x) { return std::atan(x); }
};
struct Sinh {
  static constexpr auto kName = "sinh", kSummary = "hyperbolic sine";
  static constexpr double kLow = -3, kHigh = 3;
  static Tensor value(Tensor x) {
    const Tensor a = abs(x), e = expm1(a);
    return with_sign_of(x, select(less(a, kLargeExponent), (e + e / (e + 1.0)) * 0.5, half_exp(a)));
  }
  static Tensor slope(Tensor x, Tensor) { return cosh(x); }
  static double real(double x) { return std::sinh(x); }
};
struct Cosh {
  static constexpr auto kName = "cosh", kSummary = "hyperbolic cosine";
  static constexpr double kLow = -3, kHigh = 3;
  static Tensor value(Tensor x) {
    const Tensor a = abs(x), e = exp(a);
    return select(less(a, kLargeExponent), (e + 1.0 / e) * 0.5, half_exp(a));
  }
  static Tensor slope(Tensor x, Tensor) { return sinh(x); }
  static double real(double x) { return std::cosh(x); }
};
struct Asinh {
  static constexpr auto kName = "asinh", kSummary = "inverse hyperbolic sine";
  static constexpr double kLow = -5, kHigh = 5;
  static Tensor value(Tensor x) {
    const Tensor a = abs(x), s = a * a;
    const Tensor near = log1p(a + s / (sqrt(s + 1.0) + 1.0));
    return with_sign_of(x, select(less(a, kLargeRoot), near, log(a) + std::numbers::ln2));
  }
  static Tensor slope(Tensor x, Tensor) { return rsqrt(x * x + 1.0); }
  static double real(double x) { return std::asinh(x); }
};
struct Acosh {
  static constexpr auto kName = "acosh", kSummary = "inverse hyperbolic cosine";
  static constexpr double kLow = 1.1, kHigh = 5;
  static Tensor value(Tensor x) {
    const Tensor t = x - 1.0;
    const Tensor near = log1p(t + sqrt(t * (t + 2.0)));
    return select(less(x, kLargeRoot), near, log(x) + std::numbers::ln2);
  }
  static Tensor slope(Tensor x, Tensor) { return rsqrt((x - 1.0) * (x + 1.0)); }
  static double real(double x) { return std::acosh(x); }
};
struct Atanh {
  static constexpr auto kName = "atanh", kSummary = "inverse hyperbolic tangent";
  static constexpr double kLow = -0.9, kHigh = 0.9;
  static Tensor value(Tensor x) {
    const Tensor a = abs(x);
    return with_sign_of(x, log1p(a * 2.0 / (1.0 - a)) * 0.5);
  }
  static Tensor slope(Tensor x, Tensor) { return 1.0 / ((1.0 - x) * (x + 1.0)); }
  static double real(double x) { return std::atanh(x); }
};
struct Log2 {
  static constexpr auto kName = "log2", kSummary = "logarithm to base 2";
  static constexpr double kLow = 0.1, kHigh = 9;
  static Tensor value(Tensor x) { return log(x) * std::numbers::log2e; }
  static Tensor slope(Tensor x, Tensor) { return std::numbers::log2e / x; }
  static double real(double x) { return std::log2(x); }
};
struct Log10 {
  static constexpr auto kName = "log10", kSummary = "logarithm to base 10";
  static constexpr double kLow = 0.1, kHigh = 9;
  static Tensor value(Tensor x) { return log(x) * std::numbers::log10e; }
  static Tensor slope(Tensor x, Tensor) { return std::numbers::log10e / x; }
  static double real(double x) { return std::log10(x); }
};
struct Exp2 {
  static constexpr auto kName = "exp2", kSummary = "2 to the power of x";
  static constexpr double kLow = -3, kHigh = 3;
  static Tensor value(Tensor x) { return pow(2.0, x); }
  static Tensor slope(Tensor, Tensor y) { return y * std::numbers::ln2; }
  static double real(double x) { return std::exp2(x); }
};

template <class F>
std::vector<Tensor> decompose(const DecomposeCall& call) {
  const Tensor x = call.inputs[0];
  return {as_dtype(F::value(widened(x)), x.dtype())};
}

template <class F>
std::vector<Tensor> vjp(const VjpCall& call) {
  const Tensor x = call.inputs[0];
  const Tensor slope = F::slope(widened(x), widened(call.outputs[0]));
  return {as_dtype(widened(call.cotangents[0]) * slope, x.dtype())};
}

template <class F>
void reference(ReferenceCall& call) {
  for (int64_t i = 0; i < call.outputs[0].elements(); ++i)
    call.outputs[0].put(i, F::real(call.inputs[0]->at(i)));
}

// Few shapes: kernels are those of the nodes that it is made of.
template <class F>
std::vector<Sample> samples() {
  return {{.why = "a vector, wider than 16 lanes",
           .inputs = {SampleInput::uniform({DType::f32, {37}}, F::kLow, F::kHigh)},
           .attributes = {}},
          given_sample("zero, small, the ends of domains, beyond them, infinities, NaN",
                       {{0, 1e-4, -1e-4, 0.5, 1, -1, 1.0009765625, 2, -2.5, 3, 0.75, HUGE_VAL,
                         -HUGE_VAL, std::nan("")}})};
}

template <class F>
void register_function() {
  static const OpRegistrar registrar(OpDef{.name = F::kName,
                                           .summary = F::kSummary,
                                           .tags = Tag::composite,
                                           .infer = infer_floating_unary,
                                           .vjp = vjp<F>,
                                           .decompose = decompose<F>,
                                           .reference = reference<F>,
                                           .samples = samples<F>,
                                           .error_samples = floating_unary_errors});
}

template <class... F>
bool register_all() {
  (register_function<F>(), ...);
  return true;
}
[[maybe_unused]] const bool registered =
    register_all<Tan, Asin, Acos, Atan, Sinh, Cosh, Asinh, Acosh, Atanh, Log2, Log10, Exp2>();

template <class F>
Tensor call(Tensor x, SourceLoc loc) {
  require_tensor(F::kName, "x", x, loc);
  return apply(F::kName, {x}, {}, loc);
}

}  // namespace

Tensor tan(Tensor x, SourceLoc loc) { return call<Tan>(x, loc); }
Tensor asin(Tensor x, SourceLoc loc) { return call<Asin>(x, loc); }
Tensor acos(Tensor x, SourceLoc loc) { return call<Acos>(x, loc); }
Tensor atan(Tensor x, SourceLoc loc) { return call<Atan>(x, loc); }
Tensor sinh(Tensor x, SourceLoc loc) { return call<Sinh>(x, loc); }
Tensor cosh(Tensor x, SourceLoc loc) { return call<Cosh>(x, loc); }
Tensor asinh(Tensor x, SourceLoc loc) { return call<Asinh>(x, loc); }
Tensor acosh(Tensor x, SourceLoc loc) { return call<Acosh>(x, loc); }
Tensor atanh(Tensor x, SourceLoc loc) { return call<Atanh>(x, loc); }
Tensor log2(Tensor x, SourceLoc loc) { return call<Log2>(x, loc); }
Tensor log10(Tensor x, SourceLoc loc) { return call<Log10>(x, loc); }
Tensor exp2(Tensor x, SourceLoc loc) { return call<Exp2>(x, loc); }

}  // namespace fullbore
