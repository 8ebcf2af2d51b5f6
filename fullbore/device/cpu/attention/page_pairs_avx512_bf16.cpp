#include <immintrin.h>

#include <algorithm>
#include <limits>

#include "fullbore/device/cpu/attention/page_unit.h"
#include "fullbore/device/cpu/gemm/gemm_unit.h"
#include "fullbore/device/cpu/kernels/elements.h"

#define FB_BF16

namespace fullbore::cpu {
namespace {

#include "fullbore/device/cpu/simd/avx512.inc"

#include "fullbore/device/cpu/attention/page_avx512.inc"

#define FB_UNROLL _Pragma("GCC unroll 16")

constexpr int kLanes = 16;  // of f32
constexpr int kPart = 16;   // places at a time

FB_INLINE __m512bh load_pairs(const Bf16* p) {
  return reinterpret_cast<__m512bh>(_mm512_loadu_si512(p));
}

// Of the first `places` of kPart places; the last one stands for those that are missing. Keys in turn: a load of the query
// serves them all.
template <bool kAll>
FB_INLINE void score_part(const PageTile& tile, int64_t places, const Bf16* q, const Bf16* keys,
                          float* scores) {
  __m512 sums[kPart];
  FB_UNROLL
  for (int key = 0; key < kPart; ++key) sums[key] = _mm512_setzero_ps();
  for (int64_t d = 0; d < tile.width; d += kPagePairs) {
    const __m512bh query = load_pairs(q + d);
    const Bf16* at = keys + d;
    FB_UNROLL
    for (int key = 0; key < kPart; ++key) {
      sums[key] = _mm512_dpbf16_ps(sums[key], query, load_pairs(at));
      at += kAll || key + 1 < places ? tile.stride : 0;
    }
  }
  const __m512 all = PageAvx512::sums(sums);
  if (kAll)
    _mm512_storeu_ps(scores, all);
  else
    _mm512_mask_storeu_ps(scores, static_cast<__mmask16>((1U << places) - 1), all);
}

FB_TARGET void score_page(const PageTile& tile, const Bf16* q, const Bf16* keys, float* scores) {
  for (int64_t group = 0; group < tile.groups; ++group, keys += tile.width) {
    tile.next.ask(group, tile.groups);
    for (int64_t query = 0; query < tile.queries; ++query) {
      int64_t place = 0;
      for (; place + kPart <= tile.places; place += kPart)
        score_part<true>(tile, kPart, q, keys + place * tile.stride, scores + place);
      if (place < tile.places)
        score_part<false>(tile, tile.places - place, q, keys + place * tile.stride, scores + place);
      q += tile.width;
      scores += tile.scores_row;
    }
  }
}

// Weights of two neighbouring places.
struct WeightPairs {
  alignas(32) int32_t pairs[kPart / 2];

