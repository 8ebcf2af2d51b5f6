#pragma once
// What host and kernels know of one call of a linear recurrence: plain numbers, which are passed by value.

namespace fullbore::cuda {

/// Extents of fullbore/ops/recurrence.h: r and k [B,T,G,K], v [B,T,H,V], g [B,T,H,decays].
struct RecurrenceProblem {
  int batch = 0, tokens = 0, heads = 0, groups = 1, keys = 0, values = 0;
  int decays = 1;  ///< keys, or 1
  int chunk = 1, chunks = 0;
  int inclusive = 0;
  int reverse = 0;  ///< of states
  /// Operands that are f32 whatever r, k and v are.
  int wide_g = 0, wide_u = 0, wide_states = 0, wide_cotangents = 0;
};

}  // namespace fullbore::cuda
