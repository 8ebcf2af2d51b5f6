#include "fullbore/ir/scalar.h"

#include <cmath>
#include <limits>

#include "fullbore/base/check.h"
#include "fullbore/base/philox.h"

namespace fullbore {
namespace {

struct ScalarOpFacts {
  ScalarOp op;
  std::string_view name;
  int arity;
  double flops;
  double ulps;
};

// In the order of the enum. Exact operations have 0 ulps, the basic ones of IEEE 754 0.5.
constexpr ScalarOpFacts kFacts[] = {
    {ScalarOp::neg, "neg", 1, 1, 0},
    {ScalarOp::abs, "abs", 1, 1, 0},
    {ScalarOp::sign, "sign", 1, 1, 0},
    {ScalarOp::exp, "exp", 1, 10, 2},
    {ScalarOp::expm1, "expm1", 1, 12, 4},
    {ScalarOp::log, "log", 1, 10, 2},
    {ScalarOp::log1p, "log1p", 1, 12, 4},
    {ScalarOp::sqrt, "sqrt", 1, 4, 0.5},
    {ScalarOp::rsqrt, "rsqrt", 1, 5, 2},
    {ScalarOp::sin, "sin", 1, 12, 2},
    {ScalarOp::cos, "cos", 1, 12, 2},
    {ScalarOp::tanh, "tanh", 1, 12, 4},
    {ScalarOp::erf, "erf", 1, 12, 4},
    {ScalarOp::floor, "floor", 1, 1, 0},
    {ScalarOp::ceil, "ceil", 1, 1, 0},
    {ScalarOp::round, "round", 1, 1, 0},
    {ScalarOp::is_finite, "is_finite", 1, 0, 0},
    {ScalarOp::logical_not, "logical_not", 1, 0, 0},
    {ScalarOp::cast, "cast", 1, 0, 0.5},
    {ScalarOp::add, "add", 2, 1, 0.5},
    {ScalarOp::sub, "sub", 2, 1, 0.5},
    {ScalarOp::mul, "mul", 2, 1, 0.5},
    {ScalarOp::div, "div", 2, 1, 0.5},
    {ScalarOp::remainder, "remainder", 2, 4, 1},
    {ScalarOp::pow, "pow", 2, 20, 4},
    {ScalarOp::maximum, "maximum", 2, 1, 0},
    {ScalarOp::minimum, "minimum", 2, 1, 0},
    {ScalarOp::equal, "equal", 2, 0, 0},
    {ScalarOp::not_equal, "not_equal", 2, 0, 0},
    {ScalarOp::less, "less", 2, 0, 0},
    {ScalarOp::less_equal, "less_equal", 2, 0, 0},
    {ScalarOp::logical_and, "logical_and", 2, 0, 0},
    {ScalarOp::logical_or, "logical_or", 2, 0, 0},
    {ScalarOp::bit_and, "bit_and", 2, 0, 0},
    {ScalarOp::bit_or, "bit_or", 2, 0, 0},
    {ScalarOp::bit_xor, "bit_xor", 2, 0, 0},
    {ScalarOp::shift_left, "shift_left", 2, 0, 0},
    {ScalarOp::shift_right, "shift_right", 2, 0, 0},
    {ScalarOp::select, "select", 3, 0, 0},
    {ScalarOp::philox, "philox", 3, 0, 0},
    {ScalarOp::philox_upper, "philox_upper", 3, 0, 0},
};
static_assert(std::size(kFacts) == kScalarOpCount);

constexpr bool facts_are_in_order() {
  for (int i = 0; i < kScalarOpCount; ++i)
    if (static_cast<int>(kFacts[i].op) != i) return false;
  return true;
}
static_assert(facts_are_in_order());

const ScalarOpFacts& facts(ScalarOp op) { return kFacts[static_cast<size_t>(op)]; }

double remainder_real(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double extremum(double a, double b, bool largest) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  return (largest ? a > b : a < b) ? a : b;
}

int bit_width(DType dtype) { return static_cast<int>(dtype_bytes(dtype) * 8); }

// The low bits of `bits` as a value of the dtype: two's complement.
int64_t wrap(DType dtype, uint64_t bits) {
  switch (dtype) {
    case DType::i64: return static_cast<int64_t>(bits);
    case DType::i32: return static_cast<int32_t>(static_cast<uint32_t>(bits));
    case DType::u8: return static_cast<uint8_t>(bits);
    case DType::i8: return static_cast<int8_t>(static_cast<uint8_t>(bits));
    case DType::boolean: return static_cast<int64_t>(bits & 1U);
    default: FB_CHECK(false, "{} is no integer dtype", dtype_name(dtype));
  }
}

// The most negative value divided by -1 overflows in C++; in wrapping arithmetic it is its own
// negation.
int64_t divide(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));
  return a / b;
}

int64_t remainder_integer(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

uint64_t shift(DType dtype, uint64_t bits, int64_t distance, bool left) {
  const int width = bit_width(dtype);
  if (distance < 0 || distance >= width) return 0;
  if (left) return bits << distance;
  const uint64_t mask = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  return (bits & mask) >> distance;
}

}  // namespace

std::string_view scalar_op_name(ScalarOp op) { return facts(op).name; }
int scalar_op_arity(ScalarOp op) { return facts(op).arity; }
double scalar_op_flops(ScalarOp op) { return facts(op).flops; }
double scalar_op_ulps(ScalarOp op) { return facts(op).ulps; }

