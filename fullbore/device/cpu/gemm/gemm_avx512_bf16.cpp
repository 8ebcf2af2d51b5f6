#include <immintrin.h>

#include <algorithm>
#include <cstring>
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

#define FB_TARGET \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c")))
#define FB_INLINE FB_TARGET __attribute__((always_inline)) static inline

namespace fullbore::cpu {
namespace {

/// VNNI pairs are multiplied and the two results added to f32 sums by one instruction, which takes
/// denormals for zeros.
struct Avx512Bf16 {
  using Element = float;
  using Register = __m512;
  using Mask = __mmask16;
  using Operand = VnniPair;
  using OperandRegister = __m512i;
  static constexpr int kLanes = 16;
  static constexpr int kBlockVectors = 4;
  static constexpr double kFlopsPerNanosecond = 200;
  static constexpr int rows_of(int vectors) { return avx512_rows_beside(vectors); }

  FB_INLINE Register zero() { return _mm512_setzero_ps(); }
  FB_INLINE Register load(const float* p) { return _mm512_loadu_ps(p); }
  FB_INLINE void store(float* p, Register x) { _mm512_storeu_ps(p, x); }
  FB_INLINE Register add(Register a, Register b) { return _mm512_add_ps(a, b); }
  FB_INLINE Mask mask_of(int count) { return static_cast<Mask>((1U << count) - 1); }
  FB_INLINE Register load_some(const float* p, Mask mask) { return _mm512_maskz_loadu_ps(mask, p); }
  FB_INLINE void store_some(float* p, Register x, Mask mask) { _mm512_mask_storeu_ps(p, mask, x); }
  FB_INLINE Register load_as(const float* p) { return _mm512_loadu_ps(p); }
  // Half to even, by the processor; NaN stays NaN.
  FB_INLINE void store_as(Bf16* p, Register x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), (__m256i)_mm512_cvtneps_pbh(x));
  }
  // Of one vector's lanes, or all of two.
  FB_INLINE void store_rounded(uint16_t* p, Register x, Mask mask) {
    _mm256_mask_storeu_epi16(p, mask, (__m256i)_mm512_cvtneps_pbh(x));
  }
  FB_INLINE void store_rounded(uint16_t* p, Register low, Register high) {
    _mm512_storeu_si512(p, (__m512i)_mm512_cvtne2ps_pbh(high, low));
  }

  FB_INLINE OperandRegister load_operand(const VnniPair* p) { return _mm512_loadu_si512(p); }
  FB_INLINE OperandRegister load_some_operands(const VnniPair* p, Mask mask) {
    return _mm512_maskz_loadu_epi32(mask, p);
  }
  FB_INLINE OperandRegister broadcast_operand(const VnniPair* p) {
    int bits;  // rows may lie at odd elements
    std::memcpy(&bits, p, sizeof bits);
    return _mm512_set1_epi32(bits);
  }
  FB_INLINE Register fma(OperandRegister a, OperandRegister b, Register c) {
    return _mm512_dpbf16_ps(c, (__m512bh)a, (__m512bh)b);
  }
};

#include "fullbore/device/cpu/gemm/gemm_unit.inc"

FB_INLINE __mmask16 mask16(int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xffff : count > 0 ? (1U << count) - 1 : 0);
}
FB_INLINE __mmask32 mask32(int64_t count) {
  return count >= 32 ? ~__mmask32{0} : (__mmask32{1} << count) - 1;
}

// Sources of VNNI pairs: bf16 as it lies, or f32 that is rounded half to even.
template <class Source>
const Source* row_of(const SourceMatrix& from, int64_t row) {
  return static_cast<const Source*>(from.data) + row * from.stride;
}
FB_INLINE __m512i load_some(const uint16_t* p, int64_t count) {
  return _mm512_maskz_loadu_epi16(mask32(count), p);
}
FB_INLINE __m512i load_some(const float* p, int64_t count) {
  return (__m512i)_mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps(mask16(count - 16), p + 16),
                                      _mm512_maskz_loadu_ps(mask16(count), p));
}

