#pragma once
#include <cstdint>

#include "fullbore/base/dtype.h"
#include "fullbore/base/processor.h"

namespace fullbore::cpu {

/// Heads that share keys, and some places of a page: keys and values have a row for each place, `stride` elements apart.
struct PageTile {
  int64_t queries = 0;
  int64_t places = 0;
  int64_t width = 0;
  int64_t stride = 0;
  int64_t scores_row = 0;  ///< elements between the scores of two queries
};

/// The loops over pages of one dtype, which is widened in registers. Queries and results of a head are f32, ordered as widening
/// finds the elements: of bf16, two vectors at a time, first those of even numbers and then those of odd ones.
struct PageLoops {
  /// to = factor from, of one head, ordered so
  void (*order)(const float* from, float factor, int64_t width, float* to) = nullptr;
  /// The same on the way back.
  void (*restore)(const float* from, float factor, int64_t width, float* to) = nullptr;
  /// scores[query, place] = q[query] keys[place]
  void (*score)(const PageTile& tile, const float* q, const void* keys, float* scores) = nullptr;
  /// y[query] += weights[query, place] values[place], for all places
  void (*add_values)(const PageTile& tile, const float* weights, const void* values,
                     float* y) = nullptr;
};

/// The loops over pages for one vector unit, summed in f32. Sums are in an order of their own, the same for every row.
struct PageUnit {
  int64_t lanes = 1;
  /// scores[0, count) = exp(scores - their largest), 0 where that is -inf; returns their sum. `count` is a whole number of
  /// lanes.
  float (*soften)(float* scores, int64_t count) = nullptr;
  PageLoops f32, bf16, f16;

  const PageLoops& loops(DType pool) const {
    return pool == DType::bf16 ? bf16 : pool == DType::f16 ? f16 : f32;
  }
};

/// The unit's loops; the processor must have it.
const PageUnit& page_unit(VectorUnit unit);

extern const PageUnit kPageAvx512;
extern const PageUnit kPageAvx2;
extern const PageUnit kPageBaseline;

}  // namespace fullbore::cpu
