#pragma once
#include "fullbore/device/cpu/gemm/panel_unit.h"
#include "fullbore/device/cpu/kernels/elements.h"
#include "fullbore/device/cpu/kernels/scratch.h"
#include "fullbore/device/cpu/recurrence/row_unit.h"

namespace fullbore::cpu {

inline SourceMatrix matrix_of(Rows from, int64_t row_count, int64_t columns) {
  return {from.data, DType::f32, from.stride, row_count, columns};
}

/// A matrix as one factor of a product: numbers or, along depth, pairs of them. A line is a row of the
/// left factor or a column of the right one, whose columns lie beside one another.
template <class P>
struct Factor {
  const P* data = nullptr;
  int64_t line = 0;   ///< elements of P between lines
  int64_t depth = 0;  ///< and from one element of depth, or pair of them, to the next

  Factor from_line(int64_t first) const { return {data + first * line, line, depth}; }
  /// Of pairs: from an even one.
  Factor from_depth(int64_t first) const {
    return {data + first / kDepthOf<P> * depth, line, depth};
  }
};

/// Memory for any factor of so many rows and columns.
template <class P>
struct FactorRoom {
  P* data = nullptr;

  FactorRoom() = default;
  FactorRoom(Scratch& scratch, int64_t row_count, int64_t columns)
      : data(scratch.take<P>(round_up(row_count, 2 * kRowStep) * round_up(columns, 2 * kRowStep) /
                             kDepthOf<P>)) {}
};

/// How matrices become factors. P is float, or Bf16Pair: then numbers are rounded to bf16, and their
/// products summed in f32.
template <class P>
class Factors {
 public:
  static constexpr bool kPairs = std::is_same_v<P, Bf16Pair>;

  explicit Factors(VectorUnit unit) : products_(*panel_unit<P>(unit)) {}

  /// m[line, depth], where it lies if it can be
  Factor<P> by_rows(const SourceMatrix& m, FactorRoom<P> room) const {
    if (m.dtype == (kPairs ? DType::bf16 : DType::f32) && m.columns % kDepthOf<P> == 0)
      return {static_cast<const P*>(m.data), m.stride / kDepthOf<P>, 1};
    const int64_t stride = round_up(divide_up(m.columns, kDepthOf<P>), kRowStep);
    products_.copy_rows(m, room.data, stride);
    return {room.data, stride, 1};
  }
  /// m[depth, line], where it lies if it can be
  Factor<P> by_columns(const SourceMatrix& m, FactorRoom<P> room) const {
    if constexpr (!kPairs)
      if (m.dtype == DType::f32) return {static_cast<const P*>(m.data), 1, m.stride};
    const int64_t stride = round_up(m.columns, kRowStep);
    products_.copy(m, room.data, stride);
    return {room.data, 1, stride};
  }
  /// m[line, depth], with lines beside one another
  Factor<P> transposed(const SourceMatrix& m, FactorRoom<P> room) const {
    const int64_t stride = round_up(m.rows, kRowStep);
    products_.copy_transposed(m, room.data, stride);
    return {room.data, 1, stride};
  }

  /// c = or += a b
  void multiply(int64_t row_count, int64_t columns, int64_t depth, Factor<P> a, Factor<P> b,
                MutableRows c, bool accumulate) const {
    if (row_count == 0) return;
    PanelTile<P> tile{.rows = row_count,
                      .depth = divide_up(depth, kDepthOf<P>),
                      .a = a.data,
                      .a_row = a.line,
                      .a_depth = a.depth,
                      .b = b.data,
                      .b_depth = b.depth,
                      .c = c.data,
                      .c_row = c.stride,
                      .accumulate = accumulate};
    for (int64_t column = 0; column < columns; column += products_.panel) {
      tile.columns = std::min<int64_t>(products_.panel, columns - column);
      products_.multiply(tile);
      tile.b += products_.panel;
      tile.c += products_.panel;
    }
  }

 private:
  const PanelUnit<P>& products_;
};

}  // namespace fullbore::cpu
