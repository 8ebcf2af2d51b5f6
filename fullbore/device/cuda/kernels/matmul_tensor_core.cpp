// y [batch, m, n] = c + a b of bf16, f16, or f32 rounded to tf32, sums in f32, by tensor cores. a [batch, m, k], or [k, m]
// transposed; b [batch, k, n], or [n, k]. c and a wide y are f32; of a narrow y c is a bias [n], added before it is rounded.
//
// A block makes a tile of y, each of its warps a part of 16-row and 8-column fragments. 64 bytes of k at a time come to
// shared memory by cp.async, two tiles in flight, four of small ones, in the layout that the operand has in memory: ldmatrix transposes 16-bit
// elements on the way to registers; f32 ones that are to be transposed are read one by one, and all are rounded behind that.
// Bound: a tile of 128 x 128 does 64 products for each byte that it brings from L2, 32 of tf32.
#include "fullbore/device/cuda/kernels/tensor_core.h"

namespace {

template <class T>
struct ElementOf {
  using Type = unsigned short;
};
template <>
struct ElementOf<Tf32> {
  using Type = unsigned;
};
/// As it lies in memory.
template <class T>
using Element = typename ElementOf<T>::Type;

extern FB_SHARED __attribute__((aligned(16))) unsigned char dynamic_shared[];

/// 16 bytes of a tile: where they go, where they lie, and how many elements are within the operand.
template <class T>
struct Chunk {
  unsigned to;
  const Element<T>* from;
  int there;
};

struct Problem {
  int m, n, k, batches;
  bool is_wide;  ///< y is f32
};

FB_DEVICE unsigned shared_word(unsigned address) {
  unsigned word;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
  return word;
}

/// Lines of one operand (rows of a, columns of b) in shared memory: [line][k], or [k][line] where lines lie contiguous.
template <class T, int kLines, bool kDepthLast>
struct Tile {
  static constexpr int kBytesOfElement = sizeof(Element<T>);
  static constexpr int kChunk = 16 / kBytesOfElement;
  static constexpr int kDepth = 64 / kBytesOfElement;
  static constexpr int kPad = kDepthLast ? kChunk : 8;  ///< elements: rows begin in different banks
  static constexpr int kOuter = kDepthLast ? kLines : kDepth;
  static constexpr int kInner = kDepthLast ? kDepth : kLines;
  static constexpr int kRow = kInner + kPad;
  static constexpr int kBytes = kOuter * kRow * kBytesOfElement;

  FB_DEVICE static unsigned at(unsigned tile, int line, int depth) {
    return tile + kBytesOfElement *
                      static_cast<unsigned>(kDepthLast ? line * kRow + depth : depth * kRow + line);
  }

  /// What a lane has of four matrices of 8 lines by 16 bytes of k, as products want them: matrix i begins 8 lines behind the
  /// first where bit kBitOfLines of i is set, and kChunk of k where the other one is.
  template <int kBitOfLines>
  FB_DEVICE static void fragments(unsigned (&to)[4], unsigned tile, int line0, int depth0) {
    const int lane = thread() % kWarp, matrix = lane / 8, of_matrix = lane % 8;
    constexpr int kBitOfDepth = 1 - kBitOfLines;
    if constexpr (kDepthLast || kBytesOfElement == 2) {
      const unsigned from =
          at(tile, line0 + (matrix >> kBitOfLines & 1) * 8 + (kDepthLast ? of_matrix : 0),
             depth0 + (matrix >> kBitOfDepth & 1) * kChunk + (kDepthLast ? 0 : of_matrix));
      kDepthLast ? load_matrices(to, from) : load_transposed(to, from);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        to[i] = shared_word(at(tile, line0 + (i >> kBitOfLines & 1) * 8 + lane / 4,
                               depth0 + (i >> kBitOfDepth & 1) * kChunk + lane % 4));
    }
    if constexpr (kBytesOfElement == 4)
#pragma unroll
      for (int i = 0; i < 4; ++i) to[i] = rounded_to_tf32(to[i]);
  }

