#include "fullbore/device/cpu/peaks/peak_kernels.h"

#include "fullbore/base/processor.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace fullbore::cpu {
namespace {

// x = x * kScale + kShift tends to 1 from below: never denormal, never infinite.
constexpr float kScale = 0.5F;
constexpr float kShift = 0.5F;

// Two pipes with a latency of four to five cycles need ten chains; twelve fit 16 registers beside
// the operands. Named variables, for an array would live in memory without unrolling. Each starts
// from a value of its own: compilers see that equal chains stay equal, and run one of them.
constexpr float start(int chain) { return static_cast<float>(chain) / 16; }
#define FB_TWELVE(M) M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7) M(8) M(9) M(10) M(11)

/// Vectors of 16 bytes, which every processor we know has; compilers split them where it has not.
float portable(int64_t iterations) {
  using Vector __attribute__((vector_size(16))) = float;
  const Vector scale = {kScale, kScale, kScale, kScale};
  const Vector shift = {kShift, kShift, kShift, kShift};
#define FB_DECLARE(n) Vector x##n = {start(n), start(n), start(n), start(n)};
  FB_TWELVE(FB_DECLARE)
#undef FB_DECLARE
  for (int64_t i = 0; i < iterations; ++i) {
#define FB_STEP(n) x##n = x##n * scale + shift;
    FB_TWELVE(FB_STEP)
#undef FB_STEP
  }
  Vector sum = {};
#define FB_ADD(n) sum += x##n;
  FB_TWELVE(FB_ADD)
#undef FB_ADD
  return sum[0];
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) float avx2(int64_t iterations) {
  const __m256 scale = _mm256_set1_ps(kScale);
  const __m256 shift = _mm256_set1_ps(kShift);
#define FB_DECLARE(n) __m256 x##n = _mm256_set1_ps(start(n));
  FB_TWELVE(FB_DECLARE)
#undef FB_DECLARE
  for (int64_t i = 0; i < iterations; ++i) {
#define FB_STEP(n) x##n = _mm256_fmadd_ps(x##n, scale, shift);
    FB_TWELVE(FB_STEP)
#undef FB_STEP
  }
  __m256 sum = _mm256_setzero_ps();
#define FB_ADD(n) sum = _mm256_add_ps(sum, x##n);
  FB_TWELVE(FB_ADD)
#undef FB_ADD
  return _mm256_cvtss_f32(sum);
}

__attribute__((target("avx512f"))) float avx512(int64_t iterations) {
  const __m512 scale = _mm512_set1_ps(kScale);
  const __m512 shift = _mm512_set1_ps(kShift);
#define FB_DECLARE(n) __m512 x##n = _mm512_set1_ps(start(n));
  FB_TWELVE(FB_DECLARE)
#undef FB_DECLARE
  for (int64_t i = 0; i < iterations; ++i) {
#define FB_STEP(n) x##n = _mm512_fmadd_ps(x##n, scale, shift);
    FB_TWELVE(FB_STEP)
#undef FB_STEP
  }
  __m512 sum = _mm512_setzero_ps();
#define FB_ADD(n) sum = _mm512_add_ps(sum, x##n);
  FB_TWELVE(FB_ADD)
#undef FB_ADD
  return _mm512_cvtss_f32(sum);
}

__attribute__((target("avx512f,avx512bf16"))) float avx512_bf16(int64_t iterations) {
  const __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.001F), _mm512_set1_ps(-0.001F));
  const __m512bh b = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5F), _mm512_set1_ps(0.5F));
#define FB_DECLARE(n) __m512 x##n = _mm512_set1_ps(start(n));
  FB_TWELVE(FB_DECLARE)
#undef FB_DECLARE
  for (int64_t i = 0; i < iterations; ++i) {
#define FB_STEP(n) x##n = _mm512_dpbf16_ps(x##n, a, b);
    FB_TWELVE(FB_STEP)
#undef FB_STEP
  }
  __m512 sum = _mm512_setzero_ps();
#define FB_ADD(n) sum = _mm512_add_ps(sum, x##n);
  FB_TWELVE(FB_ADD)
#undef FB_ADD
  return _mm512_cvtss_f32(sum);
}

/// Four accumulator tiles of 16 x 16 f32, two pairs of operands of 16 x 32 bf16: one multiplication
/// is 16 * 16 * 32 products. (Intel 64 Software Developer's Manual, TDPBF16PS, LDTILECFG.)
__attribute__((target("amx-tile,amx-bf16"))) float amx_bf16(int64_t iterations) {
  struct alignas(64) TileConfig {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } config;
  alignas(64) float result[16 * 16] = {};
  // The intrinsics do not tell the compiler how much memory they read and write.
  __asm__ volatile("" : : "r"(&config), "r"(result) : "memory");
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, result, 64);
  _tile_loadd(5, result, 64);
  _tile_loadd(6, result, 64);
  _tile_loadd(7, result, 64);
  for (int64_t i = 0; i < iterations; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(3, result, 64);
  _tile_release();
  __asm__ volatile("" : : "r"(result) : "memory");
  return result[0];
}
#endif
#undef FB_TWELVE

}  // namespace

PeakKernel fp32_peak_kernel() {
#if defined(__x86_64__)
  const VectorUnit unit = this_processor().vector_unit;
  if (unit >= VectorUnit::avx512) return {"avx512f fma", 12 * 16 * 2, avx512};
  if (unit >= VectorUnit::avx2) return {"avx2 fma", 12 * 8 * 2, avx2};
#endif
  return {"portable multiply-add", 12 * 4 * 2, portable};
}

PeakKernel bf16_peak_kernel() {
#if defined(__x86_64__)
  const Processor processor = this_processor();
  if (processor.amx_bf16) return {"amx bf16", 4 * 16 * 16 * 32 * 2, amx_bf16};
  if (processor.avx512_bf16) return {"avx512 bf16 dot", 12 * 32 * 2, avx512_bf16};
#endif
  return {"not native: widened to f32", 0, nullptr};
}

}  // namespace fullbore::cpu
