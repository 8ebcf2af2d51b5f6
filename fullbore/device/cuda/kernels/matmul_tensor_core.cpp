// y [batch, m, n] = c + a b of bf16 or f16, sums in f32, by tensor cores. a [batch, m, k], or [k, m] transposed; b
// [batch, k, n], or [n, k]. c and a wide y are f32; of a narrow y c is a bias [n], added before it is rounded.
//
// A block makes a tile of y, each of its warps a part of 16-row and 8-column fragments. 32 of k at a time come to shared
// memory by cp.async, three tiles in flight, in the layout that the operand has in memory: ldmatrix transposes on the way
// to registers. Bound: a tile of 128 x 128 does 64 products for each byte that it brings from L2.
#include "fullbore/device/cuda/kernels/tensor_core.h"

namespace {

constexpr int kDepth = 32;
constexpr int kStages = 3;
constexpr int kPad = 8;    // elements: rows of shared memory begin in different banks
constexpr int kChunk = 8;  // elements of 16 bytes

extern FB_SHARED __attribute__((aligned(16))) unsigned char dynamic_shared[];

/// 16 bytes of a tile: where they go, where they lie, and how many elements are within the operand.
struct Chunk {
  unsigned to;
  const unsigned short* from;
  int there;
};

struct Problem {
  int m, n, k, batches;
  bool is_wide;  ///< y is f32
};

/// Lines of one operand (rows of a, columns of b) in shared memory: [line][k], or [k][line] where lines lie contiguous.
template <int kLines, bool kDepthLast>
struct Tile {
  static constexpr int kOuter = kDepthLast ? kLines : kDepth;
  static constexpr int kInner = kDepthLast ? kDepth : kLines;
  static constexpr int kRow = kInner + kPad;
  static constexpr int kBytes = kOuter * kRow * 2;

  FB_DEVICE static unsigned at(unsigned tile, int line, int depth) {
    return tile + 2 * static_cast<unsigned>(kDepthLast ? line * kRow + depth : depth * kRow + line);
  }

  /// `are_chunks`: may 16 bytes be read at once? Elsewhere elements are, one by one.
  template <int kThreads>
  FB_DEVICE static void bring(unsigned tile, const unsigned short* from, int lines, int depths,
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
      return Chunk{tile + 2 * static_cast<unsigned>(row * kRow + part),
                   from + static_cast<long>(outer) * inners + inner, there};
    };
    if (are_chunks) {
#pragma unroll
      for (int i = 0; i < kChunks; ++i) {
        const Chunk chunk = place(i);
        copy_later(chunk.to, chunk.there > 0 ? chunk.from : from, 2 * chunk.there);
      }
      return;
    }
#pragma unroll 1
    for (int i = 0; i < kChunks; ++i) {
      const Chunk chunk = place(i);
#pragma unroll 1
      for (int word = 0; word < kChunk / 2; ++word) {
        const unsigned low = 2 * word < chunk.there ? chunk.from[2 * word] : 0;
        const unsigned high = 2 * word + 1 < chunk.there ? chunk.from[2 * word + 1] : 0;
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(chunk.to + 4 * word), "r"(high << 16 | low)
                     : "memory");
      }
    }
  }
};

FB_DEVICE bool are_chunks(const void* base, int contiguous) {
  return reinterpret_cast<unsigned long>(base) % 16 == 0 && contiguous % kChunk == 0;
}

/// Of a block: tile of y, and of each warp its part.
template <class T, int kRows, int kColumns, int kWarpRows, int kWarpColumns, bool kTransposeA,
          bool kTransposeB>
struct Matmul {
  using TileA = Tile<kRows, !kTransposeA>;
  using TileB = Tile<kColumns, kTransposeB>;
  static constexpr int kStageBytes = TileA::kBytes + TileB::kBytes;
  static constexpr int kWarpsAcross = kColumns / kWarpColumns;
  static constexpr int kThreads = kRows / kWarpRows * kWarpsAcross * kWarp;
  static constexpr int kHigh = kWarpRows / 16, kWide = kWarpColumns / 8;
  static constexpr int kStagedRow = kWarpColumns + 8;
  static_assert(kWarpColumns == kWarp);

  FB_DEVICE static void add_stage(float (&sums)[kHigh][kWide][4], unsigned stage, int row,
                                  int column) {
    const int lane = thread() % kWarp, matrix = lane / 8, line = lane % 8;
#pragma unroll
    for (int depth = 0; depth < kDepth; depth += 16) {
      unsigned a[kHigh][4];
#pragma unroll
      for (int i = 0; i < kHigh; ++i) {
        const unsigned at =
            TileA::at(stage, row + 16 * i + matrix % 2 * 8 + (kTransposeA ? 0 : line),
                      depth + matrix / 2 * 8 + (kTransposeA ? line : 0));
        kTransposeA ? load_transposed(a[i], at) : load_matrices(a[i], at);
      }
#pragma unroll
      for (int j = 0; j < kWide; j += 2) {
        unsigned b[4];
        const unsigned at = TileB::at(stage + TileA::kBytes,
                                      column + 8 * j + matrix / 2 * 8 + (kTransposeB ? line : 0),
                                      depth + matrix % 2 * 8 + (kTransposeB ? 0 : line));
        kTransposeB ? load_matrices(b, at) : load_transposed(b, at);
#pragma unroll
        for (int i = 0; i < kHigh; ++i) {
          multiply(sums[i][j], a[i], b[0], b[1], T{});
          multiply(sums[i][j + 1], a[i], b[2], b[3], T{});
        }
      }
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
      if (at_column < problem.n)
#pragma unroll 1
        for (int r = 0; r < rows; ++r) {
          const long at = first + static_cast<long>(row + 16 * i + r) * problem.n + at_column;
          const float sum = staged[r * kStagedRow + lane];
          if (problem.is_wide)
            static_cast<float*>(y)[at] = c != nullptr ? c[at] + sum : sum;
          else
            store(static_cast<T*>(y) + at, c != nullptr ? c[at_column] + sum : sum);
        }
      warp_barrier();
    }
  }

  FB_DEVICE static void run(const unsigned short* a, const unsigned short* b, const float* c,
                            void* y, const Problem& problem) {
    const int row0 = block_y() * kRows, column0 = block_x() * kColumns;
    const int warp = thread() / kWarp;
    const int row = warp / kWarpsAcross * kWarpRows, column = warp % kWarpsAcross * kWarpColumns;
    const unsigned shared = shared_address(dynamic_shared);
    const int steps = (problem.k + kDepth - 1) / kDepth;
    for (int batch = block_z(); batch < problem.batches; batch += blocks_z()) {
      const unsigned short* const of_a = a + static_cast<long>(batch) * problem.m * problem.k;
      const unsigned short* const of_b = b + static_cast<long>(batch) * problem.n * problem.k;
      const bool chunks_a = are_chunks(of_a, kTransposeA ? problem.m : problem.k);
      const bool chunks_b = are_chunks(of_b, kTransposeB ? problem.k : problem.n);
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
// of each stage, at most 40 bytes for each line of both tiles and 16.
#define FB_TENSOR_CORE(T, SUFFIX, TA, TB, TILE, WARP_ROWS, WARP_COLUMNS)                           \
  FB_KERNEL void matmul_##SUFFIX##_##TA##TB##_##TILE(                                              \
      const unsigned short* a, const unsigned short* b, const float* c, void* y, int m, int n,     \
      int k, int batches, int is_wide) {                                                           \
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
