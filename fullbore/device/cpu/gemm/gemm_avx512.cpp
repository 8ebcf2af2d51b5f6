#include <immintrin.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "fullbore/device/cpu/gemm/avx512_registers.h"
#include "fullbore/device/cpu/gemm/gemm_unit.h"
#include "fullbore/device/cpu/kernels/elements.h"

// GCC 12 takes its own _mm512_undefined_*() for a mistake of ours (GCC bug 105593).
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define FB_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))
#define FB_INLINE FB_TARGET __attribute__((always_inline)) static inline

namespace fullbore::cpu {
namespace {

struct Avx512F32 {
  using Element = float;
  using Register = __m512;
  using Mask = __mmask16;
  static constexpr int kLanes = 16;
  static constexpr int kBlockVectors = 4;
  static constexpr int kUnitSteps = 4;
  static constexpr bool walks(int vectors) { return vectors != 3; }  // 48 columns are rare
  static constexpr bool kPrefetchesAdjacent = true;
  static constexpr int kDotRows = 4;
  static constexpr double kFlopsPerNanosecond = 100;
  static constexpr int rows_of(int vectors) { return avx512_rows_beside(vectors); }

  FB_INLINE Register zero() { return _mm512_setzero_ps(); }
  FB_INLINE Register load(const float* p) { return _mm512_loadu_ps(p); }
  FB_INLINE void store(float* p, Register x) { _mm512_storeu_ps(p, x); }
  FB_INLINE Register broadcast(float x) { return _mm512_set1_ps(x); }
  FB_INLINE Register add(Register a, Register b) { return _mm512_add_ps(a, b); }
  FB_INLINE Register fma(Register a, Register b, Register c) { return _mm512_fmadd_ps(a, b, c); }
#ifndef FB_EMULATED  // where memory stands in for registers
  FB_INLINE void add_product(Register& sum, Register a, Register b) {
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  }
#endif
  FB_INLINE Mask mask_of(int count) { return static_cast<Mask>((1U << count) - 1); }
  FB_INLINE Register load_some(const float* p, Mask mask) { return _mm512_maskz_loadu_ps(mask, p); }
  FB_INLINE void store_some(float* p, Register x, Mask mask) { _mm512_mask_storeu_ps(p, mask, x); }
  FB_INLINE float sum(Register x) { return _mm512_reduce_add_ps(x); }

  FB_INLINE Register load_as(const float* p) { return _mm512_loadu_ps(p); }
  FB_INLINE Register load_as(const Bf16* p) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  FB_INLINE Register load_as(const F16* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  // Half to even by adding just under a half, or a half where the last kept bit is odd; NaN would
  // overflow into infinity, so it is set apart.
  FB_INLINE void store_as(Bf16* p, Register x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const Mask nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    const __m512i kept = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x00400000));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtepi32_epi16(_mm512_srli_epi32(kept, 16)));
  }
  FB_INLINE void store_as(F16* p, Register x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }

  FB_INLINE void transpose(Register (&x)[16]) { avx512_transpose(x); }
};

struct Avx512F64 {
  using Element = double;
  using Register = __m512d;
  using Mask = __mmask8;
  static constexpr int kLanes = 8;
  static constexpr int kBlockVectors = 4;
  static constexpr int kDotRows = 4;
  static constexpr double kFlopsPerNanosecond = 50;
  static constexpr int rows_of(int vectors) { return avx512_rows_beside(vectors); }

  FB_INLINE Register zero() { return _mm512_setzero_pd(); }
  FB_INLINE Register load(const double* p) { return _mm512_loadu_pd(p); }
  FB_INLINE Register load_as(const double* p) { return _mm512_loadu_pd(p); }
  FB_INLINE void store(double* p, Register x) { _mm512_storeu_pd(p, x); }
  FB_INLINE Register broadcast(double x) { return _mm512_set1_pd(x); }
  FB_INLINE Register add(Register a, Register b) { return _mm512_add_pd(a, b); }
  FB_INLINE Register fma(Register a, Register b, Register c) { return _mm512_fmadd_pd(a, b, c); }
  FB_INLINE Mask mask_of(int count) { return static_cast<Mask>((1U << count) - 1); }
  FB_INLINE Register load_some(const double* p, Mask mask) {
    return _mm512_maskz_loadu_pd(mask, p);
  }
  FB_INLINE void store_some(double* p, Register x, Mask mask) { _mm512_mask_storeu_pd(p, mask, x); }
  FB_INLINE double sum(Register x) { return _mm512_reduce_add_pd(x); }
  FB_INLINE void transpose(Register (&x)[8]);
};

#include "fullbore/device/cpu/gemm/gemm_unit.inc"

void Avx512F64::transpose(Register (&x)[8]) { transpose_through_memory<Avx512F64>(x); }

}  // namespace

const GemmUnit<float> kGemmAvx512F32 = make_gemm_unit<Avx512F32>();
const GemmUnit<double> kGemmAvx512F64 = make_gemm_unit<Avx512F64>();

}  // namespace fullbore::cpu
