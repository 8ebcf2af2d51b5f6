#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <type_traits>

#include "fullbore/base/dtype.h"
#include "fullbore/base/processor.h"
#include "fullbore/device/cpu/gemm/prefetcher.h"

namespace fullbore::cpu {

/// Two elements that are neighbours in depth, as the dot products of AVX512_BF16 read them; a zero for
/// what an odd depth lacks. Aligned as one element: a VNNI pair may begin at any.
struct VnniPair {
  uint16_t earlier, later;
};
/// What sums of multiplied operands are kept in.
template <class P>
using SumOf = std::conditional_t<std::is_same_v<P, VnniPair>, float, P>;
/// Elements of depth in one operand.
template <class P>
constexpr int64_t kDepthOf = std::is_same_v<P, VnniPair> ? 2 : 1;

/// c[rows, columns] = or += a[rows, depth] * b[depth, columns], by strides in elements of type P. At
/// most one block of columns wide.
template <class P>
struct GemmTile {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  const P* a = nullptr;
  int64_t a_row = 0;
  int64_t a_depth = 1;
  const P* b = nullptr;
  int64_t b_depth = 0;  ///< columns are contiguous
  SumOf<P>* c = nullptr;
  int64_t c_row = 0;
  bool accumulate = false;
  /// c += too, but each sum goes on from where it is, rather than being added to it when it is complete: one chain of
  /// fused multiply-adds along depth, in whatever passes it is made. Not with `accumulate`.
  bool goes_on = false;
  Prefetcher* prefetcher = nullptr;  ///< what is asked for meanwhile, or null
  /// Of VNNI pairs: where the sums go instead of c, rounded to bf16, or null.
  uint16_t* rounded = nullptr;
  int64_t rounded_row = 0;
};

/// Where a stretch of depth lies, in elements of type P from those that a PartedTile names.
struct DepthPart {
  int64_t a = 0;
  int64_t b = 0;
};

/// As a GemmTile, with a depth of `parts` stretches and columns of whole vectors that lie apart: element [r, v * lanes + l]
/// of c is the sum over parts and d < depth of a[r * a_row + part.a + d * a_depth] *
/// b[part.b + d * b_depth + columns[v] + l], one chain of multiply-adds.
template <class P>
struct PartedTile {
  static constexpr int kMostVectors = 4;
  int64_t rows = 0;
  int vectors = 0;  ///< at most the unit's block_columns / lanes
  std::span<const DepthPart> parts;
  int64_t depth = 0;  ///< of each part
  const P* a = nullptr;
  int64_t a_row = 0;
  int64_t a_depth = 1;
  const P* b = nullptr;
  int64_t b_depth = 0;
  std::array<int64_t, kMostVectors> columns{};
  SumOf<P>* c = nullptr;
  int64_t c_row = 0;
  bool goes_on = false;
};

/// c[rows, columns] = sums of a[rows, depth] * b[columns, depth]: both contiguous in depth.
template <class T>
struct DotTile {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  const T* a = nullptr;
  int64_t a_row = 0;
  const void* b = nullptr;  ///< of b_dtype
  DType b_dtype = DType::f32;
  int64_t b_column = 0;
  T* c = nullptr;
  int64_t c_row = 0;
};

/// A matrix of any floating dtype to be copied.
struct SourceMatrix {
  const void* data = nullptr;
  DType dtype = DType::f32;
  int64_t stride = 0;  ///< elements between rows
  int64_t rows = 0;
  int64_t columns = 0;
};

/// The inner loops of matmuls for one vector unit; P is float or double, in which operands
/// are multiplied and summed, or VnniPair, whose sums are float. Register tiles after Goto and
/// van de Geijn 2008 ("Anatomy of High-Performance Matrix Multiplication"): a is broadcast, b is read
/// in vectors, c stays in registers over all of `depth`.
template <class P>
struct GemmUnit {
  int lanes = 1;                    ///< elements of a vector
  int block_columns = 1;            ///< columns of the widest tile: a few vectors
  double flops_per_nanosecond = 1;  ///< roughly, of one core
  void (*multiply)(const GemmTile<P>& tile) = nullptr;
  void (*multiply_parts)(const PartedTile<P>& tile) = nullptr;
  void (*dot)(const DotTile<SumOf<P>>& tile) = nullptr;  ///< null for VNNI pairs
  /// to[r * stride + d] = from[r, d], widened to P or as VNNI pairs along d (bf16 or, rounded, f32).
  void (*copy_rows)(const SourceMatrix& from, P* to, int64_t stride) = nullptr;
  /// to[d * stride + c] = from[d, c], widened to P or as VNNI pairs along d.
  void (*copy)(const SourceMatrix& from, P* to, int64_t stride) = nullptr;
  /// to[d * stride + r] = from[r, d], widened to P or as VNNI pairs along d.
  void (*copy_transposed)(const SourceMatrix& from, P* to, int64_t stride) = nullptr;
  /// to[r * to_stride + c] = from[r * from_stride + c], rounded to `dtype`.
  void (*round)(const SumOf<P>* from, int64_t from_stride, void* to, int64_t to_stride, DType dtype,
                int64_t rows, int64_t columns) = nullptr;
};

/// A tile of as many columns as one likes, by blocks of them.
template <class P>
void multiply_columns(const GemmUnit<P>& unit, GemmTile<P> tile) {
  const int64_t columns = tile.columns;
  for (int64_t column = 0; column < columns; column += unit.block_columns) {
    tile.columns = std::min<int64_t>(unit.block_columns, columns - column);
    unit.multiply(tile);
    tile.b += unit.block_columns;
    tile.c += unit.block_columns;
  }
}

/// The unit's loops, or null if this processor lacks it.
template <class T>
const GemmUnit<T>* gemm_unit(VectorUnit unit);
template <>
const GemmUnit<float>* gemm_unit(VectorUnit unit);
template <>
const GemmUnit<double>* gemm_unit(VectorUnit unit);

/// Of VNNI pairs, for any unit: there is one.
template <>
const GemmUnit<VnniPair>* gemm_unit(VectorUnit unit);

/// The vector loops of a kernel that makes matmuls of its own.
struct MatmulUnits {
  VectorUnit vector_unit = VectorUnit::baseline;
  bool avx512_bf16 = false;  ///< of VNNI pairs, where operands are bf16 and rows of even width
  bool amx_bf16 = false;     ///< of those by tiles, where extents are whole steps of them

  static MatmulUnits of_this_processor();
  /// Are matmuls of such operands made of VNNI pairs?
  bool vnni(DType operands) const {
    return avx512_bf16 && vector_unit == VectorUnit::avx512 && operands == DType::bf16;
  }
};

extern const GemmUnit<VnniPair> kGemmAvx512Bf16;
extern const GemmUnit<float> kGemmAvx512F32;
extern const GemmUnit<double> kGemmAvx512F64;
extern const GemmUnit<float> kGemmAvx2F32;
extern const GemmUnit<double> kGemmAvx2F64;
extern const GemmUnit<float> kGemmBaselineF32;
extern const GemmUnit<double> kGemmBaselineF64;

}  // namespace fullbore::cpu
