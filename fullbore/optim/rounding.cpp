#include "fullbore/optim/rounding.h"

namespace fullbore {

Tensor round_to_nearest_bf16(Tensor x) { return cast(cast(x, DType::bf16), DType::f32); }

Tensor round_stochastically_to_bf16(Tensor x, Tensor uniform) {
  // Five eighths of the distance to the next value where the mantissa is 1, and five quarters where it is nearly 2:
  // rounded to nearest, one step. Below a power of two the steps are half as long, and it is one of those still.
  constexpr double kBeyond = 0x1p-8 + 0x1p-10;
  const Tensor nearer = round_to_nearest_bf16(x);
  const Tensor towards =
      select(less(abs(x), abs(nearer)), 1.0 - kBeyond, full(x.builder(), x.type(), 1.0 + kBeyond));
  const Tensor farther = round_to_nearest_bf16(nearer * towards);
  // All of these differences are exact: their operands lie within a factor of two of one another.
  const Tensor is_moved = less(uniform * abs(farther - nearer), abs(x - nearer));
  return select(is_moved, farther, nearer);
}

}  // namespace fullbore
