#pragma once
#include <cstdint>

#include "fullbore/base/processor.h"

namespace fullbore::cpu {

/// Rows of matrices whose widths are multiples of this are whole vectors of every unit.
inline constexpr int64_t kRowStep = 16;

/// Rows `stride` elements apart; 0: the same row again and again.
struct Rows {
  const float* data = nullptr;
  int64_t stride = 0;

  const float* row(int64_t i) const { return data + i * stride; }
};
struct MutableRows {
  float* data = nullptr;
  int64_t stride = 0;

  float* row(int64_t i) const { return data + i * stride; }
  operator Rows() const { return {data, stride}; }  // NOLINT: as with spans
};

/// reading = exp(read - border), writing = exp(anchor - after), left = r * reading, right = k * writing.
struct BlockDecays {
  int64_t tokens, width;
  const float *border, *anchor;
  Rows read, after, r, k;
  MutableRows reading, writing, left, right;
};

/// What is left to be done of the cotangents of r and k once the matmuls are made, of one block, from
/// the last token to the first:
///   of_r = (pairs_r + outside_r * state) * reading + far_r
///   of_k = pairs_k * writing + far_k,  outside = outside_k * rest * writing
///   dr = or += of_r + slopes * u * k,  dk = or += of_k + outside + slopes * u * r
///   du += slopes * r * k,              written = k * outside
///   dg = sum of r * of_r behind t (and at t if `own`) - sum of k * of_k at t and behind
/// du and those sums, `behind` and `minus`, go on from block to block. In the sums r * reading and k * writing are
/// the operands of the matmuls that made pairs_r and pairs_k, in bf16 if `rounded`: what a pair of tokens
/// adds to both then is the same, and where a decay is not between the two it is gone.
struct KeyCotangents {
  int64_t tokens, width;
  bool own, add, rounded;
  Rows r, k, reading, writing, pairs_r, outside_r, far_r, pairs_k, outside_k, far_k;
  const float *state, *rest, *u, *slopes;
  MutableRows dr, dk, written, dg;
  float *du, *behind, *minus;
};

/// With one decay for all keys, of a block of readers i and all writers j, e = exp(min(read[i] - after[j], 0)):
///   weights = scores * e,  read_sums[i] = sum of slopes * weights,  written_sums[j] += slopes * weights
///   slopes_sum += slopes * e
/// Scores and slopes are 0 where i does not see j, up to whole vectors.
struct PairDecays {
  int64_t readers, width;
  const float *read, *after;
  Rows scores, slopes;
  MutableRows weights, slopes_sum;
  float *read_sums, *written_sums;
};

/// The loops over rows of a chunk for one vector unit. Widths are multiples of kRowStep unless said
/// otherwise. Exponentials are correct to 2 ulps.
struct RowUnit {
  /// sums[0] = 0, sums[i + 1] = sums[i] + g[i] limited to [least, 0]
  void (*running)(int64_t rows, int64_t width, Rows g, float least, MutableRows sums) = nullptr;
  /// to = exp(a - b)
  void (*exponentials)(int64_t rows, int64_t width, Rows a, Rows b, MutableRows to) = nullptr;
  /// to = x * y
  void (*multiply)(int64_t rows, int64_t width, Rows x, Rows y, MutableRows to) = nullptr;
  /// to += x * y
  void (*multiply_add)(int64_t rows, int64_t width, Rows x, Rows y, MutableRows to) = nullptr;
  /// to += x
  void (*add)(int64_t rows, int64_t width, Rows x, MutableRows to) = nullptr;
  /// to[i] = x[i] * factor[i], of any width
  void (*scale)(int64_t rows, int64_t width, Rows x, const float* factor, MutableRows to) = nullptr;
  /// to[i] = x[i] * factor[i] + left[i] * row, of any width
  void (*decay_and_add)(int64_t rows, int64_t width, Rows x, const float* factor, const float* left,
                        const float* row, MutableRows to) = nullptr;
  /// sums[i] = sum of x[i] * y[i], of any width
  void (*dots)(int64_t rows, int64_t width, Rows x, Rows y, float* sums) = nullptr;
  /// The largest of a - b, and of 0.
  float (*largest_difference)(int64_t width, const float* a, const float* b) = nullptr;
  /// to[j] = x[j] * exp(a - b[j]), of any width whose rest up to a whole vector may be read and written
  void (*decay)(int64_t width, const float* x, float a, const float* b, float* to) = nullptr;
  /// weights[i, j] = sum of r[i] * k[j] * exp(read[i] - written[j]) for j < i, or j <= i if `own`; 0 else
  void (*pair_weights)(int64_t tokens, int64_t width, bool own, Rows r, Rows k, Rows read,
                       Rows written, MutableRows weights) = nullptr;
  /// dr[i] += dweights[i, j] * k[j] * exp(..) and dk[j] += dweights[i, j] * r[i] * exp(..) for the same
  void (*pair_slopes)(int64_t tokens, int64_t width, bool own, Rows r, Rows k, Rows read,
                      Rows written, Rows dweights, MutableRows dr, MutableRows dk) = nullptr;
  /// to = x * exp(a - b)
  void (*decayed)(int64_t rows, int64_t width, Rows x, Rows a, Rows b, MutableRows to) = nullptr;
  /// to[i, j] = x[i, j] * exp(min(read[i] - after[j], 0))
  void (*decay_pairs)(int64_t rows, int64_t width, Rows x, const float* read, const float* after,
                      MutableRows to) = nullptr;
  void (*decay_slopes)(const PairDecays& block) = nullptr;
  /// With z = x[i] * factor[i], of any width: to += z, sums[i] = sum of z * y[i]
  void (*add_scaled)(int64_t rows, int64_t width, Rows x, const float* factor, Rows y,
                     MutableRows to, float* sums) = nullptr;
  void (*block_decays)(const BlockDecays& block) = nullptr;
  void (*key_cotangents)(const KeyCotangents& block) = nullptr;
  /// to[t] += passing + sum of `written` before t, but 0 where g is not within [least, 0]
  void (*decay_cotangents)(int64_t tokens, int64_t width, const float* passing, Rows written,
                           Rows g, float least, MutableRows to) = nullptr;
  /// Of kRowStep columns: 0 in column j of row i unless j < i, or j <= i if `own`.
  void (*keep_seen)(int64_t rows, bool own, MutableRows pairs) = nullptr;
  /// to[i * step] = sum of r[i] * u * k[i], of any width
  void (*bonuses)(int64_t rows, int64_t width, Rows r, Rows k, const float* u, float* to,
                  int64_t step) = nullptr;
};

/// The unit's loops; the processor must have it.
const RowUnit& row_unit(VectorUnit unit);

extern const RowUnit kRowAvx512;
extern const RowUnit kRowAvx2;
extern const RowUnit kRowBaseline;

}  // namespace fullbore::cpu
