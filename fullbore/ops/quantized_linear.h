#pragma once
#include "fullbore/ops/ops.h"

namespace fullbore {

/// Sums of so many products of two 8-bit numbers in [-127, 127] fit 32 bits.
inline constexpr int64_t kMostInt8Depth = 133'144;

/// x W^T by 8-bit integers: y[t,o] = s_t s_o sum_i q_x[t,i] q_W[o,i]. Each row of x is rounded to 8 bits where it
/// is used (base/quantize.h: q_x = round(x / s_t), s_t = max|x_t| / 127), the sum is exact, in 32 bits.
///
/// x       [..., K]  floating    K in [1, 133144]; a row with an infinity or NaN gives a row of NaN
/// weight  [N, K]    i8          q_W, in [-127, 127]: of -128 nobody promises the sum
/// scale   [N]       f32         s_o; or x's dtype
/// -> y    [..., N]  dtype of x; s_t and the product with scales are in f32 (f64 for f64)
///
/// Error of an output against the product of what was rounded:
/// s_o |x|_1 / 2 + s_t |W_o|_1 / 2 + K s_t s_o / 4, and the rounding of y.
///
/// Gradient: of x alone, as if it had not been rounded, dx = (dy s_o) q_W (the derivative of rounding is 0 almost
/// everywhere; Bengio et al. 2013, arXiv:1308.3432, straight through). Of weight and scale a UsageError.
/// Errors:   UsageError if dtypes or extents do not fit, or K is out of range.
/// Cost:     2 M N K integer operations, N K bytes of weights: a quarter of an f32 product's.
/// Source:   Dettmers et al. 2022, arXiv:2208.07339, section 2 (vector-wise quantisation).
/// Example:  y = quantized_linear(x, weight, scale)
Tensor quantized_linear(Tensor x, Tensor weight, Tensor scale, SourceLoc loc = SourceLoc::here());

}  // namespace fullbore
