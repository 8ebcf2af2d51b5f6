// Attention of one query a row to keys and values in pages of a pool (ops/paged_attention.h), in f32 arithmetic for f32, bf16
// and f16, the pool of the queries' dtype or of 16 bits, heads of any width: a block has one row, one head and some columns of
// its result. Its warps take turns at parts of a few places; each keeps its own largest score, sum and result (Dao 2023,
// arXiv:2307.08691), which are brought together in the order of the warps. What is computed of a row depends on nothing beside
// it.
#include "fullbore/device/cuda/kernels/attention_scores.h"

namespace {

constexpr int kWarps = 4;
constexpr int kPlaces = 4;  // of a part: their dot products do not wait for one another

struct Pool {
  const void* pages;
  int kind;  ///< IndexKind of these
  int row_pages, page_tokens;
  long rows;

  /// Of a place of a row, or -1: there is none, its keys and values are zeros.
  FB_DEVICE long at(int row, long place) const {
    const long page =
        index_at(pages, static_cast<long>(row) * row_pages + place / page_tokens, kind);
    const long found = page * page_tokens + place % page_tokens;
    return page >= 0 && found < rows ? found : -1;
  }
};

/// q, y [R,H,D]; keys, values [N,G D].
struct Heads {
  int heads, groups, width;
  long window;
  float scale;
};

/// What a warp has found of its places.
struct Found {
  float largest, sum;
};

template <class T, class Kept, int kColumns>
FB_DEVICE void attend(const T* q, const Kept* keys, const Kept* values, const long* seen, T* y,
                      const Heads& shape, const Pool& pool) {
  constexpr int kEach = kColumns / kWarp;  // of a lane: columns lane, lane + 32, ...
  FB_SHARED static Found found_by[kWarps];
  FB_SHARED static float result_of[kWarps][kColumns];
  const int row = block_x(), head = block_y(), column0 = block_z() * kColumns;
  const int warp = thread() / kWarp, lane = thread() % kWarp;
  const int width = shape.width;
  const long stride = static_cast<long>(shape.groups) * width;
  const long behind =
      head / (shape.heads / shape.groups) * width;  // of the group's own, in a row of the pool
  const T* const query = q + (static_cast<long>(row) * shape.heads + head) * width;
  float of_query[kEach];
#pragma unroll
  for (int j = 0; j < kEach; ++j)
    of_query[j] = lane + j * kWarp < width ? load(query[lane + j * kWarp]) : 0;

  const long places = static_cast<long>(pool.row_pages) * pool.page_tokens;
  const long last = most(0L, least(seen[row], places));
  const long first = shape.window > 0 ? least(last, most(0L, seen[row] - shape.window)) : 0;
  Found found{minus_infinity(), 0};
  float result[kEach] = {};
  for (long part = first + warp * kPlaces; part < last; part += kWarps * kPlaces) {
    long at[kPlaces];
    float scores[kPlaces];
#pragma unroll
    for (int i = 0; i < kPlaces; ++i) at[i] = part + i < last ? pool.at(row, part + i) : -1;
#pragma unroll
    for (int i = 0; i < kPlaces; ++i) {
      scores[i] = 0;
      if (at[i] < 0) continue;
      const Kept* const key = keys + at[i] * stride + behind;
#pragma unroll
      for (int j = 0; j < kEach; ++j)
        if (lane + j * kWarp < width) scores[i] += of_query[j] * load(key[lane + j * kWarp]);
      for (int d = lane + kColumns; d < width; d += kWarp)
        scores[i] += load(query[d]) * load(key[d]);
    }
#pragma unroll
    for (int mask = 1; mask < kWarp; mask *= 2)
#pragma unroll
      for (int i = 0; i < kPlaces; ++i) scores[i] += from_lane_xor(scores[i], mask);
    float of_part = minus_infinity();
#pragma unroll
    for (int i = 0; i < kPlaces; ++i) {
      scores[i] = part + i < last ? scores[i] * shape.scale : minus_infinity();
      of_part = most(of_part, scores[i]);
    }
    const float largest = most(found.largest, of_part);
    const float shift = largest == minus_infinity() ? 0 : largest;
    const float rescale = exponential(found.largest - shift);
    found.largest = largest;
    found.sum *= rescale;
#pragma unroll
    for (int j = 0; j < kEach; ++j) result[j] *= rescale;
#pragma unroll
    for (int i = 0; i < kPlaces; ++i) {
      const float weight = exponential(scores[i] - shift);
      found.sum += weight;
      if (at[i] < 0) continue;
      const Kept* const value = values + at[i] * stride + behind + column0;
#pragma unroll
      for (int j = 0; j < kEach; ++j)
        if (column0 + lane + j * kWarp < width) result[j] += weight * load(value[lane + j * kWarp]);
    }
  }
  if (lane == 0) found_by[warp] = found;
#pragma unroll
  for (int j = 0; j < kEach; ++j) result_of[warp][lane + j * kWarp] = result[j];
  barrier();

  float largest = minus_infinity();
#pragma unroll
  for (int w = 0; w < kWarps; ++w) largest = most(largest, found_by[w].largest);
  const float shift = largest == minus_infinity() ? 0 : largest;
  for (int column = thread(); column < kColumns && column0 + column < width;
       column += kWarps * kWarp) {
    float sum = 0, total = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const float share = exponential(found_by[w].largest - shift);
      sum += share * found_by[w].sum;
      total += share * result_of[w][column];
    }
    store(y + (static_cast<long>(row) * shape.heads + head) * width + column0 + column,
          sum > 0 ? total / sum : 0.0F);
  }
}

}  // namespace

#define FB_PAGED(T, suffix, Kept, kept, columns)                                                   \
  FB_KERNEL void paged_attention_##columns##_##suffix##_##kept(                                    \
      const T* q, const Kept* keys, const Kept* values, const void* pages, const long* seen, T* y, \
      int heads, int groups, int width, int row_pages, int page_tokens, int kind, long pool_rows,  \
      long window, float scale) {                                                                  \
    attend<T, Kept, columns>(q, keys, values, seen, y, {heads, groups, width, window, scale},      \
                             {pages, kind, row_pages, page_tokens, pool_rows});                    \
  }
#define FB_PAGED_OF(T, suffix, Kept, kept) \
  FB_PAGED(T, suffix, Kept, kept, 64)      \
  FB_PAGED(T, suffix, Kept, kept, 256)

FB_PAGED_OF(float, f32, float, f32)
FB_PAGED_OF(float, f32, Bf16, bf16)
FB_PAGED_OF(float, f32, F16, f16)
FB_PAGED_OF(Bf16, bf16, Bf16, bf16)
FB_PAGED_OF(Bf16, bf16, F16, f16)
FB_PAGED_OF(F16, f16, F16, f16)
FB_PAGED_OF(F16, f16, Bf16, bf16)
