// y [batch, m, n] = c + a b of bf16 or f16, sums in f32, by warpgroups of compute capability 9.0 (warpgroup.h). a [batch, m, k],
// or [k, m] transposed; b [batch, k, n], or [n, k]. c and a wide y are f32.
//
// A block has two warpgroups, each with half of a tile's rows, and goes through units of work, 64 of k of a tile each: it
// brings what two units on are made of by cp.async while tensor cores work, over the ends of tiles too. Whole tiles, every
// `blocks`-th; or, where that would leave multiprocessors idle, an equal share of all units in their order, whose partial sums
// go to scratch and are added in the order of k by a second launch (sum_parts).
//
// Bound: a unit of 128 x 256 takes 1024 cycles of tensor cores, and 1600 on an H200. That is not the bytes of L2 alone: tiles of
// 256 x 192, which need a fifth less of them for a product, were slower but for one shape of twenty. Writes go from
// registers, 64 bytes of a row at a time.
#include "fullbore/device/cuda/kernels/warpgroup_result.h"

namespace {

extern FB_SHARED __attribute__((aligned(1024))) unsigned char dynamic_shared[];

/// At the head of a loop: ptxas is not to unroll it. It would, and most of a kernel's code would be of what is rare.
FB_DEVICE void stay_rolled() { asm volatile(".pragma \"nounroll\";"); }

/// kLines lines of one operand (rows of a, columns of b) on their way to shared memory. A thread brings chunk thread % 8 of
/// each 32nd row of 128 bytes.
template <int kLines, bool kDepthLast>
struct Operand {
  static constexpr int kChunks = kLines * kStepDepth / kChunk / kThreads;

  const unsigned short* base;  ///< of all batches
  int lines, depths;
  bool are_chunks;  ///< may 16 bytes be read at once?

  int line0 = 0;
  bool is_inside = false;                ///< all lines of the tile, and in chunks
  const unsigned short* next = nullptr;  ///< what the thread brings first of the next unit

  FB_DEVICE Operand(const unsigned short* operand, int of_lines, int of_depths)
      : base(operand),
        lines(of_lines),
        depths(of_depths),
        are_chunks(is_aligned(operand, kDepthLast ? of_depths : of_lines)) {}

  FB_DEVICE int inners() const { return kDepthLast ? depths : lines; }

  FB_DEVICE void begin(int batch, int first_line, int step) {
    line0 = first_line;
    is_inside = are_chunks && line0 + kLines <= lines;
    const int outer = thread() / 8 + (kDepthLast ? line0 : step * kStepDepth);
    const int inner = thread() % 8 * kChunk + (kDepthLast ? step * kStepDepth : line0);
    next = base + static_cast<long>(batch) * lines * depths + static_cast<long>(outer) * inners() +
           inner;
  }

  /// Units come in their order.
  FB_DEVICE void bring(unsigned tile, int step) {
    const int row = thread() / 8;
    const unsigned to = tile + static_cast<unsigned>(row * 128 + ((thread() % 8 ^ row % 8) << 4));
    if (is_inside && (step + 1) * kStepDepth <= depths)
      bring_inside(to);
    else
      bring_edge(to, step);
    next += kDepthLast ? kStepDepth : static_cast<long>(kStepDepth) * inners();
  }

 private:
  // Few instructions, for they are between products and their successors.
  FB_DEVICE void bring_inside(unsigned to) const {
    const long down = static_cast<long>(kRowsAtOnce) * inners();
    const unsigned short* at = next;
    const unsigned short* const below = next + down;
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      const unsigned place = to + static_cast<unsigned>(i * kRowsAtOnce * 128);
      if (kDepthLast) {
        copy_later(place, at);
        at += down;
      } else {
        copy_later(place, (i % 2 == 0 ? next : below) + i / 2 * 64);
      }
    }
  }

  FB_DEVICE void bring_edge(unsigned to, int step) const {
    const int outer = thread() / 8 + (kDepthLast ? line0 : step * kStepDepth);
    const int inner = thread() % 8 * kChunk + (kDepthLast ? step * kStepDepth : line0);
    const int outers = kDepthLast ? lines : depths;
#pragma unroll 1
    for (int i = 0; i < kChunks; ++i) {
      stay_rolled();
      // Of chunk i: rows of memory behind the first, and elements.
      const int down = kRowsAtOnce * (kDepthLast ? i : i % 2), across = kDepthLast ? 0 : i / 2 * 64;
      const int there =
          outer + down < outers ? most(0, least(kChunk, inners() - inner - across)) : 0;
      const unsigned short* const first = next + static_cast<long>(down) * inners() + across;
      const unsigned place = to + static_cast<unsigned>(i * kRowsAtOnce * 128);
      if (are_chunks) {
        copy_later(place, there > 0 ? first : base, 2 * there);
        continue;
      }
      // All reads before the first use.
      unsigned short elements[kChunk];
#pragma unroll
      for (int e = 0; e < kChunk; ++e) elements[e] = e < there ? first[e] : 0;
      unsigned words[kChunk / 2];
#pragma unroll
      for (int w = 0; w < kChunk / 2; ++w)
        words[w] = static_cast<unsigned>(elements[2 * w + 1]) << 16 | elements[2 * w];
      asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(place), "r"(words[0]),
                   "r"(words[1]), "r"(words[2]), "r"(words[3])
                   : "memory");
    }
  }
};