  /// `are_chunks`: may 16 bytes be read at once? Elsewhere elements are, one by one.
  template <int kThreads>
  FB_DEVICE static void bring(unsigned tile, const Element<T>* from, int lines, int depths,
                              int line0, int depth0, bool are_chunks) {
    constexpr int kChunksOfRow = kInner / kChunk;
    constexpr int kChunks = kOuter * kChunksOfRow / kThreads;  // of a thread
    static_assert(kOuter * kChunksOfRow % kThreads == 0);
    const int outers = kDepthLast ? lines : depths, inners = kDepthLast ? depths : lines;
    const int outer0 = kDepthLast ? line0 : depth0, inner0 = kDepthLast ? depth0 : line0;
    const auto place = [&](int i) __attribute__((device)) {
      const int e = thread() + i * kThreads;
      const int row = e / kChunksOfRow, part = e % kChunksOfRow * kChunk;
      const int outer = outer0 + row, inner = inner0 + part;
      const int there = outer < outers ? most(0, least(kChunk, inners - inner)) : 0;
      return Chunk<T>{tile + kBytesOfElement * static_cast<unsigned>(row * kRow + part),
                      from + static_cast<long>(outer) * inners + inner, there};
    };
    if (are_chunks) {
#pragma unroll
      for (int i = 0; i < kChunks; ++i) {
        const Chunk<T> chunk = place(i);
        copy_later(chunk.to, chunk.there > 0 ? chunk.from : from, kBytesOfElement * chunk.there);
      }
      return;
    }
#pragma unroll 1
    for (int i = 0; i < kChunks; ++i) {
      const Chunk<T> chunk = place(i);
#pragma unroll 1
      for (int word = 0; word < 4; ++word) {
        unsigned bits;
        if constexpr (kBytesOfElement == 4) {
          bits = word < chunk.there ? chunk.from[word] : 0;
        } else {
          const unsigned low = 2 * word < chunk.there ? chunk.from[2 * word] : 0;
          const unsigned high = 2 * word + 1 < chunk.there ? chunk.from[2 * word + 1] : 0;
          bits = high << 16 | low;
        }
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(chunk.to + 4 * word), "r"(bits) : "memory");
      }
    }
  }
};

FB_DEVICE bool are_chunks(const void* base, int contiguous, int chunk) {
  return reinterpret_cast<unsigned long>(base) % 16 == 0 && contiguous % chunk == 0;
}

/// Of a block: tile of y, and of each warp its part.
template <class T, int kRows, int kColumns, int kWarpRows, int kWarpColumns, bool kTransposeA,
          bool kTransposeB>
struct Matmul {
  using TileA = Tile<T, kRows, !kTransposeA>;
  using TileB = Tile<T, kColumns, kTransposeB>;
  static constexpr int kDepth = TileA::kDepth, kChunk = TileA::kChunk;
  static constexpr int kStageBytes = TileA::kBytes + TileB::kBytes;
  // Small tiles are of small products, which few blocks make: what they wait for is what has not come. With five stages a
  // multiprocessor of 100 KiB would hold one block, not two.
  static constexpr int kStages = kRows == 64 ? 4 : 3;
  static constexpr int kWarpsAcross = kColumns / kWarpColumns;
  static constexpr int kThreads = kRows / kWarpRows * kWarpsAcross * kWarp;
  static constexpr int kHigh = kWarpRows / 16, kWide = kWarpColumns / 8;
  static constexpr int kStagedRow = kWarpColumns + 8;
  static constexpr int kAtOnce = kRows == 64 ? 4 : 2;  // rows that a lane reads and writes together
  static_assert(kWarpColumns == kWarp);

  FB_DEVICE static void add_stage(float (&sums)[kHigh][kWide][4], unsigned stage, int row,
                                  int column) {
#pragma unroll
    for (int depth = 0; depth < kDepth; depth += 2 * kChunk) {
      unsigned a[kHigh][4];
#pragma unroll
      for (int i = 0; i < kHigh; ++i)
        TileA::template fragments<0>(a[i], stage, row + 16 * i, depth);
#pragma unroll
      for (int j = 0; j < kWide; j += 2) {
        unsigned b[4];
        TileB::template fragments<1>(b, stage + TileA::kBytes, column + 8 * j, depth);
#pragma unroll
        for (int i = 0; i < kHigh; ++i) {
          multiply(sums[i][j], a[i], b[0], b[1], T{});
          multiply(sums[i][j + 1], a[i], b[2], b[3], T{});
        }
      }
    }
  }

  /// An element of each of some rows. All reads before the first write, which c may share its bytes with.
  FB_DEVICE static void write_rows(const float* staged, const float* c, void* y, long at,
                                   int column, int rows, const Problem& problem) {
    float sums[kAtOnce];
    const bool has_bias = sizeof(Element<T>) == 2 && !problem.is_wide;
    const float bias = has_bias && c != nullptr ? c[column] : 0;
#pragma unroll
    for (int r = 0; r < kAtOnce; ++r) {
      sums[r] = 0;
      if (r < rows)
        sums[r] = has_bias ? bias : c != nullptr ? c[at + static_cast<long>(r) * problem.n] : 0;
    }
#pragma unroll
    for (int r = 0; r < kAtOnce; ++r) {
      if (r >= rows) continue;
      const long to = at + static_cast<long>(r) * problem.n;
      const float sum = sums[r] + staged[r * kStagedRow];
      if constexpr (sizeof(Element<T>) == 2)
        if (!problem.is_wide) {
          store(static_cast<T*>(y) + to, sum);
          continue;
        }
      static_cast<float*>(y)[to] = sum;
    }
  }

