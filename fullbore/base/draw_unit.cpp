#include "fullbore/base/draw_unit.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <numbers>

#include "fullbore/base/processor.h"

// GCC 12 takes its own _mm512_undefined_*() for a mistake of ours (GCC bug 105593).
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace fullbore {
namespace {

#define FB_UNROLL _Pragma("GCC unroll 16")

constexpr auto kSign = uint64_t{1} << 63;
constexpr auto kTwo52 = std::bit_cast<uint64_t>(0x1p52);
constexpr auto kTwo84 = std::bit_cast<uint64_t>(0x1p84);
constexpr auto kRootHalf = std::bit_cast<uint64_t>(1 / std::numbers::sqrt2);

// Coefficients of z^k, the last first. 2 atanh s / s in z = s^2: 2 / (2k + 1).
constexpr auto kTwiceAtanh = [] {
  std::array<double, 10> terms{};
  for (size_t k = 0; k < terms.size(); ++k)
    terms[terms.size() - 1 - k] = 2 / static_cast<double>(2 * k + 1);
  return terms;
}();
// sin(2 pi t) / t in z = t^2: (-1)^k (2 pi)^(2k+1) / (2k+1)!
constexpr auto kSineOfTurns = [] {
  constexpr double kTurn = 2 * std::numbers::pi;
  std::array<double, 12> terms{};
  double term = kTurn;
  for (size_t k = 0; k < terms.size(); ++k) {
    terms[terms.size() - 1 - k] = term;
    term *= -(kTurn * kTurn) / static_cast<double>((2 * k + 2) * (2 * k + 3));
  }
  return terms;
}();

namespace baseline {
#define FB_TARGET
#define FB_INLINE __attribute__((always_inline)) static inline
constexpr size_t kLanes = 2;
using Words __attribute__((vector_size(16))) = uint64_t;
using Reals __attribute__((vector_size(16))) = double;
#if defined(__x86_64__)
FB_INLINE Words product(Words a, Words b) {
  return reinterpret_cast<Words>(
      _mm_mul_epu32(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
}
FB_INLINE Reals root(Reals x) { return _mm_sqrt_pd(x); }
#else
FB_INLINE Words product(Words a, Words b) { return (a & 0xFFFFFFFFU) * (b & 0xFFFFFFFFU); }
FB_INLINE Reals root(Reals x) { return Reals{std::sqrt(x[0]), std::sqrt(x[1])}; }
#endif
#include "fullbore/base/draw_unit.inc"
#undef FB_TARGET
#undef FB_INLINE
}  // namespace baseline

#if defined(__x86_64__)
namespace avx2 {
#define FB_TARGET __attribute__((target("avx2")))
#define FB_INLINE FB_TARGET __attribute__((always_inline)) static inline
constexpr size_t kLanes = 4;
using Words __attribute__((vector_size(32))) = uint64_t;
using Reals __attribute__((vector_size(32))) = double;
FB_INLINE Words product(Words a, Words b) {
  return reinterpret_cast<Words>(
      _mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}
FB_INLINE Reals root(Reals x) { return _mm256_sqrt_pd(x); }
#include "fullbore/base/draw_unit.inc"
#undef FB_TARGET
#undef FB_INLINE
}  // namespace avx2

namespace avx512 {
#define FB_TARGET __attribute__((target("avx512f,avx512bw,avx512vl")))
#define FB_INLINE FB_TARGET __attribute__((always_inline)) static inline
constexpr size_t kLanes = 8;
using Words __attribute__((vector_size(64))) = uint64_t;
using Reals __attribute__((vector_size(64))) = double;
FB_INLINE Words product(Words a, Words b) {
  return reinterpret_cast<Words>(
      _mm512_mul_epu32(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}
FB_INLINE Reals root(Reals x) { return _mm512_sqrt_pd(x); }
#include "fullbore/base/draw_unit.inc"
#undef FB_TARGET
#undef FB_INLINE
}  // namespace avx512
#endif

}  // namespace

std::span<const DrawUnit> draw_units() {
  static constexpr DrawUnit kUnits[] = {
#if defined(__x86_64__)
    {vector_unit_name(VectorUnit::avx512), avx512::bits, avx512::compare, avx512::normals,
     avx512::floats},
    {vector_unit_name(VectorUnit::avx2), avx2::bits, avx2::compare, avx2::normals, avx2::floats},
#endif
    {vector_unit_name(VectorUnit::baseline), baseline::bits, baseline::compare, baseline::normals,
     baseline::floats},
  };
  // The best first, and those below it.
  return std::span(kUnits).last(static_cast<size_t>(this_processor().vector_unit) + 1);
}

}  // namespace fullbore
