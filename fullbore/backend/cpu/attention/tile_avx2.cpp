#include <immintrin.h>

#include <iterator>
#include <limits>
#include <utility>

#include "fullbore/backend/cpu/attention/tile_unit.h"

#define FB_TARGET __attribute__((target("avx2,fma,f16c")))
#define FB_INLINE FB_TARGET __attribute__((always_inline)) static inline

namespace fullbore::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Avx2 {
  using Register = __m256;
  using Wide = __m256i;
  static constexpr int kLanes = 8;
  static constexpr int kWideLanes = 4;
  static constexpr bool kPairs = false;

  FB_INLINE Register load(const float* p) { return _mm256_loadu_ps(p); }
  FB_INLINE void store(float* p, Register x) { _mm256_storeu_ps(p, x); }
  FB_INLINE Register broadcast(float x) { return _mm256_set1_ps(x); }
  FB_INLINE Register add(Register a, Register b) { return _mm256_add_ps(a, b); }
  FB_INLINE Register sub(Register a, Register b) { return _mm256_sub_ps(a, b); }
  FB_INLINE Register mul(Register a, Register b) { return _mm256_mul_ps(a, b); }
  FB_INLINE Register div(Register a, Register b) { return _mm256_div_ps(a, b); }
  FB_INLINE Register fma(Register a, Register b, Register c) { return _mm256_fmadd_ps(a, b, c); }
  FB_INLINE Register minimum(Register a, Register b) { return _mm256_min_ps(a, b); }
  FB_INLINE Register maximum(Register a, Register b) { return _mm256_max_ps(a, b); }
  FB_INLINE Register where_less(Register a, Register b, Register x, Register y) {
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
  }
  FB_INLINE Register power_of_two(__m256i n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
  }
  // In two factors, each a normal number.
  FB_INLINE Register times_power_of_two(Register x, Register n) {
    const __m256i whole = _mm256_cvtps_epi32(n);
    const __m256i half = _mm256_srai_epi32(whole, 1);
    return mul(mul(x, power_of_two(half)), power_of_two(_mm256_sub_epi32(whole, half)));
  }
  FB_INLINE Register exponent_of(Register x) {
    const __m256i above = _mm256_sub_epi32(_mm256_castps_si256(x), _mm256_set1_epi32(0x3f3504f3));
    return _mm256_cvtepi32_ps(_mm256_srai_epi32(above, 23));
  }

  FB_INLINE Wide wide(uint32_t x) { return _mm256_set1_epi64x(x); }
  FB_INLINE Wide wide_steps(uint32_t first, uint32_t step) {
    return _mm256_add_epi64(wide(first),
                            _mm256_mul_epu32(_mm256_setr_epi64x(0, 1, 2, 3), wide(step)));
  }
  FB_INLINE Wide wide_add(Wide a, Wide b) { return _mm256_add_epi64(a, b); }
  FB_INLINE Wide wide_xor(Wide a, Wide b) { return _mm256_xor_si256(a, b); }
  FB_INLINE Wide wide_product(Wide a, Wide b) { return _mm256_mul_epu32(a, b); }
  FB_INLINE Wide wide_upper(Wide x) { return _mm256_srli_epi64(x, 32); }
  FB_INLINE void store_kept(float* p, Wide x, uint32_t threshold, float kept) {
    const __m256i drawn = _mm256_srli_epi64(_mm256_slli_epi64(x, 32), 40);
    const __m256i dropped = _mm256_cmpgt_epi64(wide(threshold), drawn);
    // The even words of four lanes of 64 bits.
    const __m256i words =
        _mm256_permutevar8x32_epi32(dropped, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6));
    const __m128 drop = _mm_castsi128_ps(_mm256_castsi256_si128(words));
    _mm_storeu_ps(p, _mm_andnot_ps(drop, _mm_set1_ps(kept)));
  }
  FB_INLINE bool store_truths(float* p, const uint8_t* truths) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(truths));
    const __m256i hidden = _mm256_cmpeq_epi32(_mm256_cvtepu8_epi32(bytes), _mm256_setzero_si256());
    store(p, _mm256_and_ps(_mm256_castsi256_ps(hidden), broadcast(-kInfinity)));
    return _mm256_movemask_epi8(hidden) != -1;
  }
};

#include "fullbore/backend/cpu/attention/tile_unit.inc"

}  // namespace

const TileUnit kTileAvx2 = make_tile_unit<Avx2>();

}  // namespace fullbore::cpu
