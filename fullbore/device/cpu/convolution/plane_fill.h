#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "fullbore/device/cpu/convolution/planes.h"
#include "fullbore/device/cpu/gemm/gemm_unit.h"
#include "fullbore/device/cpu/kernels/elements.h"

namespace fullbore::cpu {

/// Operands behind the last plane, which blocks of columns may read.
inline constexpr int64_t kBeyondPlanes = 128;

/// What fill_planes() goes by.
template <class P>
struct PlaneFill {
  const ConvGeometry& geometry;  ///< of three axes
  const Planes& planes;
  const GemmUnit<P>& loops;
  DType dtype;  ///< of x
};

/// A few elements, so many at a time: a call of the library's copy would take longer than they do.
template <int64_t kStep, class T>
void copy_in_steps(const T* from, int64_t count, T* to) {
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) std::copy_n(from + i, kStep, to + i);
  for (; i < count; ++i) to[i] = from[i];
}

/// Four elements of every second one from `from` on, widened; one more is read.
template <class P, class T>
void copy_four_apart(const T* from, P* to) {
  if constexpr (std::is_same_v<P, float> && std::is_same_v<T, float>) {
    using Four __attribute__((vector_size(16))) = float;
    Four low, high;
    std::memcpy(&low, from, sizeof low);
    std::memcpy(&high, from + 4, sizeof high);
    low = __builtin_shufflevector(low, high, 0, 2, 4, 6);
    std::memcpy(to, &low, sizeof low);
  } else if constexpr (std::is_same_v<P, float> && std::is_same_v<T, Bf16>) {
    using Four __attribute__((vector_size(16))) = uint32_t;
    Four pairs;  // the earlier of each two elements is the lower half
    std::memcpy(&pairs, from, sizeof pairs);
    pairs <<= 16;
    std::memcpy(to, &pairs, sizeof pairs);
  } else {
    for (int64_t i = 0; i < 4; ++i) to[i] = load(from[2 * i]);
  }
}

/// Elements that lie `apart` in a channel's row, side by side; of VNNI pairs those of the next channel too, which lies
/// `channel` on.
template <class P, class T>
void copy_apart(const T* from, int64_t apart, int64_t channel, int64_t count, P* to) {
  int64_t i = 0;
  if constexpr (!std::is_same_v<P, VnniPair>)
    if (apart == 2)
      for (; i + 4 < count; i += 4) copy_four_apart(from + 2 * i, to + i);
  for (; i < count; ++i)
    if constexpr (std::is_same_v<P, VnniPair>)
      to[i] = {from[i * apart].bits, from[channel + i * apart].bits};
    else
      to[i] = load(from[i * apart]);
}

/// A row of every channel's planes: `count` inputs from `from` on.
template <class P, class T>
void fill_plane_row(const PlaneFill<P>& fill, const T* from, int64_t count, P* to) {
  const ConvGeometry& g = fill.geometry;
  const int64_t channel = g.input_elements(), stride = g.axes[2].stride;
  if (stride == 1)
    return fill.loops.copy({from, fill.dtype, channel, g.group_inputs(), count}, to,
                           fill.planes.elements());
  for (int64_t c = 0; c < g.group_inputs(); c += kDepthOf<P>) {
    copy_apart(from, stride, channel, count, to);
    from += kDepthOf<P> * channel;
    to += fill.planes.elements();
  }
}

/// Rows of a plane of every channel: `rows` of `count` inputs from `from` on. Channel by channel, for each lies in pages of
/// its own; of VNNI pairs, which two channels make, row by row.
template <class P, class T>
void fill_plane(const PlaneFill<P>& fill, const T* from, int64_t rows, int64_t count, P* to) {
  const ConvGeometry& g = fill.geometry;
  const int64_t apart = g.axes[1].stride * g.axes[2].input;
  if (std::is_same_v<P, VnniPair> || g.axes[2].stride > 1) {
    for (int64_t r = 0; r < rows; ++r)
      fill_plane_row(fill, from + r * apart, count, to + r * fill.planes.width());
    return;
  }
  for (int64_t c = 0; c < g.group_inputs(); ++c)
    fill.loops.copy({from + c * g.input_elements(), fill.dtype, apart, rows, count},
                    to + c * fill.planes.elements(), fill.planes.width());
}

/// The planes of a block of outputs at place `slice` of the first axis: x [C/G,*S] of one image and group, to [C/G, planes,
/// rows, width] and kBeyondPlanes more. `has_zeros`: it is filled with another image of the same block and place, whose zeros
/// are this one's.
template <class P, class T>
void fill_planes(const PlaneFill<P>& fill, const T* x, int64_t slice, const PlaneBlock& block,
                 bool has_zeros, P* to) {
  const ConvGeometry& g = fill.geometry;
  const Planes& planes = fill.planes;
  const Planes::Rows first_rows = planes.rows_of(block), first_columns = planes.columns();
  // Most planes lack something: an edge of padding, or what another remainder has one more of.
  if (!has_zeros && first_rows.count * first_columns.count < planes.elements())
    std::fill_n(to, g.group_inputs() / kDepthOf<P> * planes.elements() + kBeyondPlanes, P{});
  for (int64_t k = 0; k < g.axes[0].kernel; ++k) {
    const int64_t read = g.axes[0].read(slice, k);
    for (const int64_t down : planes.row_remainders())
      for (const int64_t across : planes.column_remainders()) {
        const Planes::Rows rows = planes.rows_of(block, down), columns = planes.columns(across);
        if (read >= 0 && columns.count > 0 && rows.count > 0)
          fill_plane<P, T>(
              fill, x + (read * g.axes[1].input + rows.input) * g.axes[2].input + columns.input,
              rows.count, columns.count, to + rows.row * planes.width() + columns.row);
        to += planes.plane_elements();
      }
  }
}

}  // namespace fullbore::cpu
