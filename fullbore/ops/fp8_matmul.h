#pragma once
#include "fullbore/ops/fp8.h"
#include "fullbore/ops/ops.h"

namespace fullbore {

struct Fp8MatmulOptions {
  Fp8Format format_a = Fp8Format::e4m3;
  Fp8Format format_b = Fp8Format::e4m3;
  bool transpose_a = false;
  bool transpose_b = false;
  bool wide = false;  ///< the result is f32 whatever a is
};

/// A B of numbers of 8 bits, where A is a or its transpose and B likewise: each operand is multiplied by its scale in f32,
/// rounded to its format (fp8.h: to nearest even, beyond the largest number to that; infinity is NaN), and the sum of
/// products is divided by both scales: y = sum_k q(a s_a) q(b s_b) / (s_a s_b).
///
/// a        [m, k], or [k, m] transposed   f64 | f32 | bf16
/// b        [k, n], or [n, k] transposed   dtype of a
/// scale_a  []  f32, or a's dtype          positive; it brings a's largest near the format's (448, 57344)
/// scale_b  []  likewise
/// -> y     [m, n]  dtype of a, or f32 if `wide`; sums are f32 (f64 for f64)
///
/// Error of an operand: 2^-4 (e4m3) or 2^-3 (e5m2) of each number that is not subnormal once scaled.
///
/// Tensor cores sum products of 8 bits with some 13 bits behind the point of the largest (DeepSeek-V3, arXiv:2412.19437,
/// section 3.3.2): kernels add what is summed so over 64 of k at most to sums in f32, and bounds allow for it.
///
/// Gradient: that of the product of a and b as they are given (straight through; Bengio et al. 2013, arXiv:1308.3432), by
/// matmul; none of scales. Training makes gradients of 8 bits too, by scales of their own (train/fp8_matmuls.h).
/// Errors:   UsageError if dtypes, ranks or extents do not fit.
/// Cost:     2 m n k flops.
/// Source:   Micikevicius et al. 2022, arXiv:2209.05433, section 3.
/// Example:  y = fp8_matmul(x, weight, scale_x, scale_weight, {.transpose_b = true})
Tensor fp8_matmul(Tensor a, Tensor b, Tensor scale_a, Tensor scale_b, Fp8MatmulOptions options = {},
                  SourceLoc loc = SourceLoc::here());

}  // namespace fullbore
