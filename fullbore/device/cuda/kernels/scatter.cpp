// Sums and maxima by index. Each element of the result belongs to one thread, which meets its terms in their order: no
// atomics, and equal runs have equal bits.
#include "fullbore/device/cuda/kernels/elements.h"

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr int kSums = 4096;  ///< elements of the result that a block makes

/// Which of the indices that a tile holds are of the block's rows, in their order.
struct Matches {
  int count_of_warp[kWarps];
  int update[kThreads];  ///< within the tile
  int row[kThreads];     ///< within the block
};

// y [rows, width]: sums of rows of updates [count, width] by indices [count]. A block makes a tile of `tile_rows` rows by
// `tile_columns` columns: it reads all indices, lists those of its rows, and adds what they name. The element e of the
// tile belongs to thread e mod 256.
template <class T>
FB_DEVICE void scatter_add(const T* updates, const void* indices, T* y, long rows, long width,
                           long count, int kind, int tile_rows, int tile_columns) {
  FB_SHARED static Sum<T> sums[kSums];
  FB_SHARED static Matches matches;
  const long row0 = static_cast<long>(block_x()) * tile_rows;
  const long column0 = static_cast<long>(block_y()) * tile_columns;
  const int columns = static_cast<int>(least<long>(tile_columns, width - column0));
  const int warp = thread() / kWarp, lane = thread() % kWarp;
  for (int e = thread(); e < tile_rows * tile_columns; e += kThreads) sums[e] = 0;
  for (long tile = 0; tile < count; tile += kThreads) {
    const long mine = tile + thread();
    const long row = mine < count ? index_at(indices, mine, kind) : -1;
    const bool here = row >= row0 && row < least(row0 + tile_rows, rows);
    const unsigned votes = ballot(here);
    if (lane == 0) matches.count_of_warp[warp] = __builtin_popcount(votes);
    barrier();
    int before = __builtin_popcount(votes & ((1U << lane) - 1)), found = 0;
    for (int w = 0; w < kWarps; ++w) {
      if (w < warp) before += matches.count_of_warp[w];
      found += matches.count_of_warp[w];
    }
    if (here) {
      matches.update[before] = thread();
      matches.row[before] = static_cast<int>(row - row0);
    }
    barrier();
    for (int i = 0; i < found; ++i) {
      const int first = matches.row[i] * tile_columns;
      const T* const update = updates + (tile + matches.update[i]) * width + column0;
      for (int c = (thread() - first) & (kThreads - 1); c < columns; c += kThreads)
        sums[first + c] += load(update[c]);
    }
  }
  for (int e = thread(); e < tile_rows * tile_columns; e += kThreads) {
    const long row = row0 + e / tile_columns;
    const int column = e % tile_columns;
    if (row < rows && column < columns) store(&y[row * width + column0 + column], sums[e]);
  }
}

/// Of what works along an axis: an element (o, r, n) of the result a thread, as in moves.cpp.
FB_DEVICE long first_row() { return static_cast<long>(block_x()) * threads_y() + thread_y(); }
FB_DEVICE long row_step() { return static_cast<long>(blocks_x()) * threads_y(); }

// y[o, r, n] = sum of updates[o, i, n] whose indices[o, i, n] is r; `count` of them along the axis.
template <class T>
FB_DEVICE void scatter_along_axis(const T* updates, const void* indices, T* y, long outer,
                                  long extent, long count, long inner, int kind) {
  for (long row = first_row(); row < outer * extent; row += row_step()) {
    const long o = row / extent, r = row - o * extent;
    for (long n = thread(); n < inner; n += threads()) {
      Sum<T> sum = 0;
      for (long i = 0; i < count; ++i) {
        const long at = (o * count + i) * inner + n;
        if (index_at(indices, at, kind) == r) sum += load(updates[at]);
      }
      store(&y[row * inner + n], sum);
    }
  }
}

template <class T>
FB_DEVICE bool is_nan(T x) {
  return !(x == x);
}

// y[o, r, n] = the largest of x[o, r, n] and updates[o, i, n] whose indices[o, i, n] is r. NaN is the largest.
template <class T>
FB_DEVICE void scatter_max(const T* x, const T* updates, const void* indices, T* y, long outer,
                           long extent, long count, long inner, int kind) {
  for (long row = first_row(); row < outer * extent; row += row_step()) {
    const long o = row / extent, r = row - o * extent;
    for (long n = thread(); n < inner; n += threads()) {
      T largest = x[row * inner + n];
      for (long i = 0; i < count; ++i) {
        const long at = (o * count + i) * inner + n;
        if (index_at(indices, at, kind) != r) continue;
        const auto a = ordered(updates[at]), b = ordered(largest);
        if (!is_nan(b) && !(a <= b)) largest = updates[at];
      }
      y[row * inner + n] = largest;
    }
  }
}

// y [rows, width] = sums of rows of x [from, width] by indices [rows, terms], in the order of the indices.
template <class T>
FB_DEVICE void gather_sum(const T* x, const int* indices, const long* count,
                          const long* inverse_count, T* y, long rows, long from, long terms,
                          long width) {
  const long made = count != nullptr ? least(most(*count, 0L), rows) : rows;
  const long there = inverse_count != nullptr ? least(most(*inverse_count, 0L), from) : from;
  for (long row = first_row(); row < made; row += row_step())
    for (long n = thread(); n < width; n += threads()) {
      Sum<T> sum = 0;
      for (long i = 0; i < terms; ++i) {
        const long source = indices[row * terms + i];
        if (source >= 0 && source < there) sum += load(x[source * width + n]);
      }
      store(&y[row * width + n], sum);
    }
}

}  // namespace

#define FB_SCATTER(T, SUFFIX)                                                                      \
  FB_KERNEL void scatter_add_##SUFFIX(const T* updates, const void* indices, T* y, long rows,      \
                                      long width, long count, int kind, int tile_rows,             \
                                      int tile_columns) {                                          \
    scatter_add(updates, indices, y, rows, width, count, kind, tile_rows, tile_columns);           \
  }                                                                                                \
  FB_KERNEL void scatter_along_axis_##SUFFIX(const T* updates, const void* indices, T* y,          \
                                             long outer, long extent, long count, long inner,      \
                                             int kind) {                                           \
    scatter_along_axis(updates, indices, y, outer, extent, count, inner, kind);                    \
  }                                                                                                \
  FB_KERNEL void scatter_max_##SUFFIX(const T* x, const T* updates, const void* indices, T* y,     \
                                      long outer, long extent, long count, long inner, int kind) { \
    scatter_max(x, updates, indices, y, outer, extent, count, inner, kind);                        \
  }                                                                                                \
  FB_KERNEL void gather_sum_##SUFFIX(const T* x, const int* indices, const long* count,            \
                                     const long* inverse_count, T* y, long rows, long from,        \
                                     long terms, long width) {                                     \
    gather_sum(x, indices, count, inverse_count, y, rows, from, terms, width);                     \
  }
FB_FOR_NUMBERS(FB_SCATTER)
