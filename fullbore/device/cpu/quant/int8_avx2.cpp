#include <immintrin.h>

#include <algorithm>
#include <bit>

#include "fullbore/base/quantize.h"
#include "fullbore/device/cpu/quant/int8_unit.h"

#define FB_TARGET __attribute__((target("avx2,fma,f16c")))
#define FB_INLINE FB_TARGET __attribute__((always_inline)) static inline

namespace fullbore::cpu {
namespace {

#include "fullbore/device/cpu/quant/int8_avx2.inc"

/// Both operands in 16 bits, whose pairs of products fit 32 (VPMADDWD). VPMADDUBSW would take bytes, but saturates
/// at 16 bits: 2 * 255 * 127 is more than that.
struct Avx2 : Avx2Rows {
  using Vector = __m256i;
  using Element = int16_t;
  static constexpr int64_t kStep = 16;
  static constexpr int kBias = 0;
  static constexpr int kTileRows = 2;
  static constexpr int kRowColumns = 8;

  FB_INLINE void store_rounded(int16_t* q, Floats x, Floats scale) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q), rounded(x, scale, kBias));
  }
  FB_INLINE Vector load_x(const char* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  FB_INLINE Vector load_w(const int8_t* p) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  FB_INLINE Vector load_some_w(const int8_t* p, int count) {
    int8_t some[kStep] = {};
    std::copy_n(p, count, some);
    return load_w(some);
  }
  FB_INLINE Sums add(Sums sums, Vector x, Vector w) {
    return _mm256_add_epi32(sums, _mm256_madd_epi16(x, w));
  }
};

#include "fullbore/device/cpu/quant/int8_unit.inc"

}  // namespace

const Int8Unit kInt8Avx2 = make_int8_unit<Avx2>("avx2", 100);

}  // namespace fullbore::cpu