/// Partial sums in scratch, of a block's share of a tile: what each thread has of 8 columns of 64 rows.
template <int kRows, int kColumns>
FB_DEVICE Floats* part_of(float* scratch, int block, int tile) {
  return reinterpret_cast<Floats*>(scratch) +
         static_cast<long>(block + tile) * (kRows * kColumns / 4) + thread();
}

/// kRows: 128 or 256, of which a warpgroup has half, 64 at a time.
template <class T, int kRows, int kColumns, bool kTransposeA, bool kTransposeB>
struct Matmul {
  using OperandA = Operand<kRows, !kTransposeA>;
  using OperandB = Operand<kColumns, kTransposeB>;
  static constexpr int kBytesOfA = kRows / 64 * kLinesBytes;
  static constexpr int kStageBytes = kBytesOfA + kColumns / 64 * kLinesBytes;
  static constexpr int kStages = 227 * 1024 / kStageBytes;
  static constexpr int kHigh = kRows / 128;   // 64 rows of a warpgroup
  static constexpr int kSums = kColumns / 2;  // of a thread, of each 64 rows

  FB_DEVICE static int row_of(const ProductPlace& place, int high) {
    return place.row * kRows + (thread() / 128 * kHigh + high) * 64;
  }

  FB_DEVICE static void run(const unsigned short* a, const unsigned short* b, const float* c,
                            void* y, float* scratch, const Problem& problem) {
    const unsigned shared = shared_address(dynamic_shared);
    const unsigned long operand_a = operand_at<!kTransposeA>(
        shared + static_cast<unsigned>(thread() / 128 * kHigh * kLinesBytes));
    const unsigned long operand_b = operand_at<kTransposeB>(shared + kBytesOfA);
    const Result<T> result(c, y, problem);
    UnitWalk walk(problem, block_x(), blocks_x()), ahead = walk;
    OperandA of_a(a, problem.m, problem.k);
    OperandB of_b(b, problem.n, problem.k);
    const auto begin_tile = [&]() __attribute__((device)) {
      const ProductPlace place(problem, ahead.tile);
      of_a.begin(place.batch, place.row * kRows, ahead.step);
      of_b.begin(place.batch, place.column * kColumns, ahead.step);
    };
    const auto bring = [&](int to) __attribute__((device)) {
      if (ahead.left > 0) {
        const unsigned stage = shared + static_cast<unsigned>(to * kStageBytes);
        of_a.bring(stage, ahead.step);
        of_b.bring(stage + kBytesOfA, ahead.step);
        ahead.advance(problem, 1);
        if (ahead.step == 0) begin_tile();
      }
      commit_copies();
    };
    begin_tile();
#pragma unroll 1
    for (int i = 0; i < kStages - 2; ++i) bring(i);
    float sums[kHigh][kSums] = {};
    int from = 0;
#pragma unroll 1
    while (walk.left > 0) {
      const int units = walk.of_tile(problem);
      const ProductPlace place(problem, walk.tile);
      if (!problem.is_split) result.template fetch<kRows, kColumns>(place);
#pragma unroll 1
      for (int unit = 0; unit < units; ++unit) {
        wait_for_copies<kStages - 3>();
        show_tensor_cores();
        barrier();  // the stage is there for all, and products of the stage before the last are complete
        const unsigned long stage = from * static_cast<unsigned long>(kStageBytes >> 4);
        begin_products();
#pragma unroll
        for (int i = 0; i < kStepDepth / 16; ++i)
#pragma unroll
          for (int high = 0; high < kHigh; ++high)
            add_product<kTransposeA, !kTransposeB>(
                sums[high],
                operand_a + stage + i * kNextDepth<!kTransposeA> + high * (kLinesBytes >> 4),
                operand_b + stage + i * kNextDepth<kTransposeB>, unit > 0 || i > 0, T{});
        commit_products();
        bring(from < 2 ? from + kStages - 2 : from - 2);
        wait_for_products<1>();
        from = from + 1 == kStages ? 0 : from + 1;
      }
      wait_for_products<0>();
#pragma unroll
      for (int high = 0; high < kHigh; ++high) {
        take_sums(sums[high]);
        if (problem.is_split) {
          Floats* const part = here(part_of<kRows, kColumns>(scratch, block_x(), walk.tile)) +
                               high * (kSums / 4) * kThreads;
#pragma unroll
          for (int j = 0; j < kSums / 4; ++j)
            part[j * kThreads] = Floats{sums[high][4 * j], sums[high][4 * j + 1],
                                        sums[high][4 * j + 2], sums[high][4 * j + 3]};
        } else {
          result.write(sums[high], place.batch, row_of(place, high), place.column * kColumns);
        }
      }
      walk.advance(problem, units);
    }
    wait_for_copies<0>();
  }