FB_INLINE __m512i load_whole(const uint16_t* p) { return _mm512_loadu_si512(p); }
FB_INLINE __m512i load_whole(const float* p) {
  return (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(p + 16), _mm512_loadu_ps(p));
}

// Every line of a row to come, for rows are too far apart for the processor to see it coming.
FB_INLINE void prefetch_row(const uint16_t* row, int64_t columns) {
  constexpr int64_t kLineElements = 32;
  for (int64_t column = 0; column < columns; column += kLineElements)
    __builtin_prefetch(row + column);
}
// Only kernels make VNNI pairs of f32: what they have just made, or asked for themselves.
FB_INLINE void prefetch_row(const float*, int64_t) {}

template <class Source>
FB_TARGET void copy_vnni_rows(const SourceMatrix& from, VnniPair* to, int64_t stride) {
  for (int64_t row = 0; row < from.rows; ++row) {
    const auto* source = row_of<Source>(from, row);
    auto* target = reinterpret_cast<uint16_t*>(to + row * stride);
    const int64_t padded = (from.columns + 1) / 2 * 2;
    prefetch_row(source + kPrefetchRows * from.stride, from.columns);
    int64_t column = 0;
    for (; column + 32 <= from.columns; column += 32)
      _mm512_storeu_si512(target + column, load_whole(source + column));
    for (; column < padded; column += 32)
      _mm512_mask_storeu_epi16(target + column, mask32(padded - column),
                               load_some(source + column, from.columns - column));
  }
}

// Rows are copied pair by pair of them, some columns at a time: what lies beyond the second cache is asked for
// many rows before.
constexpr int64_t kPrefetchCopiedRows = 64;

// Columns of bf16 or, rounded, of f32, of two rows element by element beside each other. Without masks where
// a whole vector is there; masks of 16 bits take three times as long as those of 32, which do where columns
// are even.
template <bool whole>
FB_INLINE __m512i load_columns(const uint16_t* p, int64_t count) {
  if (whole) return _mm512_loadu_si512(p);
  return count % 2 == 0 ? _mm512_maskz_loadu_epi32(mask16(count / 2), p)
                        : _mm512_maskz_loadu_epi16(mask32(count), p);
}
template <bool whole>
FB_INLINE void store_vnni(VnniPair* to, __m512i pairs, int64_t count) {
  if (whole)
    _mm512_storeu_si512(to, pairs);
  else
    _mm512_mask_storeu_epi32(to, mask16(count), pairs);
}
template <bool whole>
FB_INLINE void interleave_columns(const uint16_t* first, const uint16_t* second, int64_t count,
                                  VnniPair* to) {
  const __m512i even = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40,
                                        8, 39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i odd = _mm512_add_epi16(even, _mm512_set1_epi16(16));
  const __m512i low = load_columns<whole>(first, count);
  const __m512i high = second ? load_columns<whole>(second, count) : _mm512_setzero_si512();
  store_vnni<whole>(to, _mm512_permutex2var_epi16(low, even, high), count);
  if (whole || count > 16)
    store_vnni<whole>(to + 16, _mm512_permutex2var_epi16(low, odd, high), count - 16);
}
template <bool whole>
FB_INLINE void interleave_columns(const float* first, const float* second, int64_t count,
                                  VnniPair* to) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __mmask16 mask = mask16(count);
  const auto load = [&](const float* p) FB_TARGET {
    return whole ? _mm512_loadu_ps(p) : _mm512_maskz_loadu_ps(mask, p);
  };
  const __m512 high = second ? load(second) : _mm512_setzero_ps();
  store_vnni<whole>(
      to, _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(high, load(first))), count);
}

