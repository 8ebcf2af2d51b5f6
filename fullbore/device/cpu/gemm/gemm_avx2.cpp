#include <immintrin.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "fullbore/device/cpu/gemm/gemm_unit.h"
#include "fullbore/device/cpu/kernels/elements.h"

// Every processor with AVX2 converts half precision too.
#define FB_TARGET __attribute__((target("avx2,fma,f16c")))
#define FB_INLINE FB_TARGET __attribute__((always_inline)) static inline

namespace fullbore::cpu {
namespace {

// 16 registers: 12 sums, 2 of columns (or 1), one broadcast.
constexpr int rows_beside(int vectors) { return vectors >= 2 ? 6 : 12; }

struct Avx2F32 {
  using Element = float;
  using Register = __m256;
  using Mask = __m256i;
  static constexpr int kLanes = 8;
  static constexpr int kBlockVectors = 2;
  static constexpr int kDepthSteps = 2;
  static constexpr int kUnitSteps = 4;
  static constexpr bool walks(int vectors) { return vectors == kBlockVectors; }
  static constexpr bool kDearMasks = true;
  static constexpr int kDotRows = 2;
  static constexpr double kFlopsPerNanosecond = 60;
  static constexpr int rows_of(int vectors) { return rows_beside(vectors); }

  FB_INLINE Register zero() { return _mm256_setzero_ps(); }
  FB_INLINE Register load(const float* p) { return _mm256_loadu_ps(p); }
  FB_INLINE void store(float* p, Register x) { _mm256_storeu_ps(p, x); }
  FB_INLINE Register broadcast(float x) { return _mm256_set1_ps(x); }
  FB_INLINE Register add(Register a, Register b) { return _mm256_add_ps(a, b); }
  FB_INLINE Register fma(Register a, Register b, Register c) { return _mm256_fmadd_ps(a, b, c); }
  FB_INLINE void add_product(Register& sum, Register a, Register b) {
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
  }
  FB_INLINE Mask mask_of(int count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  FB_INLINE Register load_some(const float* p, Mask mask) { return _mm256_maskload_ps(p, mask); }
  FB_INLINE void store_some(float* p, Register x, Mask mask) { _mm256_maskstore_ps(p, mask, x); }
  FB_INLINE float sum(Register x) {
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
  }

  FB_INLINE Register load_as(const float* p) { return _mm256_loadu_ps(p); }
  FB_INLINE Register load_as(const Bf16* p) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  FB_INLINE Register load_as(const F16* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  // Half to even by adding just under a half, or a half where the last kept bit is odd; NaN would
  // overflow into infinity, so it is set apart.
  FB_INLINE __m256i rounded(Register x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i sum = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x00400000));
    const Register nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    const Register kept =
        _mm256_blendv_ps(_mm256_castsi256_ps(sum), _mm256_castsi256_ps(quiet), nan);
    return _mm256_srli_epi32(_mm256_castps_si256(kept), 16);
  }
  FB_INLINE void store_as(Bf16* p, Register x) {
    const __m256i upper = rounded(x);
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(p),
        _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1)));
  }
  // Vectors are packed within their halves.
  FB_INLINE void store_both_as(Bf16* p, Register low, Register high) {
    const __m256i halves = _mm256_packus_epi32(rounded(low), rounded(high));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(halves, 0xd8));
  }
  FB_INLINE void store_as(F16* p, Register x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }

  // Pairs of rows, then pairs of pairs, within halves; then the halves.
  FB_INLINE void transpose(Register (&x)[8]) {
    Register t[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 2) {
      t[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
      t[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 4) {
      x[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
      x[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
      x[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
      x[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 4; ++i) {
      t[i] = _mm256_permute2f128_ps(x[i], x[i + 4], 0x20);
      t[i + 4] = _mm256_permute2f128_ps(x[i], x[i + 4], 0x31);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) x[i] = t[i];
  }
};

struct Avx2F64 {
  using Element = double;
  using Register = __m256d;
  using Mask = __m256i;
  static constexpr int kLanes = 4;
  static constexpr int kBlockVectors = 2;
  static constexpr int kDepthSteps = 2;
  static constexpr int kUnitSteps = 4;
  static constexpr bool walks(int vectors) { return vectors == kBlockVectors; }
  static constexpr bool kDearMasks = true;
  static constexpr int kDotRows = 2;
  static constexpr double kFlopsPerNanosecond = 30;
  static constexpr int rows_of(int vectors) { return rows_beside(vectors); }

  FB_INLINE Register zero() { return _mm256_setzero_pd(); }
  FB_INLINE Register load(const double* p) { return _mm256_loadu_pd(p); }
  FB_INLINE Register load_as(const double* p) { return _mm256_loadu_pd(p); }
  FB_INLINE void store(double* p, Register x) { _mm256_storeu_pd(p, x); }
  FB_INLINE Register broadcast(double x) { return _mm256_set1_pd(x); }
  FB_INLINE Register add(Register a, Register b) { return _mm256_add_pd(a, b); }
  FB_INLINE Register fma(Register a, Register b, Register c) { return _mm256_fmadd_pd(a, b, c); }
  FB_INLINE void add_product(Register& sum, Register a, Register b) {
    __asm__("vfmadd231pd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
  }
  FB_INLINE Mask mask_of(int count) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
  }
  FB_INLINE Register load_some(const double* p, Mask mask) { return _mm256_maskload_pd(p, mask); }
  FB_INLINE void store_some(double* p, Register x, Mask mask) { _mm256_maskstore_pd(p, mask, x); }
  FB_INLINE double sum(Register x) {
    const __m128d half = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
    return _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
  }
  FB_INLINE void transpose(Register (&x)[4]);
};

#include "fullbore/device/cpu/gemm/gemm_unit.inc"

void Avx2F64::transpose(Register (&x)[4]) { transpose_through_memory<Avx2F64>(x); }

}  // namespace

const GemmUnit<float> kGemmAvx2F32 = make_gemm_unit<Avx2F32>();
const GemmUnit<double> kGemmAvx2F64 = make_gemm_unit<Avx2F64>();

}  // namespace fullbore::cpu
