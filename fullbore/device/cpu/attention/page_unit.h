#pragma once
#include <cstdint>

#include "fullbore/base/dtype.h"
#include "fullbore/base/processor.h"
#include "fullbore/device/cpu/attention/stretch.h"

namespace fullbore::cpu {

/// Heads, and some places of a page: keys and values have a row for each place, `stride` elements apart, in which the parts of
/// the groups lie one behind the other, as the heads of a group, which share keys, do among the queries.
struct PageTile {
  int64_t groups = 0;
  int64_t queries = 0;  ///< heads of a group
  int64_t places = 0;
  int64_t width = 0;
  int64_t stride = 0;
  int64_t scores_row = 0;  ///< elements between the scores of two heads
  /// Is asked for meanwhile, a part with each group: a processor waits for some lines at a time and no more, and asked for all
  /// at once it would do nothing else.
  Stretch next = {};
};

/// The loops over pages of one dtype. Queries and results of a head are f32, ordered as widening in registers finds the
/// elements: of bf16, two vectors at a time, first those of even numbers and then those of odd ones.
struct PageLoops {
  /// to = factor from, of one head, ordered so
  void (*order)(const float* from, float factor, int64_t width, float* to) = nullptr;
  /// The same on the way back.
  void (*restore)(const float* from, float factor, int64_t width, float* to) = nullptr;
  /// scores[head, place] = q[head] keys[place]
  void (*score)(const PageTile& tile, const float* q, const void* keys, float* scores) = nullptr;
  /// y[head] += weights[head, place] values[place], for all places
  void (*add_values)(const PageTile& tile, const float* weights, const void* values,
                     float* y) = nullptr;
};

/// The same where queries, keys and values are bf16 and heads a whole number of kPagePairs wide: dot products of pairs.
/// Queries are read as they lie; y is f32 in an order of its own. Weights are rounded to bf16.
struct PagePairLoops {
  void (*score)(const PageTile& tile, const Bf16* q, const Bf16* keys, float* scores) = nullptr;
  void (*add_values)(const PageTile& tile, const float* weights, const Bf16* values,
                     float* y) = nullptr;
  /// to = factor y, of one head, as it lies
  void (*finish)(const float* y, float factor, int64_t width, Bf16* to) = nullptr;
};
inline constexpr int64_t kPagePairs = 32;  ///< elements of a register

/// The loops over pages for one vector unit, summed in f32. Sums are in an order of their own, the same for every row.
struct PageUnit {
  int64_t lanes = 1;
  /// scores[0, count) = exp(factor (scores - their largest)), 0 where that is -inf; returns their sum. `factor` is positive,
  /// `count` a whole number of lanes.
  float (*soften)(float* scores, int64_t count, float factor) = nullptr;
  PageLoops f32, bf16, f16;

  const PageLoops& loops(DType pool) const {
    return pool == DType::bf16 ? bf16 : pool == DType::f16 ? f16 : f32;
  }
};

/// The unit's loops; the processor must have it.
const PageUnit& page_unit(VectorUnit unit);
/// Null where no processor of this kind has any; otherwise it must have AVX512_BF16.
const PagePairLoops* page_pair_loops();

extern const PageUnit kPageAvx512;
extern const PageUnit kPageAvx2;
extern const PageUnit kPageBaseline;
extern const PagePairLoops kPagePairsAvx512;

}  // namespace fullbore::cpu
