#include <immintrin.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "fullbore/device/cpu/attention/page_unit.h"
#include "fullbore/device/cpu/attention/tile_unit.h"
#include "fullbore/device/cpu/kernels/elements.h"

namespace fullbore::cpu {
namespace {

#include "fullbore/device/cpu/simd/avx2.inc"

struct PageAvx2 : Avx2 {
  FB_INLINE Register sums(const Register* x) {
    const Register low = _mm256_hadd_ps(_mm256_hadd_ps(x[0], x[1]), _mm256_hadd_ps(x[2], x[3]));
    const Register high = _mm256_hadd_ps(_mm256_hadd_ps(x[4], x[5]), _mm256_hadd_ps(x[6], x[7]));
    return add(_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31));
  }

  FB_INLINE float largest(Register x) {
    __m128 half = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    half = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
  }
  // Elements 0 2, of both, 4 6 of both: the middle quarters change places.
  FB_INLINE Register in_order(Register x) {
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(x), 0xd8));
  }
  FB_INLINE void unzip(Register a, Register b, Register& even, Register& odd) {
    even = in_order(_mm256_shuffle_ps(a, b, 0x88));
    odd = in_order(_mm256_shuffle_ps(a, b, 0xdd));
  }
  FB_INLINE void zip(Register even, Register odd, Register& a, Register& b) {
    const Register low = _mm256_unpacklo_ps(even, odd), high = _mm256_unpackhi_ps(even, odd);
    a = _mm256_permute2f128_ps(low, high, 0x20);
    b = _mm256_permute2f128_ps(low, high, 0x31);
  }

  FB_INLINE Register load_as(const float* p) { return load(p); }
  FB_INLINE Register load_as(const Bf16* p) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  FB_INLINE Register load_as(const F16* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  FB_INLINE void load_pairs(const Bf16* p, Register& even, Register& odd) {
    const __m256i pairs = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    even = _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16));
    odd = _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32(-0x10000)));
  }
};

#include "fullbore/device/cpu/attention/page_unit.inc"

}  // namespace

const PageUnit kPageAvx2 = make_page_unit<PageAvx2>();

}  // namespace fullbore::cpu
