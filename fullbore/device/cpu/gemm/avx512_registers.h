#pragma once
#include <immintrin.h>

namespace fullbore::cpu {

/// Rows of sums that fit beside so many vectors of columns into 32 registers: 24 sums, 4 of columns,
/// one broadcast; 28 or so with fewer, wider rows.
constexpr int avx512_rows_beside(int vectors) { return vectors >= 4 ? 6 : vectors == 3 ? 8 : 12; }

/// Transposes sixteen rows of sixteen 32-bit lanes: pairs of rows, then pairs of pairs, within 128-bit
/// quarters; then the quarters themselves. Bits are moved, never read as numbers.
__attribute__((target("avx512f"), always_inline)) inline void avx512_transpose(__m512 (&x)[16]) {
  __m512 t[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(x[i], x[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(x[i], x[i + 1]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 4) {
    const __m512d low = _mm512_castps_pd(t[i]), low2 = _mm512_castps_pd(t[i + 2]);
    const __m512d high = _mm512_castps_pd(t[i + 1]), high2 = _mm512_castps_pd(t[i + 3]);
    x[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, low2));
    x[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, low2));
    x[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(high, high2));
    x[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(high, high2));
  }
#pragma GCC unroll 16
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_f32x4(x[i], x[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_f32x4(x[i], x[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_f32x4(x[i + 8], x[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_f32x4(x[i + 8], x[i + 12], 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 8; ++i) {
    x[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
    x[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
  }
}

}  // namespace fullbore::cpu
