// y [batch, m, n] = c + a b of bf16 or f16, sums in f32, as matmul_sm90a.cpp has it, by pairs of blocks. a [batch, m, k], or
// [k, m] transposed; b [batch, k, n], or [n, k]: both have rows of whole 16 bytes. c and a wide y are f32.
//
// A pair has a tile of 256 rows, each block 128 of them: 64 for each of two warpgroups. Columns of b are for both: each block
// brings half of them to both, so that a unit of 64 of k takes 32 KiB of L2 in place of 48. One thread of a third warpgroup
// has the copy engine bring units, as many ahead as there are stages, over the ends of tiles too. It waits until all warps of
// the pair have left a stage, and they wait until its bytes are there: no barrier of a block is between them, so one warpgroup
// writes its tile while the other multiplies.
//
// Whole tiles, every `pairs`-th; or an equal share of all units in their order, whose partial sums go to scratch and are added
// in the order of k by a second launch (sum_parts).
#include "fullbore/device/cuda/kernels/tensor_copies.h"
#include "fullbore/device/cuda/kernels/warpgroup_result.h"

namespace {

extern FB_SHARED __attribute__((aligned(1024))) unsigned char dynamic_shared[];

constexpr int kThreadsAndCopier = kThreads + 128;
constexpr int kRows = 128;        // of a block
constexpr int kClusterGroup = 8;  // rows of tiles that share columns of b in L2

/// Stages that units go through, of a walk: which one, and the parity of its phase.
struct Stage {
  int at = 0, parity = 0;
  template <int kStages>
  FB_DEVICE void advance() {
    at = at + 1 == kStages ? 0 : at + 1;
    parity ^= at == 0;
  }
};

template <class T, int kColumns, bool kTransposeA, bool kTransposeB>
struct ClusterMatmul {
  static constexpr int kBytesOfA = kRows / 64 * kLinesBytes;
  static constexpr int kBytesOfB = kColumns / 64 * kLinesBytes;
  static constexpr int kStageBytes = kBytesOfA + kBytesOfB;
  static constexpr int kStages = least(6, 226 * 1024 / kStageBytes);
  static constexpr int kSums = kColumns / 2;  // of a thread

  /// Barriers of stages: brought, and left by all warps of the pair.
  struct Barriers {
    unsigned brought, left;
    FB_DEVICE unsigned of_brought(int stage) const {
      return brought + static_cast<unsigned>(8 * stage);
    }
    FB_DEVICE unsigned of_left(int stage) const { return left + static_cast<unsigned>(8 * stage); }
  };

  /// Lines of an operand from `line` on, 64 of k from `depth` on: one box of rows of k, or boxes of 64 lines.
  template <bool kDepthLast, int kLines, bool kToBoth>
  FB_DEVICE static void bring(unsigned to, unsigned long map, int line, int depth, int batch,
                              unsigned barrier) {
    constexpr int kBoxes = kDepthLast ? 1 : kLines / 64;
#pragma unroll
    for (int i = 0; i < kBoxes; ++i) {
      const unsigned place = to + static_cast<unsigned>(i * kLinesBytes);
      const int inner = kDepthLast ? depth : line + 64 * i, middle = kDepthLast ? line : depth;
      if (kToBoth)
        bring_box_to_both(place, map, inner, middle, batch, barrier);
      else
        bring_box(place, map, inner, middle, batch, barrier);
    }
  }

  FB_DEVICE static void copy(const Problem& problem, UnitWalk walk, unsigned long a,
                             unsigned long b, const Barriers& barriers) {
    const int rank = rank_in_pair();
    Stage stage;
#pragma unroll 1
    while (walk.left > 0) {
      const int units = walk.of_tile(problem);
      const ProductPlace place(problem, walk.tile, kClusterGroup);
      const int row = (place.row * kBlocksOfPair + rank) * kRows;
      const int column = place.column * kColumns + rank * (kColumns / 2);
#pragma unroll 1
      for (int unit = 0; unit < units; ++unit) {
        const int depth = (walk.step + unit) * kStepDepth;
        const unsigned brought = barriers.of_brought(stage.at);
        const unsigned to =
            shared_address(dynamic_shared) + static_cast<unsigned>(stage.at * kStageBytes);
        wait_for_phase_of_pair(barriers.of_left(stage.at), stage.parity ^ 1);
        expect_bytes(brought, kStageBytes);
        bring<!kTransposeA, kRows, false>(to, a, row, depth, place.batch, brought);
        bring<kTransposeB, kColumns / 2, true>(
            to + static_cast<unsigned>(kBytesOfA + rank * (kBytesOfB / 2)), b, column, depth,
            place.batch, brought);
        stage.template advance<kStages>();
      }
      walk.advance(problem, units);
    }
  }