// Of all rows, a line of each: of bf16 32 columns, of f32 16.
template <bool whole, class Source>
FB_TARGET void copy_columns(const SourceMatrix& from, int64_t column, int64_t count, VnniPair* to,
                            int64_t stride) {
  const auto* first = static_cast<const Source*>(from.data) + column;
  to += column;
  int64_t depth = 0;
  for (; depth + 1 < from.rows; depth += 2) {
    const Source* second = first + from.stride;
    prefetch_row(first + kPrefetchCopiedRows * from.stride, count);
    prefetch_row(second + kPrefetchCopiedRows * from.stride, count);
    interleave_columns<whole>(first, second, count, to);
    first = second + from.stride;
    to += stride;
  }
  if (depth < from.rows)
    interleave_columns<whole>(first, static_cast<const Source*>(nullptr), count, to);
}

template <class Source>
FB_TARGET void copy_vnni_depths(const SourceMatrix& from, VnniPair* to, int64_t stride) {
  constexpr auto kColumns = static_cast<int64_t>(64 / sizeof(Source));
  int64_t column = 0;
  for (; column + kColumns <= from.columns; column += kColumns)
    copy_columns<true, Source>(from, column, kColumns, to, stride);
  if (column < from.columns)
    copy_columns<false, Source>(from, column, from.columns - column, to, stride);
}

template <class Source>
FB_TARGET void copy_vnni_transposed(const SourceMatrix& from, VnniPair* to, int64_t stride) {
  for (int64_t row = 0; row < from.rows; row += 16)
    for (int64_t depth = 0; depth < from.columns; depth += 32) {
      const int64_t rows = std::min<int64_t>(16, from.rows - row);
      __m512 block[16];
      for (int r = 0; r < 16; ++r) prefetch_row(row_of<Source>(from, row + 16 + r) + depth, 32);
      const bool whole = rows == 16 && depth + 32 <= from.columns;
      for (int r = 0; r < 16; ++r) {
        const Source* source = row_of<Source>(from, row + r) + depth;
        block[r] = whole      ? _mm512_castsi512_ps(load_whole(source))
                   : r < rows ? _mm512_castsi512_ps(load_some(source, from.columns - depth))
                              : _mm512_setzero_ps();
      }
      avx512_transpose(block);
      const __mmask16 mask = mask16(rows);
      const int64_t pairs = std::min<int64_t>(16, (from.columns - depth + 1) / 2);
      for (int64_t d = 0; d < pairs; ++d)
        _mm512_mask_storeu_ps(to + (depth / 2 + d) * stride + row, mask, block[d]);
    }
}

using Copy = void (*)(const SourceMatrix& from, VnniPair* to, int64_t stride);
template <Copy bf16, Copy f32>
void by_dtype(const SourceMatrix& from, VnniPair* to, int64_t stride) {
  (from.dtype == DType::f32 ? f32 : bf16)(from, to, stride);
}

void round_to_bf16(const float* from, int64_t from_stride, void* to, int64_t to_stride, DType dtype,
                   int64_t rows, int64_t columns) {
  FB_CHECK(dtype == DType::bf16, "sums of bf16 rounded to {}", dtype_name(dtype));
  round_rows<Avx512Bf16, Bf16>(from, from_stride, to, to_stride, rows, columns);
}

}  // namespace

const GemmUnit<VnniPair> kGemmAvx512Bf16 = {
    .lanes = Avx512Bf16::kLanes,
    .block_columns = Avx512Bf16::kLanes * Avx512Bf16::kBlockVectors,
    .flops_per_nanosecond = Avx512Bf16::kFlopsPerNanosecond,
    .multiply = multiply<Avx512Bf16>,
    .multiply_parts = multiply_parts<Avx512Bf16>,
    .copy_rows = by_dtype<copy_vnni_rows<uint16_t>, copy_vnni_rows<float>>,
    .copy = by_dtype<copy_vnni_depths<uint16_t>, copy_vnni_depths<float>>,
    .copy_transposed = by_dtype<copy_vnni_transposed<uint16_t>, copy_vnni_transposed<float>>,
    .round = round_to_bf16,
};

}  // namespace fullbore::cpu
