// y [batch, m, n] = c + a b in the operands' own precision, f32 or f64: a block makes 64 x 64 of y, a thread 4 x 4, each
// element's terms in the order of k. a [batch, m, k], or [k, m] transposed; b [batch, k, n], or [n, k].
#include "fullbore/device/cuda/kernels/gpu.h"

namespace {

constexpr int kTile = 64;   // rows and columns of y
constexpr int kDepth = 16;  // of k at a time
constexpr int kPad = 4;
constexpr int kPart = 4;  // rows and columns of a thread
constexpr int kThreads = kTile / kPart * (kTile / kPart);
constexpr int kLoads = kTile * kDepth / kThreads;

/// A tile of one operand in shared memory, [k][m or n].
template <class T>
using Tile = T[kDepth][kTile + kPad];

// Lines are rows of a or columns of b: from `line0` of `lines` and `depth0` of `depths`. `depth_last`: does k lie
// contiguous?
template <class T>
FB_DEVICE void load_tile(Tile<T>& tile, const T* from, int lines, int depths, int line0, int depth0,
                         bool depth_last) {
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const int e = thread() + i * kThreads;
    const int line = depth_last ? e / kDepth : e % kTile;
    const int depth = depth_last ? e % kDepth : e / kTile;
    const int at_line = line0 + line, at_depth = depth0 + depth;
    T value = 0;
    if (at_line < lines && at_depth < depths)
      value = depth_last ? from[static_cast<long>(at_line) * depths + at_depth]
                         : from[static_cast<long>(at_depth) * lines + at_line];
    tile[depth][line] = value;
  }
}

template <class T>
FB_DEVICE void matmul(const T* a, const T* b, const T* c, T* y, int m, int n, int k,
                      bool transpose_a, bool transpose_b, int batches) {
  FB_SHARED static Tile<T> tile_a;
  FB_SHARED static Tile<T> tile_b;
  const int row0 = block_y() * kTile, column0 = block_x() * kTile;
  const int row = thread() / (kTile / kPart) * kPart, column = thread() % (kTile / kPart) * kPart;
  for (int batch = block_z(); batch < batches; batch += blocks_z()) {
    const T* const of_a = a + static_cast<long>(batch) * m * k;
    const T* const of_b = b + static_cast<long>(batch) * n * k;
    T sums[kPart][kPart] = {};
    for (int depth = 0; depth < k; depth += kDepth) {
      barrier();  // before the tiles are brought anew
      load_tile(tile_a, of_a, m, k, row0, depth, !transpose_a);
      load_tile(tile_b, of_b, n, k, column0, depth, transpose_b);
      barrier();
#pragma unroll
      for (int d = 0; d < kDepth; ++d) {
        T left[kPart], right[kPart];
#pragma unroll
        for (int i = 0; i < kPart; ++i) {
          left[i] = tile_a[d][row + i];
          right[i] = tile_b[d][column + i];
        }
#pragma unroll
        for (int i = 0; i < kPart; ++i)
#pragma unroll
          for (int j = 0; j < kPart; ++j) sums[i][j] += left[i] * right[j];
      }
    }
#pragma unroll
    for (int i = 0; i < kPart; ++i)
#pragma unroll
      for (int j = 0; j < kPart; ++j) {
        const int at_row = row0 + row + i, at_column = column0 + column + j;
        if (at_row >= m || at_column >= n) continue;
        const long at = (static_cast<long>(batch) * m + at_row) * n + at_column;
        y[at] = c != nullptr ? c[at] + sums[i][j] : sums[i][j];
      }
  }
}

}  // namespace

#define FB_MATMUL(T, SUFFIX)                                                                    \
  FB_KERNEL void matmul_##SUFFIX(const T* a, const T* b, const T* c, T* y, int m, int n, int k, \
                                 int transpose_a, int transpose_b, int batches) {               \
    matmul(a, b, c, y, m, n, k, transpose_a != 0, transpose_b != 0, batches);                   \
  }
FB_MATMUL(float, f32)
FB_MATMUL(double, f64)