  FB_DEVICE static void multiply(const Problem& problem, UnitWalk walk, const float* c, void* y,
                                 float* scratch, const Barriers& barriers) {
    const int group = thread() / 128, rank = rank_in_pair(), pair = block_x() / kBlocksOfPair;
    const unsigned shared = shared_address(dynamic_shared);
    const unsigned long operand_a =
        operand_at<!kTransposeA>(shared + static_cast<unsigned>(group * kLinesBytes));
    const unsigned long operand_b = operand_at<kTransposeB>(shared + kBytesOfA);
    const Result<T> result(c, y, problem);
    // Lane 0 tells the first block, lane 1 the second.
    const auto leave = [&](int stage) __attribute__((device)) {
      if (thread() % kWarp < kBlocksOfPair) arrive_at(barriers.of_left(stage), thread() % kWarp);
    };
    Stage stage;
    float sums[kSums] = {};
#pragma unroll 1
    while (walk.left > 0) {
      const int units = walk.of_tile(problem);
      ProductPlace place(problem, walk.tile, kClusterGroup);
      place.row = place.row * kBlocksOfPair + rank;  // of tiles of a block
      if (!problem.is_split) result.template fetch<kRows, kColumns>(place);
      int last = 0;
#pragma unroll 1
      for (int unit = 0; unit < units; ++unit) {
        wait_for_phase(barriers.of_brought(stage.at), stage.parity);
        const unsigned long at = stage.at * static_cast<unsigned long>(kStageBytes >> 4);
        begin_products();
#pragma unroll
        for (int i = 0; i < kStepDepth / 16; ++i)
          add_product<kTransposeA, !kTransposeB>(
              sums, operand_a + at + i * kNextDepth<!kTransposeA>,
              operand_b + at + i * kNextDepth<kTransposeB>, unit > 0 || i > 0, T{});
        commit_products();
        wait_for_products<1>();
        if (unit > 0) leave(last);
        last = stage.at;
        stage.template advance<kStages>();
      }
      wait_for_products<0>();
      leave(last);
      take_sums(sums);
      if (problem.is_split) {
        Floats* const part = here(part_of(scratch, pair, walk.tile, rank));
#pragma unroll
        for (int j = 0; j < kSums / 4; ++j)
          part[j * kThreads] =
              Floats{sums[4 * j], sums[4 * j + 1], sums[4 * j + 2], sums[4 * j + 3]};
      } else {
        result.write_by_vectors(sums, place.batch, place.row * kRows + group * 64,
                                place.column * kColumns);
      }
      walk.advance(problem, units);
    }
  }

  FB_DEVICE static void run(unsigned long a, unsigned long b, const float* c, void* y,
                            float* scratch, const Problem& problem) {
    // Behind the stages: shared memory of a fixed size would lie before them, and move them from their 1024 bytes.
    const unsigned phases = shared_address(dynamic_shared) + kStages * kStageBytes;
    const Barriers barriers{phases, phases + 8 * kStages};
    if (thread() == 0) {
      for (int i = 0; i < kStages; ++i) {
        init_phases(barriers.of_brought(i), 1);
        init_phases(barriers.of_left(i), kBlocksOfPair * kThreads / kWarp);
      }
      show_phases();
    }
    pair_barrier();
    const UnitWalk walk(problem, block_x() / kBlocksOfPair, blocks_x() / kBlocksOfPair);
    if (thread() >= kThreads) {
      keep_registers<40>();
      if (thread() == kThreads) copy(problem, walk, a, b, barriers);
    } else {
      take_registers<232>();
      multiply(problem, walk, c, y, scratch, barriers);
    }
    pair_barrier();  // what one still tells the other, or brings it, is for a block that is there
  }

  /// Partial sums in scratch, of a pair's share of a tile: what each thread has of 8 columns of 64 rows.
  FB_DEVICE static Floats* part_of(float* scratch, int pair, int tile, int rank) {
    return reinterpret_cast<Floats*>(scratch) +
           (static_cast<long>(pair + tile) * kBlocksOfPair + rank) * (kRows * kColumns / 4) +
           thread();
  }

