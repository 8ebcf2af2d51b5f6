// Sums and maxima by index. Each element of the result belongs to one thread, which meets its terms in their order: no
// atomics, and equal runs have equal bits.
#include "fullbore/device/cuda/kernels/elements.h"

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr int kSums = 4096;          ///< that a block keeps
constexpr int kIndicesOfThread = 8;  ///< that are looked at together: a round
constexpr int kRound = kThreads * kIndicesOfThread;
constexpr int kAhead = 8;  ///< terms that are on their way while others are added

/// Which of a round's indices are of the block's rows.
struct Matches {
  int count_of_warp[2][kWarps];  ///< of this round and the one before
  unsigned short
      found[kRound];  ///< in their order: row within the block * kRound + place within the round
};

/// Sums over the warp's lanes before this one, and over all, of numbers below 16.
struct WarpCount {
  FB_DEVICE explicit WarpCount(int mine) {
    const unsigned lower = (1U << (thread() % kWarp)) - 1;
#pragma unroll
    for (int bit = 0; bit < 4; ++bit) {
      const unsigned votes = ballot((mine >> bit & 1) != 0);
      before += __builtin_popcount(votes & lower) << bit;
      all += __builtin_popcount(votes) << bit;
    }
  }
  int before = 0, all = 0;
};

// y [rows, width]: sums of rows of updates [count, width] by indices [count]. A block makes a tile of `tile_rows` rows by
// `tile_columns` columns (a power of two): it reads all indices, lists those of its rows, and adds what they name. A column
// belongs to 256 / tile_columns threads, which take terms in turns; each has sums of its own, added up at the end.
template <class T>
FB_DEVICE void scatter_add(const T* updates, const void* indices, T* y, long rows, long width,
                           long count, int kind, int tile_rows, int tile_columns) {
  FB_SHARED static Sum<T> sums[kSums];
  FB_SHARED static Matches matches;
  const long row0 = static_cast<long>(block_x()) * tile_rows;
  const long column0 = static_cast<long>(block_y()) * tile_columns;
  const long end_row = least(row0 + tile_rows, rows);
  const int warp = thread() / kWarp;
  const int groups = kThreads / tile_columns, group = thread() / tile_columns;
  const int column = thread() % tile_columns;
  const bool has_column = column0 + column < width;
  Sum<T>* const mine = sums + group * tile_rows * tile_columns + column;
  for (int row = 0; row < tile_rows; ++row) mine[row * tile_columns] = 0;
  int turn = 0;
  for (long round = 0; round < count; round += kRound, turn ^= 1) {
    int row[kIndicesOfThread], here = 0;
#pragma unroll
    for (int i = 0; i < kIndicesOfThread; ++i) {
      const long at = round + thread() * kIndicesOfThread + i;
      const long index = at < count ? index_at(indices, at, kind) : -1;
      row[i] = index >= row0 && index < end_row ? static_cast<int>(index - row0) : -1;
      here += row[i] >= 0 ? 1 : 0;
    }
    const WarpCount counted(here);
    if (thread() % kWarp == 0) matches.count_of_warp[turn][warp] = counted.all;
    barrier();  // and what the round before listed is added
    int next = counted.before, found = 0;
    for (int w = 0; w < kWarps; ++w) {
      if (w < warp) next += matches.count_of_warp[turn][w];
      found += matches.count_of_warp[turn][w];
    }
    if (found == 0) continue;
#pragma unroll
    for (int i = 0; i < kIndicesOfThread; ++i)
      if (row[i] >= 0)
        matches.found[next++] =
            static_cast<unsigned short>(row[i] * kRound + thread() * kIndicesOfThread + i);
    barrier();
    if (!has_column) continue;
    for (int first = group; first < found; first += groups * kAhead) {
      T term[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const int match = first + i * groups;
        if (match < found)
          term[i] = updates[(round + matches.found[match] % kRound) * width + column0 + column];
      }
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const int match = first + i * groups;
        if (match < found) mine[matches.found[match] / kRound * tile_columns] += load(term[i]);
      }
    }
  }
  barrier();
  for (int e = thread(); e < tile_rows * tile_columns; e += kThreads) {
    const long at_row = row0 + e / tile_columns, at_column = column0 + e % tile_columns;
    if (at_row >= rows || at_column >= width) continue;
    Sum<T> sum = sums[e];
    for (int g = 1; g < groups; ++g) sum += sums[g * tile_rows * tile_columns + e];
    store(&y[at_row * width + at_column], sum);
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
