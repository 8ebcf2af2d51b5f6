#pragma once
#include <string>

#include "fullbore/device/cpu/kernel.h"

namespace fullbore::cpu {

/// One matmul, matmul_add or prepacked_matmul node by its extents: y [batch, m, n] = a [batch, m, k] * b [batch, k, n],
/// where a lies as [k, m] and b as [n, k] if transposed, or b is prepacked.
struct Contraction {
  int64_t batch = 1;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  DType in = DType::f32;
  DType out = DType::f32;
  bool add = false;  ///< y = c + a * b, with c [batch, m, n] of y's dtype
  /// Of a prepacked b (prepack): columns of each block, or 0, and whether two elements of depth lie together.
  int64_t block_columns = 0;
  bool vnni = false;
  /// Is each element one chain of fused multiply-adds along k, from 0 or c on, whatever m and the passes? (Target::row_invariant)
  bool one_chain = false;
  int workers = 2;  ///< that share the tiles, which change no bit of the result

  static Contraction of(const KernelRequest& request);

  /// Elements between rows of a and b as they lie.
  int64_t a_stride() const { return transpose_a ? m : k; }
  int64_t b_stride() const { return transpose_b ? k : n; }
  double flops() const {
    return 2 * static_cast<double>(batch * m) * static_cast<double>(n) * static_cast<double>(k);
  }
  /// "6 x bf16 [64,32] [64,32]T -> f32"
  std::string text() const;
};

}  // namespace fullbore::cpu