  FB_INLINE __m512bh of(const WeightPairs& w, int64_t pair) {
    return reinterpret_cast<__m512bh>(_mm512_set1_epi32(w.pairs[pair]));
  }
};

// The elements of two places side by side: numbers 0 to 3 of each eight, and 4 to 7.
FB_INLINE void add_pair(__m512i a, __m512i b, __m512bh weights, __m512& low, __m512& high) {
  low = _mm512_dpbf16_ps(low, reinterpret_cast<__m512bh>(_mm512_unpacklo_epi16(a, b)), weights);
  high = _mm512_dpbf16_ps(high, reinterpret_cast<__m512bh>(_mm512_unpackhi_epi16(a, b)), weights);
}

// kBlocks blocks of kPagePairs columns of y; pairs in kChains chains, which do not wait for one another.
template <int kBlocks, int kChains>
FB_INLINE void add_columns(int64_t places, int64_t stride, const WeightPairs& weights,
                           const Bf16* values, float* y) {
  __m512 low[kChains][kBlocks], high[kChains][kBlocks];
  FB_UNROLL
  for (int chain = 0; chain < kChains; ++chain) {
    FB_UNROLL
    for (int i = 0; i < kBlocks; ++i) low[chain][i] = high[chain][i] = _mm512_setzero_ps();
  }
  int64_t pair = 0;
  for (; 2 * (pair + kChains) <= places; pair += kChains) {
    FB_UNROLL
    for (int chain = 0; chain < kChains; ++chain, values += 2 * stride) {
      const __m512bh weight = WeightPairs::of(weights, pair + chain);
      FB_UNROLL
      for (int i = 0; i < kBlocks; ++i)
        add_pair(_mm512_loadu_si512(values + i * kPagePairs),
                 _mm512_loadu_si512(values + stride + i * kPagePairs), weight, low[chain][i],
                 high[chain][i]);
    }
  }
  for (; 2 * pair < places; ++pair, values += 2 * stride) {
    const __m512bh weight = WeightPairs::of(weights, pair);
    const bool alone = 2 * pair + 1 == places;
    FB_UNROLL
    for (int i = 0; i < kBlocks; ++i)
      add_pair(
          _mm512_loadu_si512(values + i * kPagePairs),
          alone ? _mm512_setzero_si512() : _mm512_loadu_si512(values + stride + i * kPagePairs),
          weight, low[0][i], high[0][i]);
  }
  FB_UNROLL
  for (int i = 0; i < kBlocks; ++i, y += kPagePairs) {
    __m512 a = _mm512_loadu_ps(y), b = _mm512_loadu_ps(y + kLanes);
    FB_UNROLL
    for (int chain = 0; chain < kChains; ++chain) {
      a = _mm512_add_ps(a, low[chain][i]);
      b = _mm512_add_ps(b, high[chain][i]);
    }
    _mm512_storeu_ps(y, a);
    _mm512_storeu_ps(y + kLanes, b);
  }
}

FB_TARGET void add_values_of_page(const PageTile& tile, const float* weights, const Bf16* values,
                                  float* y) {
  for (int64_t group = 0; group < tile.groups; ++group, values += tile.width) {
    tile.next.ask(group, tile.groups);
    for (int64_t query = 0; query < tile.queries; ++query) {
      for (int64_t place = 0; place < tile.places; place += kPart) {
        const int64_t places = std::min<int64_t>(kPart, tile.places - place);
        const __m512 row =
            _mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << places) - 1), weights + place);
        WeightPairs pairs;
        const __m256bh narrow = _mm512_cvtneps_pbh(row);
        __builtin_memcpy(pairs.pairs, &narrow, sizeof narrow);
        const Bf16* const from = values + place * tile.stride;
        int64_t d = 0;
        for (; d + 2 * kPagePairs <= tile.width; d += 2 * kPagePairs)
          add_columns<2, 2>(places, tile.stride, pairs, from + d, y + d);
        for (; d < tile.width; d += kPagePairs)
          add_columns<1, 4>(places, tile.stride, pairs, from + d, y + d);
      }
      weights += tile.scores_row;
      y += tile.width;
    }
  }
}

FB_TARGET void finish_head(const float* y, float factor, int64_t width, Bf16* to) {
  const __m512 factors = _mm512_set1_ps(factor);
  // Four elements at a time, by turns from the one and the other vector.
  const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
  for (int64_t d = 0; d < width; d += kPagePairs) {
    const __m512 low = _mm512_mul_ps(_mm512_loadu_ps(y + d), factors);
    const __m512 high = _mm512_mul_ps(_mm512_loadu_ps(y + d + kLanes), factors);
    const __m512bh both = _mm512_cvtne2ps_pbh(high, low);
    _mm512_storeu_si512(to + d, _mm512_permutexvar_epi64(order, reinterpret_cast<__m512i>(both)));
  }
}

}  // namespace

const PagePairLoops kPagePairsAvx512 = {
    .score = score_page, .add_values = add_values_of_page, .finish = finish_head};

}  // namespace fullbore::cpu