double evaluate_real(ScalarOp op, double a, double b, double c) {
  switch (op) {
    case ScalarOp::neg: return -a;
    case ScalarOp::abs: return std::fabs(a);
    case ScalarOp::sign: return a > 0 ? 1 : a < 0 ? -1 : a;  // keeps NaN and the sign of zero
    case ScalarOp::exp: return std::exp(a);
    case ScalarOp::expm1: return std::expm1(a);
    case ScalarOp::log: return std::log(a);
    case ScalarOp::log1p: return std::log1p(a);
    case ScalarOp::sqrt: return std::sqrt(a);
    case ScalarOp::rsqrt: return 1 / std::sqrt(a);
    case ScalarOp::sin: return std::sin(a);
    case ScalarOp::cos: return std::cos(a);
    case ScalarOp::tanh: return std::tanh(a);
    case ScalarOp::erf: return std::erf(a);
    case ScalarOp::floor: return std::floor(a);
    case ScalarOp::ceil: return std::ceil(a);
    case ScalarOp::round: return std::nearbyint(a);  // the default rounding mode: half to even
    case ScalarOp::is_finite: return std::isfinite(a);
    case ScalarOp::logical_not: return a == 0;
    case ScalarOp::cast: return a;
    case ScalarOp::add: return a + b;
    case ScalarOp::sub: return a - b;
    case ScalarOp::mul: return a * b;
    case ScalarOp::div: return a / b;
    case ScalarOp::remainder: return remainder_real(a, b);
    case ScalarOp::pow: return std::pow(a, b);
    case ScalarOp::maximum: return extremum(a, b, true);
    case ScalarOp::minimum: return extremum(a, b, false);
    case ScalarOp::equal: return a == b;
    case ScalarOp::not_equal: return a != b;
    case ScalarOp::less: return a < b;
    case ScalarOp::less_equal: return a <= b;
    case ScalarOp::logical_and: return a != 0 && b != 0;
    case ScalarOp::logical_or: return a != 0 || b != 0;
    case ScalarOp::select: return a != 0 ? b : c;
    case ScalarOp::bit_and:
    case ScalarOp::bit_or:
    case ScalarOp::bit_xor:
    case ScalarOp::shift_left:
    case ScalarOp::shift_right:
    case ScalarOp::philox:
    case ScalarOp::philox_upper: break;
  }
  FB_CHECK(false, "{} of floating operands", scalar_op_name(op));
}

int64_t evaluate_integer(ScalarOp op, DType dtype, int64_t a, int64_t b, int64_t c) {
  const auto x = static_cast<uint64_t>(a);
  const auto y = static_cast<uint64_t>(b);
  switch (op) {
    case ScalarOp::neg: return wrap(dtype, -x);
    case ScalarOp::abs: return wrap(dtype, a < 0 ? -x : x);
    case ScalarOp::sign: return a > 0 ? 1 : a < 0 ? -1 : 0;
    case ScalarOp::floor:
    case ScalarOp::ceil:
    case ScalarOp::round: return a;
    case ScalarOp::is_finite: return 1;
    case ScalarOp::logical_not: return a == 0;
    case ScalarOp::cast: return wrap(dtype, x);
    case ScalarOp::add: return wrap(dtype, x + y);
    case ScalarOp::sub: return wrap(dtype, x - y);
    case ScalarOp::mul: return wrap(dtype, x * y);
    case ScalarOp::div: return wrap(dtype, static_cast<uint64_t>(divide(a, b)));
    case ScalarOp::remainder: return wrap(dtype, static_cast<uint64_t>(remainder_integer(a, b)));
    case ScalarOp::maximum: return a > b ? a : b;
    case ScalarOp::minimum: return a < b ? a : b;
    case ScalarOp::equal: return a == b;
    case ScalarOp::not_equal: return a != b;
    case ScalarOp::less: return a < b;
    case ScalarOp::less_equal: return a <= b;
    case ScalarOp::logical_and: return a != 0 && b != 0;
    case ScalarOp::logical_or: return a != 0 || b != 0;
    case ScalarOp::bit_and: return wrap(dtype, x & y);
    case ScalarOp::bit_or: return wrap(dtype, x | y);
    case ScalarOp::bit_xor: return wrap(dtype, x ^ y);
    case ScalarOp::shift_left: return wrap(dtype, shift(dtype, x, b, true));
    case ScalarOp::shift_right: return wrap(dtype, shift(dtype, x, b, false));
    case ScalarOp::select: return a != 0 ? b : c;
    case ScalarOp::philox:
    case ScalarOp::philox_upper: {
      const auto halves = philox_halves(x, y, static_cast<uint64_t>(c));
      return static_cast<int64_t>(halves[op == ScalarOp::philox ? 0 : 1]);
    }
    case ScalarOp::exp:
    case ScalarOp::expm1:
    case ScalarOp::log:
    case ScalarOp::log1p:
    case ScalarOp::sqrt:
    case ScalarOp::rsqrt:
    case ScalarOp::sin:
    case ScalarOp::cos:
    case ScalarOp::tanh:
    case ScalarOp::erf:
    case ScalarOp::pow: break;
  }
  FB_CHECK(false, "{} of {} operands", scalar_op_name(op), dtype_name(dtype));
}

}  // namespace fullbore
