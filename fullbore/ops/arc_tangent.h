#pragma once
#include "fullbore/ops/ops.h"

namespace fullbore {

/// atan of a Tensor of f32 or f64, as nodes.
///
/// |x| is reduced to at most 0.66 by atan(x) = pi/2 - atan(1/x) above tan(3 pi / 8) and = pi/4 + atan((x - 1) / (x + 1))
/// above 0.66; there it is x + x z P(z) / Q(z) with z = x^2, the rational minimax approximation of Cephes (Moshier,
/// atan.c: relative error 1.3e-16 there).
Tensor arc_tangent(Tensor x);

}  // namespace fullbore
