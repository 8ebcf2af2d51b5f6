#pragma once
#include "fullbore/ops/ops.h"

namespace fullbore {

/// x rounded to one of the two bf16 values beside it, as an f32 that bf16 holds exactly: to the one farther away with
/// probability |x - nearer| / |farther - nearer|, so that the mean over draws is x. To nearest, an update below half of
/// the distance is lost however often it is made: with 8 bits of mantissa, one below 1/512 of the weight.
///
/// x        f32     what bf16 holds, and what is not finite, stays as it is
/// uniform  f32     in [0, 1), of x's shape: a draw for each element
///
/// Casts, comparisons and products that are exact: the same bits on every processor. In double there is nothing to round,
/// and the result is x.
/// Source: Gupta et al. 2015, arXiv:1502.02551, section 3; Zamirai et al. 2020, arXiv:2010.06192, for bf16 weights.
Tensor round_stochastically_to_bf16(Tensor x, Tensor uniform);

/// The other way: to nearest even, as an f32 too.
Tensor round_to_nearest_bf16(Tensor x);

}  // namespace fullbore