  /// Sums the shares of a tile that blocks of `shares` have left, 32 columns of its threads' 64 rows, in the order of k.
  FB_DEVICE static void sum_parts(const float* c, void* y, float* scratch, const Problem& problem,
                                  int shares) {
    constexpr int kAtOnce = 16, kSlices = kColumns / 32;
    const int tile = block_x(), high = block_y() / kSlices, slice = block_y() % kSlices;
    const long unit = static_cast<long>(tile) * problem.steps;
    const int begin = share_of(problem, unit, shares);
    const int end = share_of(problem, unit + problem.steps - 1, shares) + 1;
    float slice_sums[kAtOnce] = {};
#pragma unroll 4
    for (int share = begin; share < end; ++share) {
      const Floats* const part = part_of<kRows, kColumns>(scratch, share, tile) +
                                 (high * (kSums / 4) + slice * (kAtOnce / 4)) * kThreads;
#pragma unroll
      for (int j = 0; j < kAtOnce / 4; ++j) {
        const Floats of_share = part[j * kThreads];
#pragma unroll
        for (int i = 0; i < 4; ++i) slice_sums[4 * j + i] += of_share[i];
      }
    }
    const ProductPlace place(problem, tile);
    Result<T>(c, y, problem)
        .write(slice_sums, place.batch, row_of(place, high), place.column * kColumns + 32 * slice);
  }
};

}  // namespace

// Names: dtype, whether a and b are transposed, rows and columns of a tile. 256 threads; dynamic shared memory of
// kStages * kStageBytes.
#define FB_WARPGROUP(T, SUFFIX, TA, TB, ROWS, COLUMNS)                                   \
  FB_KERNEL __attribute__((launch_bounds(kThreads, 1))) void                             \
      matmul_##SUFFIX##_##TA##TB##_##ROWS##x##COLUMNS(                                   \
          const unsigned short* a, const unsigned short* b, const float* c, void* y,     \
          float* scratch, int m, int n, int k, int batches, int is_wide, int is_split) { \
    Matmul<T, ROWS, COLUMNS, TA, TB>::run(                                               \
        a, b, c, y, scratch,                                                             \
        Problem(m, n, k, batches, is_wide != 0, is_split != 0, ROWS, COLUMNS));          \
  }
#define FB_WARPGROUP_LAYOUTS(T, SUFFIX, ROWS, COLUMNS) \
  FB_WARPGROUP(T, SUFFIX, 0, 0, ROWS, COLUMNS)         \
  FB_WARPGROUP(T, SUFFIX, 0, 1, ROWS, COLUMNS)         \
  FB_WARPGROUP(T, SUFFIX, 1, 0, ROWS, COLUMNS)         \
  FB_WARPGROUP(T, SUFFIX, 1, 1, ROWS, COLUMNS)
// Grid: tiles, and for each 64 rows of a warpgroup each 32 columns.
#define FB_PARTS(T, SUFFIX, ROWS, COLUMNS)                                                    \
  FB_KERNEL                                                                                   \
  __attribute__((launch_bounds(kThreads))) void matmul_parts_##SUFFIX##_##ROWS##x##COLUMNS(   \
      const float* c, void* y, float* scratch, int m, int n, int k, int batches, int is_wide, \
      int shares) {                                                                           \
    Matmul<T, ROWS, COLUMNS, false, false>::sum_parts(                                        \
        c, y, scratch, Problem(m, n, k, batches, is_wide != 0, true, ROWS, COLUMNS), shares); \
  }
#define FB_WARPGROUP_TILE(ROWS, COLUMNS)          \
  FB_WARPGROUP_LAYOUTS(Bf16, bf16, ROWS, COLUMNS) \
  FB_PARTS(Bf16, bf16, ROWS, COLUMNS)             \
  FB_WARPGROUP_LAYOUTS(F16, f16, ROWS, COLUMNS)   \
  FB_PARTS(F16, f16, ROWS, COLUMNS)
FB_WARPGROUP_TILE(128, 256)
FB_WARPGROUP_TILE(128, 128)