  // 16 rows at a time by way of shared memory, so that a warp's lanes write neighbours.
  FB_DEVICE static void write(const float (&sums)[kHigh][kWide][4], const float* c, void* y,
                              long first, int row, int column, const Problem& problem) {
    const int lane = thread() % kWarp;
    float* const staged =
        reinterpret_cast<float*>(dynamic_shared) + thread() / kWarp * 16 * kStagedRow;
    const int at_column = column + lane;
#pragma unroll
    for (int i = 0; i < kHigh; ++i) {
#pragma unroll
      for (int j = 0; j < kWide; ++j)
#pragma unroll
        for (int part = 0; part < 4; ++part)
          staged[(lane / 4 + part / 2 * 8) * kStagedRow + 8 * j + lane % 4 * 2 + part % 2] =
              sums[i][j][part];
      warp_barrier();
      const int rows = least(16, problem.m - row - 16 * i);
      const long at = first + static_cast<long>(row + 16 * i) * problem.n + at_column;
      if (at_column < problem.n)
#pragma unroll 1
        for (int r = 0; r < rows; r += kAtOnce)
          write_rows(staged + r * kStagedRow + lane, c, y, at + static_cast<long>(r) * problem.n,
                     at_column, least(kAtOnce, rows - r), problem);
      warp_barrier();
    }
  }

  FB_DEVICE static void run(const Element<T>* a, const Element<T>* b, const float* c, void* y,
                            const Problem& problem) {
    const int row0 = block_y() * kRows, column0 = block_x() * kColumns;
    const int warp = thread() / kWarp;
    const int row = warp / kWarpsAcross * kWarpRows, column = warp % kWarpsAcross * kWarpColumns;
    const unsigned shared = shared_address(dynamic_shared);
    const int steps = (problem.k + kDepth - 1) / kDepth;
    for (int batch = block_z(); batch < problem.batches; batch += blocks_z()) {
      const Element<T>* const of_a = a + static_cast<long>(batch) * problem.m * problem.k;
      const Element<T>* const of_b = b + static_cast<long>(batch) * problem.n * problem.k;
      const bool chunks_a = are_chunks(of_a, kTransposeA ? problem.m : problem.k, kChunk);
      const bool chunks_b = are_chunks(of_b, kTransposeB ? problem.k : problem.n, kChunk);
      const auto bring = [&](int step) __attribute__((device)) {
        if (step < steps) {
          const unsigned stage = shared + static_cast<unsigned>(step % kStages * kStageBytes);
          TileA::template bring<kThreads>(stage, of_a, problem.m, problem.k, row0, step * kDepth,
                                          chunks_a);
          TileB::template bring<kThreads>(stage + TileA::kBytes, of_b, problem.n, problem.k,
                                          column0, step * kDepth, chunks_b);
        }
        commit_copies();
      };
      float sums[kHigh][kWide][4] = {};
      barrier();  // tiles of the batch before have been read
#pragma unroll 1
      for (int step = 0; step < kStages - 1; ++step) bring(step);
      for (int step = 0; step < steps; ++step) {
        wait_for_copies<kStages - 2>();
        barrier();  // the stage is there for all, and the one before it has been read by all
        bring(step + kStages - 1);
        add_stage(sums, shared + static_cast<unsigned>(step % kStages * kStageBytes), row, column);
      }
      wait_for_copies<0>();
      barrier();  // all tiles have been read
      write(sums, c, y, static_cast<long>(batch) * problem.m * problem.n, row0 + row,
            column0 + column, problem);
    }
  }
};

}  // namespace

// Names: dtype, whether a and b are transposed, rows and columns of a block's tile. Shared memory is dynamic: kStageBytes
// of each stage. A y of tf32 is f32 always.
#define FB_TENSOR_CORE(T, SUFFIX, TA, TB, TILE, WARP_ROWS, WARP_COLUMNS)                           \
  FB_KERNEL void matmul_##SUFFIX##_##TA##TB##_##TILE(const Element<T>* a, const Element<T>* b,     \
                                                     const float* c, void* y, int m, int n, int k, \
                                                     int batches, int is_wide) {                   \
    Matmul<T, TILE, TILE, WARP_ROWS, WARP_COLUMNS, TA, TB>::run(a, b, c, y,                        \
                                                                {m, n, k, batches, is_wide != 0}); \
  }
#define FB_TENSOR_CORE_TILES(T, SUFFIX, TA, TB)  \
  FB_TENSOR_CORE(T, SUFFIX, TA, TB, 128, 64, 32) \
  FB_TENSOR_CORE(T, SUFFIX, TA, TB, 64, 32, 32)
#define FB_TENSOR_CORE_LAYOUTS(T, SUFFIX) \
  FB_TENSOR_CORE_TILES(T, SUFFIX, 0, 0)   \
  FB_TENSOR_CORE_TILES(T, SUFFIX, 0, 1)   \
  FB_TENSOR_CORE_TILES(T, SUFFIX, 1, 0)   \
  FB_TENSOR_CORE_TILES(T, SUFFIX, 1, 1)
FB_TENSOR_CORE_LAYOUTS(Bf16, bf16)
FB_TENSOR_CORE_LAYOUTS(F16, f16)
FB_TENSOR_CORE_LAYOUTS(Tf32, tf32)
