// Stands before the compiler's <immintrin.h> where kernels of AVX-512, VNNI, AVX-VNNI and AMX are compiled for a processor
// that has AVX2 alone: what they call is computed here, lane by lane, as Intel's manual says (Intel 64 and IA-32 Software
// Developer's Manual, volume 2; Architecture Instruction Set Extensions for AMX). Their sources are compiled as they are.
//
// Of memory nothing is read or written that the instruction does not: a masked access touches its lanes alone.
#pragma once
#include_next <immintrin.h>

// Before the macro `target` at the end: std::function has a function of that name.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#define FB_EMULATED __attribute__((always_inline)) inline

namespace fullbore::emulated {

/// The lanes of a register, as T.
template <class T, class Register>
struct Lanes {
  static constexpr int kCount = sizeof(Register) / sizeof(T);
  T at[kCount];
  FB_EMULATED Lanes() = default;
  FB_EMULATED explicit Lanes(const Register& from) { std::memcpy(at, &from, sizeof at); }
  FB_EMULATED T& operator[](int i) { return at[i]; }
  FB_EMULATED T operator[](int i) const { return at[i]; }
  FB_EMULATED operator Register() const {  // NOLINT: that is what it is
    Register all;
    std::memcpy(&all, at, sizeof all);
    return all;
  }
};
using F32 = Lanes<float, __m512>;
using F64 = Lanes<double, __m512d>;
using U8 = Lanes<uint8_t, __m512i>;
using U16 = Lanes<uint16_t, __m512i>;
using I32 = Lanes<int32_t, __m512i>;
using U32 = Lanes<uint32_t, __m512i>;
using U64 = Lanes<uint64_t, __m512i>;

/// lane(i) for each lane.
template <class L, class Lane>
FB_EMULATED L each(Lane lane) {
  L result;
  for (int i = 0; i < L::kCount; ++i) result[i] = lane(i);
  return result;
}

/// All of memory, or the lanes of a mask, the others zero.
template <class L>
FB_EMULATED L load(const void* from) {
  L result;
  std::memcpy(result.at, from, sizeof result.at);
  return result;
}
template <class L>
FB_EMULATED L load(const void* from, uint64_t mask) {
  L result;
  const auto* bytes = static_cast<const char*>(from);
  for (int i = 0; i < L::kCount; ++i) {
    result[i] = 0;
    if (mask >> i & 1U) std::memcpy(&result[i], bytes + i * sizeof result[i], sizeof result[i]);
  }
  return result;
}
template <class L>
FB_EMULATED void store(void* to, const L& lanes, uint64_t mask) {
  auto* bytes = static_cast<char*>(to);
  for (int i = 0; i < L::kCount; ++i)
    if (mask >> i & 1U) std::memcpy(bytes + i * sizeof lanes[i], &lanes.at[i], sizeof lanes[i]);
}
template <class Register>
FB_EMULATED void store(void* to, const Register& all) {
  std::memcpy(to, &all, sizeof all);
}

/// The half that is named 0 or 1 of a register of 64 bytes.
template <class Half, class Register>
FB_EMULATED Half half(const Register& all, int which) {
  Half result;
  std::memcpy(&result, reinterpret_cast<const char*>(&all) + which * sizeof result, sizeof result);
  return result;
}
template <class Register, class Half>
FB_EMULATED Register both(const Half& low, const Half& high) {
  Register result;
  std::memcpy(&result, &low, sizeof low);
  std::memcpy(reinterpret_cast<char*>(&result) + sizeof low, &high, sizeof high);
  return result;
}

/// Of two registers halves, of 0 and 1.
template <class Half, class Register, class Do>
FB_EMULATED Register by_halves(const Register& a, const Register& b, Do act) {
  return both<Register>(act(half<Half>(a, 0), half<Half>(b, 0)),
                        act(half<Half>(a, 1), half<Half>(b, 1)));
}

using Bits __attribute__((vector_size(64))) = uint32_t;
using Narrow __attribute__((vector_size(32))) = uint16_t;

// Denormals become zeros, as the instructions of bf16 take and give them.
FB_EMULATED __m512 no_denormals(Bits bits) {
  const Bits tiny = reinterpret_cast<Bits>((bits & 0x7f800000U) == 0);
  return reinterpret_cast<__m512>(bits & ~(tiny & 0x7fffffffU));
}
// Half to even; NaN stays one.
FB_EMULATED Narrow to_bf16(__m512 x) {
  const Bits bits = reinterpret_cast<Bits>(no_denormals(reinterpret_cast<Bits>(x)));
  const Bits nan = reinterpret_cast<Bits>((bits & 0x7fffffffU) > 0x7f800000U);
  const Bits rounded = bits + 0x7fffU + (bits >> 16 & 1U);
  return __builtin_convertvector(((nan & (bits | 0x400000U)) | (~nan & rounded)) >> 16, Narrow);
}
FB_EMULATED __m512 multiply_add(__m512 a, __m512 b, __m512 c) {
  return both<__m512>(_mm256_fmadd_ps(half<__m256>(a, 0), half<__m256>(b, 0), half<__m256>(c, 0)),
                      _mm256_fmadd_ps(half<__m256>(a, 1), half<__m256>(b, 1), half<__m256>(c, 1)));
}
// Of the elements at odd places of VNNI pairs, or of those at even ones: one rounding.
template <bool odd>
FB_EMULATED __m512 dot_step(Bits a, Bits b, __m512 sums) {
  const auto one = [](Bits pairs) { return no_denormals(odd ? pairs & 0xffff0000U : pairs << 16); };
  return no_denormals(reinterpret_cast<Bits>(
      multiply_add(one(a), one(b), no_denormals(reinterpret_cast<Bits>(sums)))));
}

// VSCALEFPS: x * 2^floor(n). By 2^infinity and 2^-infinity a NaN becomes infinity and zero.
FB_EMULATED float scaled(float x, float n) {
  if (std::isnan(x) && std::isinf(n)) return n > 0 ? n : 0.0F;
  if (std::isinf(n) && (n > 0 ? x == 0 : std::isinf(x)))
    return std::numeric_limits<float>::quiet_NaN();
  if (std::isnan(x) || std::isnan(n)) return x + n;
  const float power = std::clamp(std::floor(n), -512.0F, 512.0F);
  return std::ldexp(x, static_cast<int>(power));
}

template <class L, class Sum>
FB_EMULATED auto reduce(L lanes, Sum sum) {
  for (int count = L::kCount / 2; count > 0; count /= 2)
    for (int i = 0; i < count; ++i) lanes[i] = sum(lanes[i], lanes[i + count]);
  return lanes[0];
}

template <class L, class... Values>
FB_EMULATED L from_last(Values... values) {
  L result;
  int i = L::kCount;
  ((result[--i] = static_cast<std::remove_reference_t<decltype(result[0])>>(values)), ...);
  return result;
}
template <class L, class... Values>
FB_EMULATED L from_first(Values... values) {
  L result;
  int i = 0;
  ((result[i++] = static_cast<std::remove_reference_t<decltype(result[0])>>(values)), ...);
  return result;
}

/// Bits of the lanes' signs, from the lower half on.
FB_EMULATED __mmask16 signs(__m256 low, __m256 high) {
  return static_cast<__mmask16>(static_cast<unsigned>(_mm256_movemask_ps(low)) |
                                static_cast<unsigned>(_mm256_movemask_ps(high)) << 8);
}

/// The eight tiles of a thread. Used without a shape, or behind their release, they end the program, as the processor does.
struct Tiles {
  struct Shape {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  } shape{};
  alignas(64) char bytes[8][16][64]{};

