#include "fullbore/base/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fullbore {

double int8_scale(double largest, DType computed) {
  if (!std::isfinite(largest)) return std::numeric_limits<double>::quiet_NaN();
  const double scale = round_to_dtype(largest / kInt8Largest, computed);
  return scale < dtype_smallest_normal(computed) ? 1 : scale;
}

bool quantize_rows(const float* weights, int64_t rows, int64_t columns, int8_t* q, float* scales) {
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = weights + row * columns;
    double largest = 0;
    for (int64_t i = 0; i < columns; ++i)  // NaN is above all numbers, and stays
      if (const double size = std::fabs(from[i]); size > largest || std::isnan(size))
        largest = size;
    const auto scale = static_cast<float>(int8_scale(largest, DType::f32));
    if (std::isnan(scale)) return false;
    scales[row] = scale;
    for (int64_t i = 0; i < columns; ++i)
      q[row * columns + i] = static_cast<int8_t>(
          std::clamp<float>(std::nearbyint(from[i] / scale), -kInt8Largest, kInt8Largest));
  }
  return true;
}

}  // namespace fullbore
