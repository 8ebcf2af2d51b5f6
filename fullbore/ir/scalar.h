#pragma once
#include <cstdint>
#include <string_view>

#include "fullbore/base/dtype.h"

namespace fullbore {

/// The arithmetic of one element: every elementwise op is exactly one of these, and kernel IR is
/// made of them. A device that implements this list implements every elementwise op.
enum class ScalarOp : uint8_t {
  // unary
  neg,
  abs,
  sign,
  exp,
  expm1,
  log,
  log1p,
  sqrt,
  rsqrt,
  sin,
  cos,
  tanh,
  erf,
  floor,
  ceil,
  round,      ///< half to even
  is_finite,  ///< -> bool
  logical_not,
  cast,  ///< to the output's dtype: floats round to even, float -> integer truncates
  // binary
  add,
  sub,
  mul,
  div,        ///< integer div truncates towards zero; x / 0 = 0 for integers
  remainder,  ///< sign of the divisor (Python's %); x % 0 = 0 for integers
  pow,
  maximum,
  minimum,  ///< maximum and minimum return NaN if either operand is NaN
  equal,
  not_equal,
  less,
  less_equal,
  logical_and,
  logical_or,
  bit_and,
  bit_or,
  bit_xor,
  shift_left,
  shift_right,  ///< logical (zero fill); a distance outside [0, width) gives 0
  // ternary
  select,       ///< condition ? a : b
  philox,       ///< (key, counter_low, counter_high) i64 -> i64; see base/philox.h
  philox_upper  ///< the other half of its bits
};
inline constexpr int kScalarOpCount = static_cast<int>(ScalarOp::philox_upper) + 1;
inline constexpr bool is_philox(ScalarOp op) {
  return op == ScalarOp::philox || op == ScalarOp::philox_upper;
}

std::string_view scalar_op_name(ScalarOp op);
int scalar_op_arity(ScalarOp op);

/// The living definition on floating operands (booleans are 0 and 1), in double.
double evaluate_real(ScalarOp op, double a, double b = 0, double c = 0);
/// On integer and boolean operands. `dtype` is the operands' type: results wrap to its width, and
/// shift_right is logical in it. Comparisons give 0 or 1.
int64_t evaluate_integer(ScalarOp op, DType dtype, int64_t a, int64_t b = 0, int64_t c = 0);

/// Floating-point operations that cost models charge per element: 1 for arithmetic, about 10 for
/// transcendental functions, 0 for integer and data movement.
double scalar_op_flops(ScalarOp op);
/// Error that a device may make, in units of the result's epsilon (0.5 = correctly rounded).
/// Transcendental functions are polynomials inlined into kernels; these are their tested bounds.
double scalar_op_ulps(ScalarOp op);

}  // namespace fullbore
