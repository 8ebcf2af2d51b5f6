#pragma once
#include "fullbore/device/cpu/gemm/amx_pairs.h"
#include "fullbore/device/cpu/gemm/gemm_unit.h"
#include "fullbore/device/cpu/kernels/elements.h"
#include "fullbore/device/cpu/kernels/scratch.h"
#include "fullbore/device/cpu/recurrence/row_unit.h"

namespace fullbore::cpu {

inline SourceMatrix matrix_of(Rows from, int64_t row_count, int64_t columns) {
  return {from.data, DType::f32, from.stride, row_count, columns};
}

/// A matrix as one operand of a matmul: numbers or, along depth, VNNI pairs of them. A line is a row of the
/// left operand or a column of the right one, whose columns lie beside one another.
template <class P>
struct GemmOperand {
  const P* data = nullptr;
  int64_t line = 0;   ///< elements of P between lines
  int64_t depth = 0;  ///< and from one element of depth, or VNNI pair of them, to the next

  GemmOperand from_line(int64_t first) const { return {data + first * line, line, depth}; }
  /// Of VNNI pairs: from an even one.
  GemmOperand from_depth(int64_t first) const {
    return {data + first / kDepthOf<P> * depth, line, depth};
  }
};

/// Memory for any operand of so many rows and columns.
template <class P>
struct OperandRoom {
  P* data = nullptr;

  OperandRoom() = default;
  OperandRoom(Scratch& scratch, int64_t row_count, int64_t columns)
      : data(scratch.take<P>(round_up(row_count, 2 * kRowStep) * round_up(columns, 2 * kRowStep) /
                             kDepthOf<P>)) {}
};

/// How matrices become operands. P is float, or VnniPair: then numbers are rounded to bf16, and their
/// products are summed in f32.
template <class P>
class GemmOperands {
 public:
  static constexpr bool kVnni = std::is_same_v<P, VnniPair>;

  explicit GemmOperands(const MatmulUnits& units)
      : unit_(*gemm_unit<P>(units.vector_unit)),
        words_(*gemm_unit<float>(units.vector_unit)),
        uses_amx_(kVnni && units.amx_bf16) {}

  /// Then an AmxTiles must live where anything is multiplied.
  bool uses_amx() const { return uses_amx_; }

  /// m[line, depth], where it lies if it can be
  GemmOperand<P> by_rows(const SourceMatrix& m, OperandRoom<P> room) const {
    if (m.dtype == (kVnni ? DType::bf16 : DType::f32) && m.columns % kDepthOf<P> == 0)
      return {static_cast<const P*>(m.data), m.stride / kDepthOf<P>, 1};
    const int64_t stride = round_up(divide_up(m.columns, kDepthOf<P>), kRowStep);
    unit_.copy_rows(m, room.data, stride);
    return {room.data, stride, 1};
  }
  /// m[depth, line], where it lies if it can be
  GemmOperand<P> by_columns(const SourceMatrix& m, OperandRoom<P> room) const {
    if constexpr (!kVnni)
      if (m.dtype == DType::f32) return {static_cast<const P*>(m.data), 1, m.stride};
    const int64_t stride = round_up(m.columns, kRowStep);
    unit_.copy(m, room.data, stride);
    return {room.data, 1, stride};
  }
  /// m[line, depth], with lines beside one another
  GemmOperand<P> transposed(const SourceMatrix& m, OperandRoom<P> room) const {
    const int64_t stride = round_up(m.rows, kRowStep);
    unit_.copy_transposed(m, room.data, stride);
    return {room.data, 1, stride};
  }

  /// c = or += a b
  void multiply(int64_t row_count, int64_t columns, int64_t depth, GemmOperand<P> a,
                GemmOperand<P> b, MutableRows c, bool accumulate) const {
    if (row_count == 0) return;
    const GemmTile<P> tile{.rows = row_count,
                           .columns = columns,
                           .depth = divide_up(depth, kDepthOf<P>),
                           .a = a.data,
                           .a_row = a.line,
                           .a_depth = a.depth,
                           .b = b.data,
                           .b_depth = b.depth,
                           .c = c.data,
                           .c_row = c.stride,
                           .accumulate = accumulate};
    if constexpr (kVnni)
      if (uses_amx_) return multiply_pairs_by_tiles(unit_, words_, tile);
    multiply_columns(unit_, tile);
  }

 private:
  const GemmUnit<P>& unit_;
  const GemmUnit<float>& words_;
  bool uses_amx_;
};

}  // namespace fullbore::cpu
