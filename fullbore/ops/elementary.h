#pragma once
#include "fullbore/ops/ops.h"

/// Elementary functions beyond the scalar ops of ops.h, made of them: x floating, of any shape, unless said otherwise.
/// Computed in f32 or better, to a few units in the last place, and differentiated by their own rules. Outside of a
/// function's domain the result is NaN.
namespace fullbore {

Tensor tan(Tensor x, SourceLoc loc = SourceLoc::here());
Tensor asin(Tensor x, SourceLoc loc = SourceLoc::here());  ///< |x| <= 1
Tensor acos(Tensor x, SourceLoc loc = SourceLoc::here());  ///< |x| <= 1
Tensor atan(Tensor x, SourceLoc loc = SourceLoc::here());
Tensor sinh(Tensor x, SourceLoc loc = SourceLoc::here());
Tensor cosh(Tensor x, SourceLoc loc = SourceLoc::here());
Tensor asinh(Tensor x, SourceLoc loc = SourceLoc::here());
Tensor acosh(Tensor x, SourceLoc loc = SourceLoc::here());  ///< x >= 1
Tensor atanh(Tensor x, SourceLoc loc = SourceLoc::here());  ///< |x| <= 1
Tensor log2(Tensor x, SourceLoc loc = SourceLoc::here());
Tensor log10(Tensor x, SourceLoc loc = SourceLoc::here());
Tensor exp2(Tensor x, SourceLoc loc = SourceLoc::here());
/// The angle of the point (x, y), in [-pi, pi]; quadrants and signed zeros as C's atan2. Operands are broadcast.
/// Derivatives at the origin are 0.
Tensor atan2(Operand y, Operand x);
/// a - trunc(a / b) b: the sign of a. Numbers; derivative 1 in a, -trunc(a / b) in b. Operands are broadcast.
Tensor fmod(Operand a, Operand b);

Tensor trunc(Tensor x, SourceLoc loc = SourceLoc::here());   ///< towards zero; zero gradient
Tensor is_nan(Tensor x, SourceLoc loc = SourceLoc::here());  ///< -> bool
Tensor is_inf(Tensor x, SourceLoc loc = SourceLoc::here());  ///< of either sign -> bool
/// NaN becomes `nan`, infinities the largest and lowest numbers of x's dtype; zero gradient there.
Tensor nan_to_num(Tensor x, double nan = 0, SourceLoc loc = SourceLoc::here());
Tensor reciprocal(Tensor x, SourceLoc loc = SourceLoc::here());  ///< 1 / x
Tensor square(Tensor x, SourceLoc loc = SourceLoc::here());      ///< x x

}  // namespace fullbore
