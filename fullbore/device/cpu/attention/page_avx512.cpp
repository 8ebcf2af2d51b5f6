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

#include "fullbore/device/cpu/simd/avx512.inc"

struct PageAvx512 : Avx512 {
  // Pairs of registers, then pairs of pairs, within quarters of 128 bits; then the quarters.
  FB_INLINE Register sums(const Register* x) {
    Register quarters[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i, x += 4) {
      const Register a = add(_mm512_unpacklo_ps(x[0], x[1]), _mm512_unpackhi_ps(x[0], x[1]));
      const Register b = add(_mm512_unpacklo_ps(x[2], x[3]), _mm512_unpackhi_ps(x[2], x[3]));
      quarters[i] = add(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
    }
    return halves(halves(quarters[0], quarters[1]), halves(quarters[2], quarters[3]));
  }
  FB_INLINE Register halves(Register a, Register b) {
    return add(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
  }

  FB_INLINE float largest(Register x) { return _mm512_reduce_max_ps(x); }
  FB_INLINE void unzip(Register a, Register b, Register& even, Register& odd) {
    const __m512i first =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    even = _mm512_permutex2var_ps(a, first, b);
    odd = _mm512_permutex2var_ps(a, _mm512_add_epi32(first, _mm512_set1_epi32(1)), b);
  }
  FB_INLINE void zip(Register even, Register odd, Register& a, Register& b) {
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    a = _mm512_permutex2var_ps(even, low, odd);
    b = _mm512_permutex2var_ps(even, _mm512_add_epi32(low, _mm512_set1_epi32(8)), odd);
  }

  FB_INLINE Register load_as(const float* p) { return load(p); }
  FB_INLINE Register load_as(const Bf16* p) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  FB_INLINE Register load_as(const F16* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  FB_INLINE void load_pairs(const Bf16* p, Register& even, Register& odd) {
    const __m512i pairs = _mm512_loadu_si512(p);
    even = _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
    odd = _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(-0x10000)));
  }
};

#include "fullbore/device/cpu/attention/page_unit.inc"

}  // namespace

const PageUnit kPageAvx512 = make_page_unit<PageAvx512>();

}  // namespace fullbore::cpu
