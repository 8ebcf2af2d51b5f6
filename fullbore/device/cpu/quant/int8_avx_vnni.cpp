#include <immintrin.h>

#include <algorithm>
#include <bit>

#include "fullbore/base/quantize.h"
#include "fullbore/device/cpu/quant/int8_unit.h"

#define FB_TARGET __attribute__((target("avxvnni,avx2,fma,f16c")))
#define FB_INLINE FB_TARGET __attribute__((always_inline)) static inline

namespace fullbore::cpu {
namespace {

#include "fullbore/device/cpu/quant/int8_avx2.inc"

/// VPDPBUSD on 256 bits, for processors without AVX-512.
struct AvxVnni : Avx2Rows {
  using Vector = __m256i;
  using Element = uint8_t;
  static constexpr int64_t kStep = 32;
  static constexpr int kBias = 128;
  static constexpr int kTileRows = 2;
  static constexpr int kRowColumns = 4;

  FB_INLINE void store_rounded(uint8_t* q, Floats x, Floats scale) {
    const __m128i words = rounded(x, scale, kBias);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(q), _mm_packus_epi16(words, words));
  }
  FB_INLINE Vector load_x(const char* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  FB_INLINE Vector load_w(const int8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  FB_INLINE Vector load_some_w(const int8_t* p, int count) {
    int8_t some[kStep] = {};
    std::copy_n(p, count, some);
    return load_w(some);
  }
  FB_INLINE Sums add(Sums sums, Vector x, Vector w) { return _mm256_dpbusd_avx_epi32(sums, x, w); }
};

#include "fullbore/device/cpu/quant/int8_unit.inc"

}  // namespace

const Int8Unit kInt8AvxVnni = make_int8_unit<AvxVnni>("avxvnni", 200);

}  // namespace fullbore::cpu
