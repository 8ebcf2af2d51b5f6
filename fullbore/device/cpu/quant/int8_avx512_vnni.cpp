#include <immintrin.h>

#include <algorithm>
#include <bit>

#include "fullbore/base/quantize.h"
#include "fullbore/device/cpu/quant/int8_unit.h"

// GCC 12 takes its own _mm512_undefined_*() for a mistake of ours (GCC bug 105593).
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define FB_TARGET \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")))
#define FB_INLINE FB_TARGET __attribute__((always_inline)) static inline

namespace fullbore::cpu {
namespace {

/// Sums of four products of a byte without a sign and one with a sign, in one instruction (VPDPBUSD).
struct Avx512Vnni {
  using Floats = __m512;
  using Bits = __m512i;
  using Vector = __m512i;
  using Sums = __m512i;
  using Element = uint8_t;
  static constexpr int kLanes = 16;
  static constexpr int64_t kStep = 64;
  static constexpr int kBias = 128;
  static constexpr int kTileRows = 4;
  static constexpr int kRowColumns = 8;

  FB_INLINE Floats load(const float* p) { return _mm512_loadu_ps(p); }
  FB_INLINE Floats broadcast(float x) { return _mm512_set1_ps(x); }
  FB_INLINE Bits no_bits() { return _mm512_setzero_si512(); }
  FB_INLINE Bits larger(Bits bits, Floats x) {
    const __m512i size = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
    return _mm512_max_epi32(bits, size);
  }
  FB_INLINE uint32_t largest(Bits bits) {
    return static_cast<uint32_t>(_mm512_reduce_max_epi32(bits));
  }
  FB_INLINE void store_rounded(uint8_t* q, Floats x, Floats scale) {
    const __m512i rounded = _mm512_cvtps_epi32(_mm512_div_ps(x, scale));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q),
                     _mm512_cvtepi32_epi8(_mm512_add_epi32(rounded, _mm512_set1_epi32(kBias))));
  }

  FB_INLINE Sums no_sums() { return _mm512_setzero_si512(); }
  FB_INLINE Vector load_x(const char* p) { return _mm512_loadu_si512(p); }
  FB_INLINE Vector load_w(const int8_t* p) { return _mm512_loadu_si512(p); }
  FB_INLINE Vector load_some_w(const int8_t* p, int count) {
    return _mm512_maskz_loadu_epi8((__mmask64{1} << count) - 1, p);
  }
  FB_INLINE Sums add(Sums sums, Vector x, Vector w) { return _mm512_dpbusd_epi32(sums, x, w); }
  FB_INLINE int32_t total(Sums sums) { return _mm512_reduce_add_epi32(sums); }
  FB_INLINE __m256i halved(Sums sums) {
    return _mm256_add_epi32(_mm512_castsi512_si256(sums), _mm512_extracti64x4_epi64(sums, 1));
  }
  FB_INLINE void totals(const Sums* sums, int32_t* to) {
    const __m256i ab = _mm256_hadd_epi32(halved(sums[0]), halved(sums[1]));
    const __m256i cd = _mm256_hadd_epi32(halved(sums[2]), halved(sums[3]));
    const __m256i all = _mm256_hadd_epi32(ab, cd);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                     _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1)));
  }
};

#include "fullbore/device/cpu/quant/int8_unit.inc"

}  // namespace

const Int8Unit kInt8Avx512Vnni = make_int8_unit<Avx512Vnni>("avx512vnni", 400);

}  // namespace fullbore::cpu
