#pragma once
#include <cstdint>

#include "fullbore/base/dtype.h"

namespace fullbore {

/// Symmetric 8-bit numbers: a row x becomes q = round(x / s), halves to even, with s = max|x| / 127, so that
/// q is in [-127, 127] and |x - s q| <= s / 2. Both the activations and the weights of quantized_linear
/// (ops/quantized_linear.h) are rounded so.
inline constexpr int kInt8Largest = 127;

/// s of a row whose largest magnitude is `largest`, rounded to `computed`, f32 or f64. 1 where it would be less
/// than the dtype's smallest normal number, a row of zeros included: all q are 0 then. NaN for infinity and
/// NaN: such a row has no 8-bit form.
double int8_scale(double largest, DType computed);

/// q [rows, columns] and scales [rows] of f32 weights [rows, columns], a scale for each row (output channel).
/// False, and nothing is written from that row on, if a weight is not finite.
bool quantize_rows(const float* weights, int64_t rows, int64_t columns, int8_t* q, float* scales);

}  // namespace fullbore