  void configure(const void* from) {
    std::memcpy(&shape, from, sizeof shape);
    if (shape.palette != 1) std::abort();
    for (int i = 0; i < 8; ++i)
      if (shape.rows[i] > 16 || shape.row_bytes[i] > 64) std::abort();
    std::memset(bytes, 0, sizeof bytes);
  }
  void release() { shape = {}; }
  void zero(int tile) {
    if (shape.rows[tile] == 0) std::abort();
    std::memset(bytes[tile], 0, sizeof bytes[tile]);
  }
  void load(int tile, const void* from, size_t stride) {
    zero(tile);
    for (int row = 0; row < shape.rows[tile]; ++row)
      std::memcpy(bytes[tile][row], static_cast<const char*>(from) + row * stride,
                  shape.row_bytes[tile]);
  }
  void store(int tile, void* to, size_t stride) const {
    if (shape.rows[tile] == 0) std::abort();
    for (int row = 0; row < shape.rows[tile]; ++row)
      std::memcpy(static_cast<char*>(to) + row * stride, bytes[tile][row], shape.row_bytes[tile]);
  }
  // TDPBF16PS: products of even and of odd depths are summed apart, and together at last.
  void multiply(int sums, int rows, int columns) {
    const int depth = shape.row_bytes[rows] / 4;
    if (shape.rows[sums] == 0 || shape.rows[rows] != shape.rows[sums] ||
        shape.rows[columns] != depth || shape.row_bytes[columns] != shape.row_bytes[sums])
      std::abort();
    for (int row = 0; row < shape.rows[sums]; ++row) {
      __m512 even{}, odd{}, before;
      for (int k = 0; k < depth; ++k) {
        uint32_t pair;
        std::memcpy(&pair, bytes[rows][row] + 4 * k, sizeof pair);
        Bits other;
        std::memcpy(&other, bytes[columns][k], sizeof other);
        even = dot_step<false>(Bits{} + pair, other, even);
        odd = dot_step<true>(Bits{} + pair, other, odd);
      }
      std::memcpy(&before, bytes[sums][row], sizeof before);
      const __m512 after = no_denormals(reinterpret_cast<Bits>(before)) +
                           no_denormals(reinterpret_cast<Bits>(even + odd));
      const __m512 kept = no_denormals(reinterpret_cast<Bits>(after));
      std::memcpy(bytes[sums][row], &kept, shape.row_bytes[sums]);
    }
  }
};
inline thread_local Tiles tiles;

namespace intrinsics {

FB_EMULATED __m512 setzero_ps() { return __m512{}; }
FB_EMULATED __m512d setzero_pd() { return __m512d{}; }
FB_EMULATED __m512i setzero_si512() { return __m512i{}; }
FB_EMULATED __m512 set1_ps(float x) { return x - __m512{}; }  // the sum would turn -0 into 0
FB_EMULATED __m512d set1_pd(double x) { return x - __m512d{}; }
FB_EMULATED __m512i set1_epi64(long long x) { return __m512i{} + x; }
FB_EMULATED __m512i set1_epi32(int x) {
  return reinterpret_cast<__m512i>(Bits{} + static_cast<uint32_t>(x));
}
FB_EMULATED __m512i set1_epi16(short x) {
  return each<U16>([&](int) { return static_cast<uint16_t>(x); });
}

FB_EMULATED __m512 castpd_ps(__m512d x) { return reinterpret_cast<__m512>(x); }
FB_EMULATED __m512d castps_pd(__m512 x) { return reinterpret_cast<__m512d>(x); }
FB_EMULATED __m512i castps_si512(__m512 x) { return reinterpret_cast<__m512i>(x); }
FB_EMULATED __m512 castsi512_ps(__m512i x) { return reinterpret_cast<__m512>(x); }
FB_EMULATED __m256i castsi512_si256(__m512i x) { return half<__m256i>(x, 0); }
FB_EMULATED __m256i extracti64x4_epi64(__m512i x, int which) { return half<__m256i>(x, which); }
FB_EMULATED float cvtss_f32(__m512 x) { return x[0]; }

FB_EMULATED __m512 loadu_ps(const void* p) { return load<F32>(p); }
FB_EMULATED __m512d loadu_pd(const void* p) { return load<F64>(p); }
FB_EMULATED __m512i loadu_si512(const void* p) { return load<U64>(p); }
FB_EMULATED __m512 maskz_loadu_ps(__mmask16 mask, const void* p) { return load<F32>(p, mask); }
FB_EMULATED __m512d maskz_loadu_pd(__mmask8 mask, const void* p) { return load<F64>(p, mask); }
FB_EMULATED __m512i maskz_loadu_epi8(__mmask64 mask, const void* p) { return load<U8>(p, mask); }
FB_EMULATED __m512i maskz_loadu_epi16(__mmask32 mask, const void* p) { return load<U16>(p, mask); }
FB_EMULATED __m512i maskz_loadu_epi32(__mmask16 mask, const void* p) { return load<U32>(p, mask); }
FB_EMULATED void storeu_ps(void* p, __m512 x) { store(p, x); }
FB_EMULATED void storeu_pd(void* p, __m512d x) { store(p, x); }
FB_EMULATED void storeu_si512(void* p, __m512i x) { store(p, x); }
FB_EMULATED void mask_storeu_ps(void* p, __mmask16 mask, __m512 x) { store(p, F32(x), mask); }
FB_EMULATED void mask_storeu_pd(void* p, __mmask8 mask, __m512d x) { store(p, F64(x), mask); }
FB_EMULATED void mask_storeu_epi16(void* p, __mmask32 mask, __m512i x) { store(p, U16(x), mask); }
FB_EMULATED void mask_storeu_epi32(void* p, __mmask16 mask, __m512i x) { store(p, U32(x), mask); }

FB_EMULATED __m512 add_ps(__m512 a, __m512 b) { return a + b; }
FB_EMULATED __m512 sub_ps(__m512 a, __m512 b) { return a - b; }
FB_EMULATED __m512 mul_ps(__m512 a, __m512 b) { return a * b; }
FB_EMULATED __m512 div_ps(__m512 a, __m512 b) { return a / b; }
FB_EMULATED __m512d add_pd(__m512d a, __m512d b) { return a + b; }
FB_EMULATED __m512 fmadd_ps(__m512 a, __m512 b, __m512 c) { return multiply_add(a, b, c); }
FB_EMULATED __m512d fmadd_pd(__m512d a, __m512d b, __m512d c) {
  return both<__m512d>(
      _mm256_fmadd_pd(half<__m256d>(a, 0), half<__m256d>(b, 0), half<__m256d>(c, 0)),
      _mm256_fmadd_pd(half<__m256d>(a, 1), half<__m256d>(b, 1), half<__m256d>(c, 1)));
}
FB_EMULATED __m512 min_ps(__m512 a, __m512 b) {
  return by_halves<__m256>(a, b, [](__m256 x, __m256 y) { return _mm256_min_ps(x, y); });
}
FB_EMULATED __m512 max_ps(__m512 a, __m512 b) {
  return by_halves<__m256>(a, b, [](__m256 x, __m256 y) { return _mm256_max_ps(x, y); });
}
FB_EMULATED __m512d sqrt_pd(__m512d x) {
  return both<__m512d>(_mm256_sqrt_pd(half<__m256d>(x, 0)), _mm256_sqrt_pd(half<__m256d>(x, 1)));
}
FB_EMULATED __m512 scalef_ps(__m512 x, __m512 n) {
  return each<F32>([&](int i) { return scaled(x[i], n[i]); });
}
FB_EMULATED __m512 maskz_scalef_ps(__mmask16 mask, __m512 x, __m512 n) {
  return each<F32>([&](int i) { return (mask >> i & 1) != 0 ? scaled(x[i], n[i]) : 0; });
}

FB_EMULATED __m512i add_epi64(__m512i a, __m512i b) {
  return each<U64>([&](int i) { return U64(a)[i] + U64(b)[i]; });
}
FB_EMULATED __m512i add_epi32(__m512i a, __m512i b) {
  return reinterpret_cast<__m512i>(reinterpret_cast<Bits>(a) + reinterpret_cast<Bits>(b));
}
FB_EMULATED __m512i sub_epi32(__m512i a, __m512i b) {
  return reinterpret_cast<__m512i>(reinterpret_cast<Bits>(a) - reinterpret_cast<Bits>(b));
}
FB_EMULATED __m512i add_epi16(__m512i a, __m512i b) {
  return each<U16>([&](int i) { return static_cast<uint16_t>(U16(a)[i] + U16(b)[i]); });
}
FB_EMULATED __m512i mul_epu32(__m512i a, __m512i b) {
  return each<U64>([&](int i) { return (U64(a)[i] & 0xffffffffU) * (U64(b)[i] & 0xffffffffU); });
}
FB_EMULATED __m512i max_epi32(__m512i a, __m512i b) {
  return each<I32>([&](int i) { return std::max(I32(a)[i], I32(b)[i]); });
}
FB_EMULATED __m512i and_si512(__m512i a, __m512i b) { return a & b; }
FB_EMULATED __m512i xor_si512(__m512i a, __m512i b) { return a ^ b; }
FB_EMULATED __m512i mask_or_epi32(__m512i without, __mmask16 mask, __m512i a, __m512i b) {
  return each<U32>([&](int i) { return mask >> i & 1U ? U32(a)[i] | U32(b)[i] : U32(without)[i]; });
}
FB_EMULATED __m512i slli_epi32(__m512i x, unsigned count) {
  return each<U32>([&](int i) { return count > 31 ? 0 : U32(x)[i] << count; });
}
FB_EMULATED __m512i srli_epi32(__m512i x, unsigned count) {
  return each<U32>([&](int i) { return count > 31 ? 0 : U32(x)[i] >> count; });
}
FB_EMULATED __m512i srai_epi32(__m512i x, unsigned count) {
  return each<I32>([&](int i) { return I32(x)[i] >> std::min(count, 31U); });
}
FB_EMULATED __m512i srli_epi64(__m512i x, unsigned count) {
  return each<U64>([&](int i) { return count > 63 ? 0 : U64(x)[i] >> count; });
}
FB_EMULATED __m512i srl_epi64(__m512i x, __m128i count) {
  const auto bits = static_cast<uint64_t>(_mm_cvtsi128_si64(count));
  return each<U64>([&](int i) { return bits > 63 ? 0 : U64(x)[i] >> bits; });
}

FB_EMULATED __mmask8 cmpge_epu64_mask(__m512i a, __m512i b) {
  unsigned mask = 0;
  for (int i = 0; i < U64::kCount; ++i) mask |= static_cast<unsigned>(U64(a)[i] >= U64(b)[i]) << i;
  return static_cast<__mmask8>(mask);
}
FB_EMULATED __m512 mask_blend_ps(__mmask16 mask, __m512 a, __m512 b) {
  return each<F32>([&](int i) { return mask >> i & 1U ? b[i] : a[i]; });
}
FB_EMULATED __m512 maskz_mov_ps(__mmask16 mask, __m512 x) {
  return each<F32>([&](int i) { return mask >> i & 1U ? x[i] : 0.0F; });
}

FB_EMULATED __m512 unpacklo_ps(__m512 a, __m512 b) {
  return by_halves<__m256>(a, b, [](__m256 x, __m256 y) { return _mm256_unpacklo_ps(x, y); });
}
FB_EMULATED __m512 unpackhi_ps(__m512 a, __m512 b) {
  return by_halves<__m256>(a, b, [](__m256 x, __m256 y) { return _mm256_unpackhi_ps(x, y); });
}
FB_EMULATED __m512d unpacklo_pd(__m512d a, __m512d b) {
  return by_halves<__m256d>(a, b, [](__m256d x, __m256d y) { return _mm256_unpacklo_pd(x, y); });
}
FB_EMULATED __m512d unpackhi_pd(__m512d a, __m512d b) {
  return by_halves<__m256d>(a, b, [](__m256d x, __m256d y) { return _mm256_unpackhi_pd(x, y); });
}
// Within each quarter two lanes of a, then two of b.
FB_EMULATED __m512 shuffle_ps(__m512 a, __m512 b, unsigned order) {
  return each<F32>([&](int i) {
    return (i % 4 < 2 ? a : b)[i / 4 * 4 + static_cast<int>(order >> i % 4 * 2 & 3U)];
  });
}
// Two quarters of a, then two of b.
FB_EMULATED __m512 shuffle_f32x4(__m512 a, __m512 b, unsigned order) {
  return each<F32>([&](int i) {
    return (i < 8 ? a : b)[static_cast<int>(order >> i / 4 * 2 & 3U) * 4 + i % 4];
  });
}
FB_EMULATED __m512 permutex2var_ps(__m512 a, __m512i index, __m512 b) {
  return each<F32>([&](int i) {
    const unsigned from = U32(index)[i];
    return (from & 16U ? b : a)[static_cast<int>(from & 15U)];
  });
}
FB_EMULATED __m512i permutex2var_epi16(__m512i a, __m512i index, __m512i b) {
  return each<U16>([&](int i) {
    const unsigned from = U16(index)[i];
    return U16(from & 32U ? b : a)[static_cast<int>(from & 31U)];
  });
}
FB_EMULATED __m512i unpacklo_epi16(__m512i a, __m512i b) {
  return by_halves<__m256i>(a, b, [](__m256i x, __m256i y) { return _mm256_unpacklo_epi16(x, y); });
}
FB_EMULATED __m512i unpackhi_epi16(__m512i a, __m512i b) {
  return by_halves<__m256i>(a, b, [](__m256i x, __m256i y) { return _mm256_unpackhi_epi16(x, y); });
}
FB_EMULATED __m512i permutexvar_epi64(__m512i index, __m512i x) {
  return each<U64>([&](int i) { return U64(x)[static_cast<int>(U64(index)[i] % 8)]; });
}
FB_EMULATED __m512i permutexvar_epi16(__m512i index, __m512i x) {
  return each<U16>([&](int i) { return U16(x)[static_cast<int>(U16(index)[i] & 31U)]; });
}

FB_EMULATED __m512i cvtepu16_epi32(__m256i x) {
  const Lanes<uint16_t, __m256i> words(x);
  return each<U32>([&](int i) { return words[i]; });
}
FB_EMULATED __m256i cvtepi32_epi16(__m512i x) {
  return each<Lanes<uint16_t, __m256i>>([&](int i) { return static_cast<uint16_t>(U32(x)[i]); });
}
FB_EMULATED __m128i cvtepi32_epi8(__m512i x) {
  return each<Lanes<uint8_t, __m128i>>([&](int i) { return static_cast<uint8_t>(U32(x)[i]); });
}
FB_EMULATED __m512 cvtepi32_ps(__m512i x) {
  return each<F32>([&](int i) { return static_cast<float>(I32(x)[i]); });
}
FB_EMULATED __m512i cvtps_epi32(__m512 x) {
  return both<__m512i>(_mm256_cvtps_epi32(half<__m256>(x, 0)),
                       _mm256_cvtps_epi32(half<__m256>(x, 1)));
}
FB_EMULATED __m512 cvtph_ps(__m256i x) {
  return both<__m512>(_mm256_cvtph_ps(_mm256_castsi256_si128(x)),
                      _mm256_cvtph_ps(_mm256_extracti128_si256(x, 1)));
}
FB_EMULATED __m256i cvtps_ph(__m512 x, int) {  // to the nearest, as all ask for it
  return both<__m256i>(
      _mm256_cvtps_ph(half<__m256>(x, 0), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
      _mm256_cvtps_ph(half<__m256>(x, 1), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
FB_EMULATED __m256bh cvtneps_pbh(__m512 x) { return reinterpret_cast<__m256bh>(to_bf16(x)); }
FB_EMULATED __m512bh cvtne2ps_pbh(__m512 high, __m512 low) {
  return both<__m512bh>(to_bf16(low), to_bf16(high));
}

FB_EMULATED __m512 dpbf16_ps(__m512 sums, __m512bh a, __m512bh b) {
  const Bits x = reinterpret_cast<Bits>(a), y = reinterpret_cast<Bits>(b);
  return dot_step<false>(x, y, dot_step<true>(x, y, sums));
}
FB_EMULATED __m512i dpbusd_epi32(__m512i sums, __m512i unsigned_bytes, __m512i signed_bytes) {
  const U8 x(unsigned_bytes);
  const Lanes<int8_t, __m512i> y(signed_bytes);
  return each<U32>([&](int i) {
    int32_t sum = 0;
    for (int k = 4 * i; k < 4 * i + 4; ++k) sum += x[k] * y[k];
    return U32(sums)[i] + static_cast<uint32_t>(sum);
  });
}

FB_EMULATED float reduce_add_ps(__m512 x) {
  return reduce(F32(x), [](float a, float b) { return a + b; });
}
FB_EMULATED double reduce_add_pd(__m512d x) {
  return reduce(F64(x), [](double a, double b) { return a + b; });
}
FB_EMULATED int reduce_add_epi32(__m512i x) {
  return static_cast<int>(reduce(U32(x), [](uint32_t a, uint32_t b) { return a + b; }));
}
// No instruction: GCC's order, which decides what becomes of a NaN, for the second operand stays where one is.
FB_EMULATED float reduce_max_ps(__m512 x) {
  F32 lanes(x);
  for (int count = 8; count > 0; count /= 2)
    for (int i = 0; i < count; ++i) {
      const float low = lanes[i], high = lanes[i + count];
      lanes[i] = count >= 4 ? (high > low ? high : low) : (low > high ? low : high);
    }
  return lanes[0];
}
FB_EMULATED int reduce_max_epi32(__m512i x) {
  return reduce(I32(x), [](int a, int b) { return std::max(a, b); });
}

}  // namespace intrinsics

FB_EMULATED __mmask16 testn_epi8(__m128i a, __m128i b) {
  return static_cast<__mmask16>(
      _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_and_si128(a, b), _mm_setzero_si128())));
}
FB_EMULATED __m256 maskz_mov_ps_256(__mmask8 mask, __m256 x) {
  Lanes<float, __m256> lanes(x);
  for (int i = 0; i < 8; ++i)
    if ((mask >> i & 1U) == 0) lanes[i] = 0;
  return lanes;
}
FB_EMULATED void mask_storeu_epi16_256(void* p, __mmask16 mask, __m256i x) {
  store(p, Lanes<uint16_t, __m256i>(x), mask);
}
FB_EMULATED __m256i dpbusd_256(__m256i sums, __m256i unsigned_bytes, __m256i signed_bytes) {
  const __m512i all = intrinsics::dpbusd_epi32(both<__m512i>(sums, __m256i{}),
                                               both<__m512i>(unsigned_bytes, __m256i{}),
                                               both<__m512i>(signed_bytes, __m256i{}));
  return half<__m256i>(all, 0);
}

}  // namespace fullbore::emulated

// Under the names of the instructions.
#define _mm512_add_epi16 ::fullbore::emulated::intrinsics::add_epi16
#define _mm512_add_epi32 ::fullbore::emulated::intrinsics::add_epi32
#define _mm512_add_epi64 ::fullbore::emulated::intrinsics::add_epi64
#define _mm512_add_pd ::fullbore::emulated::intrinsics::add_pd
#define _mm512_add_ps ::fullbore::emulated::intrinsics::add_ps
#define _mm512_and_si512 ::fullbore::emulated::intrinsics::and_si512
#define _mm512_castpd_ps ::fullbore::emulated::intrinsics::castpd_ps
#define _mm512_castps_pd ::fullbore::emulated::intrinsics::castps_pd
#define _mm512_castps_si512 ::fullbore::emulated::intrinsics::castps_si512
#define _mm512_castsi512_ps ::fullbore::emulated::intrinsics::castsi512_ps
#define _mm512_castsi512_si256 ::fullbore::emulated::intrinsics::castsi512_si256
#define _mm512_cmpge_epu64_mask ::fullbore::emulated::intrinsics::cmpge_epu64_mask
#define _mm512_cvtepi32_epi16 ::fullbore::emulated::intrinsics::cvtepi32_epi16
#define _mm512_cvtepi32_epi8 ::fullbore::emulated::intrinsics::cvtepi32_epi8
#define _mm512_cvtepi32_ps ::fullbore::emulated::intrinsics::cvtepi32_ps
#define _mm512_cvtepu16_epi32 ::fullbore::emulated::intrinsics::cvtepu16_epi32
#define _mm512_cvtne2ps_pbh ::fullbore::emulated::intrinsics::cvtne2ps_pbh
#define _mm512_cvtneps_pbh ::fullbore::emulated::intrinsics::cvtneps_pbh
#define _mm512_cvtph_ps ::fullbore::emulated::intrinsics::cvtph_ps
#define _mm512_cvtps_epi32 ::fullbore::emulated::intrinsics::cvtps_epi32
#define _mm512_cvtps_ph ::fullbore::emulated::intrinsics::cvtps_ph
#define _mm512_cvtss_f32 ::fullbore::emulated::intrinsics::cvtss_f32
#define _mm512_div_ps ::fullbore::emulated::intrinsics::div_ps
#define _mm512_dpbf16_ps ::fullbore::emulated::intrinsics::dpbf16_ps
#define _mm512_dpbusd_epi32 ::fullbore::emulated::intrinsics::dpbusd_epi32
#define _mm512_extracti64x4_epi64 ::fullbore::emulated::intrinsics::extracti64x4_epi64
#define _mm512_fmadd_pd ::fullbore::emulated::intrinsics::fmadd_pd
#define _mm512_fmadd_ps ::fullbore::emulated::intrinsics::fmadd_ps
#define _mm512_loadu_pd ::fullbore::emulated::intrinsics::loadu_pd
#define _mm512_loadu_ps ::fullbore::emulated::intrinsics::loadu_ps
#define _mm512_loadu_si512 ::fullbore::emulated::intrinsics::loadu_si512
#define _mm512_mask_blend_ps ::fullbore::emulated::intrinsics::mask_blend_ps
#define _mm512_mask_or_epi32 ::fullbore::emulated::intrinsics::mask_or_epi32
#define _mm512_mask_storeu_epi16 ::fullbore::emulated::intrinsics::mask_storeu_epi16
#define _mm512_mask_storeu_epi32 ::fullbore::emulated::intrinsics::mask_storeu_epi32
#define _mm512_mask_storeu_pd ::fullbore::emulated::intrinsics::mask_storeu_pd
#define _mm512_mask_storeu_ps ::fullbore::emulated::intrinsics::mask_storeu_ps
#define _mm512_maskz_loadu_epi16 ::fullbore::emulated::intrinsics::maskz_loadu_epi16
#define _mm512_maskz_loadu_epi32 ::fullbore::emulated::intrinsics::maskz_loadu_epi32
#define _mm512_maskz_loadu_epi8 ::fullbore::emulated::intrinsics::maskz_loadu_epi8
#define _mm512_maskz_loadu_pd ::fullbore::emulated::intrinsics::maskz_loadu_pd
#define _mm512_maskz_loadu_ps ::fullbore::emulated::intrinsics::maskz_loadu_ps
#define _mm512_maskz_mov_ps ::fullbore::emulated::intrinsics::maskz_mov_ps
#define _mm512_maskz_scalef_ps ::fullbore::emulated::intrinsics::maskz_scalef_ps
#define _mm512_max_epi32 ::fullbore::emulated::intrinsics::max_epi32
#define _mm512_max_ps ::fullbore::emulated::intrinsics::max_ps
#define _mm512_min_ps ::fullbore::emulated::intrinsics::min_ps
#define _mm512_mul_epu32 ::fullbore::emulated::intrinsics::mul_epu32
#define _mm512_mul_ps ::fullbore::emulated::intrinsics::mul_ps
#define _mm512_permutex2var_epi16 ::fullbore::emulated::intrinsics::permutex2var_epi16
#define _mm512_permutex2var_ps ::fullbore::emulated::intrinsics::permutex2var_ps
#define _mm512_permutexvar_epi16 ::fullbore::emulated::intrinsics::permutexvar_epi16
#define _mm512_permutexvar_epi64 ::fullbore::emulated::intrinsics::permutexvar_epi64
#define _mm512_reduce_add_epi32 ::fullbore::emulated::intrinsics::reduce_add_epi32
#define _mm512_reduce_add_pd ::fullbore::emulated::intrinsics::reduce_add_pd
#define _mm512_reduce_add_ps ::fullbore::emulated::intrinsics::reduce_add_ps
#define _mm512_reduce_max_epi32 ::fullbore::emulated::intrinsics::reduce_max_epi32
#define _mm512_reduce_max_ps ::fullbore::emulated::intrinsics::reduce_max_ps
#define _mm512_scalef_ps ::fullbore::emulated::intrinsics::scalef_ps
#define _mm512_set1_epi16 ::fullbore::emulated::intrinsics::set1_epi16
#define _mm512_set1_epi32 ::fullbore::emulated::intrinsics::set1_epi32
#define _mm512_set1_epi64 ::fullbore::emulated::intrinsics::set1_epi64
#define _mm512_set1_pd ::fullbore::emulated::intrinsics::set1_pd
#define _mm512_set1_ps ::fullbore::emulated::intrinsics::set1_ps
#define _mm512_setzero_pd ::fullbore::emulated::intrinsics::setzero_pd
#define _mm512_setzero_ps ::fullbore::emulated::intrinsics::setzero_ps
#define _mm512_setzero_si512 ::fullbore::emulated::intrinsics::setzero_si512
#define _mm512_shuffle_f32x4 ::fullbore::emulated::intrinsics::shuffle_f32x4
#define _mm512_shuffle_ps ::fullbore::emulated::intrinsics::shuffle_ps
#define _mm512_slli_epi32 ::fullbore::emulated::intrinsics::slli_epi32
#define _mm512_sqrt_pd ::fullbore::emulated::intrinsics::sqrt_pd
#define _mm512_srai_epi32 ::fullbore::emulated::intrinsics::srai_epi32
#define _mm512_srl_epi64 ::fullbore::emulated::intrinsics::srl_epi64
#define _mm512_srli_epi32 ::fullbore::emulated::intrinsics::srli_epi32
#define _mm512_srli_epi64 ::fullbore::emulated::intrinsics::srli_epi64
#define _mm512_storeu_pd ::fullbore::emulated::intrinsics::storeu_pd
#define _mm512_storeu_ps ::fullbore::emulated::intrinsics::storeu_ps
#define _mm512_storeu_si512 ::fullbore::emulated::intrinsics::storeu_si512
#define _mm512_sub_epi32 ::fullbore::emulated::intrinsics::sub_epi32
#define _mm512_sub_ps ::fullbore::emulated::intrinsics::sub_ps
#define _mm512_unpackhi_pd ::fullbore::emulated::intrinsics::unpackhi_pd
#define _mm512_unpackhi_ps ::fullbore::emulated::intrinsics::unpackhi_ps
#define _mm512_unpacklo_pd ::fullbore::emulated::intrinsics::unpacklo_pd
#define _mm512_unpackhi_epi16 ::fullbore::emulated::intrinsics::unpackhi_epi16
#define _mm512_unpacklo_epi16 ::fullbore::emulated::intrinsics::unpacklo_epi16
#define _mm512_unpacklo_ps ::fullbore::emulated::intrinsics::unpacklo_ps
#define _mm512_xor_si512 ::fullbore::emulated::intrinsics::xor_si512
#undef _mm512_setr_epi32
#undef _mm512_setr_epi64
#define _mm512_set_epi16 ::fullbore::emulated::from_last<::fullbore::emulated::U16>
#define _mm512_setr_epi32 ::fullbore::emulated::from_first<::fullbore::emulated::U32>
#define _mm512_setr_epi64 ::fullbore::emulated::from_first<::fullbore::emulated::U64>
// The kind of comparison is a constant of the instruction, and none where it is an argument.
#undef _mm512_cmp_ps_mask
#define _mm512_cmp_ps_mask(a, b, kind)                                                       \
  ::fullbore::emulated::signs(_mm256_cmp_ps(::fullbore::emulated::half<__m256>(a, 0),        \
                                            ::fullbore::emulated::half<__m256>(b, 0), kind), \
                              _mm256_cmp_ps(::fullbore::emulated::half<__m256>(a, 1),        \
                                            ::fullbore::emulated::half<__m256>(b, 1), kind))
#define _mm_testn_epi8_mask ::fullbore::emulated::testn_epi8
#define _mm256_maskz_mov_ps ::fullbore::emulated::maskz_mov_ps_256
#define _mm256_mask_storeu_epi16 ::fullbore::emulated::mask_storeu_epi16_256
#define _mm256_dpbusd_avx_epi32 ::fullbore::emulated::dpbusd_256
#undef _tile_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbf16ps
#define _tile_loadconfig(from) ::fullbore::emulated::tiles.configure(from)
#define _tile_release() ::fullbore::emulated::tiles.release()
#define _tile_zero(tile) ::fullbore::emulated::tiles.zero(tile)
#define _tile_loadd(tile, from, stride) ::fullbore::emulated::tiles.load(tile, from, stride)
#define _tile_stored(tile, to, stride) ::fullbore::emulated::tiles.store(tile, to, stride)
#define _tile_dpbf16ps(sums, rows, columns) \
  ::fullbore::emulated::tiles.multiply(sums, rows, columns)

// Of all functions that ask for more: GCC makes no instruction of its own that this processor lacks.
#define target(...) target("avx2,fma,f16c")
