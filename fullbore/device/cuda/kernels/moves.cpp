// Kernels that move elements by index. Rows are read and written once: bound by memory.
#include "fullbore/device/cuda/kernels/elements.h"

namespace {

/// Bytes that `addresses`, or-ed together, and all rows allow to move at once.
FB_DEVICE int unit_of(unsigned long addresses) {
  return addresses % 16 == 0  ? 16
         : addresses % 8 == 0 ? 8
         : addresses % 4 == 0 ? 4
         : addresses % 2 == 0 ? 2
                              : 1;
}

template <class Unit>
FB_DEVICE void copy_units(char* to, const char* from, long bytes, long first, long step) {
  auto* const y = reinterpret_cast<Unit*>(to);
  const auto* const x = reinterpret_cast<const Unit*>(from);
  const long units = bytes / static_cast<long>(sizeof(Unit));
  for (long i = first; i < units; i += step) y[i] = x != nullptr ? x[i] : Unit{};
}
/// Bytes of a row, by threads that are `step` and take each step-th unit from `first` on; zeros where `from` is null.
FB_DEVICE void copy_bytes(char* to, const char* from, long bytes, int unit, long first, long step) {
  switch (unit) {
    case 16: return copy_units<Vector4>(to, from, bytes, first, step);
    case 8: return copy_units<unsigned long>(to, from, bytes, first, step);
    case 4: return copy_units<unsigned>(to, from, bytes, first, step);
    case 2: return copy_units<unsigned short>(to, from, bytes, first, step);
    default: return copy_units<unsigned char>(to, from, bytes, first, step);
  }
}

FB_DEVICE unsigned long bits_of(const void* pointer) {
  return reinterpret_cast<unsigned long>(pointer);
}

/// The row that a thread works on, and how many rows the grid takes at once: x threads share a row, y rows share a block.
FB_DEVICE long first_row() { return static_cast<long>(block_x()) * threads_y() + thread_y(); }
FB_DEVICE long row_step() { return static_cast<long>(blocks_x()) * threads_y(); }

}  // namespace

// y [count, row] = x [rows, row] by indices [count]; zeros for an index out of range.
FB_KERNEL void gather(const char* x, const void* indices, char* y, long rows, long row_bytes,
                      long count, int kind) {
  const int unit = unit_of(bits_of(x) | bits_of(y) | static_cast<unsigned long>(row_bytes));
  for (long i = first_row(); i < count; i += row_step()) {
    const long row = index_at(indices, i, kind);
    const bool inside = row >= 0 && row < rows;
    copy_bytes(y + i * row_bytes, inside ? x + row * row_bytes : nullptr, row_bytes, unit, thread(),
               threads());
  }
}

// y [rows, row] = x [from, row] by indices [rows]: gather_sum of one index a row. `count` and `inverse_count`: null, or
// how many rows are made, and how many of x there are.
FB_KERNEL void compact(const char* x, const int* indices, const long* count,
                       const long* inverse_count, char* y, long rows, long from, long row_bytes) {
  const long made = count != nullptr ? least(most(*count, 0L), rows) : rows;
  const long there = inverse_count != nullptr ? least(most(*inverse_count, 0L), from) : from;
  const int unit = unit_of(bits_of(x) | bits_of(y) | static_cast<unsigned long>(row_bytes));
  for (long i = first_row(); i < made; i += row_step()) {
    const long row = indices[i];
    const bool inside = row >= 0 && row < there;
    copy_bytes(y + i * row_bytes, inside ? x + row * row_bytes : nullptr, row_bytes, unit, thread(),
               threads());
  }
}

// y = x, whole. Where both are the same bytes there is nothing to do.
FB_KERNEL void copy(const char* x, char* y, long bytes) {
  if (x == y) return;
  const int unit = unit_of(bits_of(x) | bits_of(y) | static_cast<unsigned long>(bytes));
  copy_bytes(y, x, bytes, unit, static_cast<long>(block_x()) * threads() + thread(),
             static_cast<long>(blocks_x()) * threads());
}

// y [rows, row]: row indices[i] becomes updates[i]. A block an update; one that a later update is for the same row
// leaves it to that one, so that the last counts.
FB_KERNEL void update_rows(const char* updates, const void* indices, char* y, long rows,
                           long row_bytes, long count, int kind) {
  FB_SHARED static unsigned later_of_warp[kWarp];
  const long i = block_x();
  const long row = index_at(indices, i, kind);
  if (row < 0 || row >= rows) return;
  bool is_later = false;
  for (long j = i + 1 + thread(); j < count; j += threads())
    is_later |= index_at(indices, j, kind) == row;
  const unsigned later = ballot(is_later);
  if (thread() % kWarp == 0) later_of_warp[thread() / kWarp] = later;
  barrier();
  for (int warp = 0; warp < threads() / kWarp; ++warp)
    if (later_of_warp[warp] != 0) return;
  const int unit = unit_of(bits_of(updates) | bits_of(y) | static_cast<unsigned long>(row_bytes));
  copy_bytes(y + row * row_bytes, updates + i * row_bytes, row_bytes, unit, thread(), threads());
}

namespace {

// y[o, i, n] = x[o, indices[o, i, n], n], of which x has `from` elements along the axis and y `extent`.
template <class T>
FB_DEVICE void take_along_axis(const T* x, const void* indices, T* y, long outer, long from,
                               long extent, long inner, int kind) {
  for (long row = first_row(); row < outer * extent; row += row_step()) {
    const T* const source = x + row / extent * from * inner;
    for (long n = thread(); n < inner; n += threads()) {
      const long index = index_at(indices, row * inner + n, kind);
      y[row * inner + n] = index >= 0 && index < from ? source[index * inner + n] : T{0};
    }
  }
}

}  // namespace

#define FB_TAKE(T, SUFFIX)                                                                   \
  FB_KERNEL void take_along_axis_##SUFFIX(const T* x, const void* indices, T* y, long outer, \
                                          long from, long extent, long inner, int kind) {    \
    take_along_axis(x, indices, y, outer, from, extent, inner, kind);                        \
  }
FB_TAKE(unsigned char, 1)
FB_TAKE(unsigned short, 2)
FB_TAKE(unsigned, 4)
FB_TAKE(unsigned long, 8)