  /// Sums the shares of a tile that pairs of `shares` have left, 32 columns of a thread's 64 rows, in the order of k.
  FB_DEVICE static void sum_parts(const float* c, void* y, float* scratch, const Problem& problem,
                                  int shares) {
    constexpr int kAtOnce = 16;
    const int tile = block_x() / kBlocksOfPair, rank = block_x() % kBlocksOfPair;
    const int slice = block_y();
    const long unit = static_cast<long>(tile) * problem.steps;
    const int begin = share_of(problem, unit, shares);
    const int end = share_of(problem, unit + problem.steps - 1, shares) + 1;
    float slice_sums[kAtOnce] = {};
#pragma unroll 4
    for (int share = begin; share < end; ++share) {
      const Floats* const part =
          part_of(scratch, share, tile, rank) + slice * (kAtOnce / 4) * kThreads;
#pragma unroll
      for (int j = 0; j < kAtOnce / 4; ++j) {
        const Floats of_share = part[j * kThreads];
#pragma unroll
        for (int i = 0; i < 4; ++i) slice_sums[4 * j + i] += of_share[i];
      }
    }
    const ProductPlace place(problem, tile, kClusterGroup);
    Result<T>(c, y, problem)
        .write_by_vectors(slice_sums, place.batch,
                          (place.row * kBlocksOfPair + rank) * kRows + thread() / 128 * 64,
                          place.column * kColumns + 32 * slice);
  }
};

}  // namespace

// Names: dtype, whether a and b are transposed, columns of a tile. Clusters of two blocks (tools/make_ptx writes that in), 384
// threads, dynamic shared memory of kStages * (kStageBytes + 16), two barriers to a stage. a and b: maps of {k, lines, batches} where k lies contiguous, with
// boxes of 64 of k and 128 lines of a or half of b's columns; else of {lines, k, batches}, with boxes of 64 x 64.
#define FB_NAME(SUFFIX, TA, TB, COLUMNS) "matmul_clusters_" #SUFFIX "_" #TA #TB "_" #COLUMNS
#define FB_CLUSTERS(T, SUFFIX, TA, TB, COLUMNS)                                                  \
  FB_KERNEL __attribute__((launch_bounds(kThreadsAndCopier, 1))) void                            \
      matmul_clusters_##SUFFIX##_##TA##TB##_##COLUMNS(                                           \
          TensorMap, TensorMap, const float* c, void* y, float* scratch, int m, int n, int k,    \
          int batches, int is_wide, int is_split) {                                              \
    unsigned long a, b;                                                                          \
    FB_MAP_ADDRESS(a, FB_NAME(SUFFIX, TA, TB, COLUMNS), "0");                                    \
    FB_MAP_ADDRESS(b, FB_NAME(SUFFIX, TA, TB, COLUMNS), "1");                                    \
    ClusterMatmul<T, COLUMNS, TA, TB>::run(                                                      \
        a, b, c, y, scratch,                                                                     \
        Problem(m, n, k, batches, is_wide != 0, is_split != 0, kBlocksOfPair * kRows, COLUMNS)); \
  }
#define FB_CLUSTERS_LAYOUTS(T, SUFFIX, COLUMNS) \
  FB_CLUSTERS(T, SUFFIX, 0, 0, COLUMNS)         \
  FB_CLUSTERS(T, SUFFIX, 0, 1, COLUMNS)         \
  FB_CLUSTERS(T, SUFFIX, 1, 0, COLUMNS)         \
  FB_CLUSTERS(T, SUFFIX, 1, 1, COLUMNS)
// Grid: blocks of all tiles, and each 32 columns.
#define FB_CLUSTERS_PARTS(T, SUFFIX, COLUMNS)                                                   \
  FB_KERNEL                                                                                     \
  __attribute__((launch_bounds(kThreads))) void matmul_clusters_parts_##SUFFIX##_##COLUMNS(     \
      const float* c, void* y, float* scratch, int m, int n, int k, int batches, int is_wide,   \
      int shares) {                                                                             \
    ClusterMatmul<T, COLUMNS, false, false>::sum_parts(                                         \
        c, y, scratch,                                                                          \
        Problem(m, n, k, batches, is_wide != 0, true, kBlocksOfPair * kRows, COLUMNS), shares); \
  }
#define FB_CLUSTERS_TILE(COLUMNS)          \
  FB_CLUSTERS_LAYOUTS(Bf16, bf16, COLUMNS) \
  FB_CLUSTERS_PARTS(Bf16, bf16, COLUMNS)   \
  FB_CLUSTERS_LAYOUTS(F16, f16, COLUMNS)   \
  FB_CLUSTERS_PARTS(F16, f16, COLUMNS)
FB_CLUSTERS_TILE(256)
FB_CLUSTERS_TILE(128)
