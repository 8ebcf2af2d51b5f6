// y [batch, m, n] = c + a b of bf16 or f16, sums in f32, by warpgroups of compute capability 9.0 (warpgroup.h). a [batch, m, k],
// or [k, m] transposed; b [batch, k, n], or [n, k]. c and a wide y are f32.
//
// A block has two warpgroups, which make the upper and the lower 64 rows of a tile of 128 rows, and goes through units of work,
// 64 of k of a tile each: it brings what two units on are made of by cp.async while tensor cores work, over the ends of
// tiles too. Whole tiles, every `blocks`-th; or, where that would leave multiprocessors idle, an equal share of all units in
// their order, whose partial sums go to scratch and are added in the order of k by a second launch (sum_parts).
//
// Bound: a tile of 128 x 256 takes 1024 cycles of tensor cores for 48 KiB from L2. Writes go from registers, whole sectors at a
// time, to no shared memory.
#include "fullbore/device/cuda/kernels/warpgroup.h"

namespace {

constexpr int kRows = 128;
constexpr int kThreads = 256;
constexpr int kChunk = 8;        // elements of 16 bytes
constexpr int kRowsAtOnce = 32;  // of 128 bytes, that the block brings
constexpr int kGroup = 16;       // rows of tiles that share columns of b in L2

extern FB_SHARED __attribute__((aligned(1024))) unsigned char dynamic_shared[];

struct Problem {
  int m, n, k, batches;
  bool is_wide;              ///< y is f32
  bool is_split;             ///< units are shared out, partial sums go to scratch
  int rows, columns, steps;  ///< tiles of a batch, units of a tile
  FB_DEVICE Problem(int m, int n, int k, int batches, bool is_wide, bool is_split, int tile)
      : m(m),
        n(n),
        k(k),
        batches(batches),
        is_wide(is_wide),
        is_split(is_split),
        rows((m + kRows - 1) / kRows),
        columns((n + tile - 1) / tile),
        steps(most(1, (k + kStepDepth - 1) / kStepDepth)) {}
  FB_DEVICE int tiles() const { return rows * columns * batches; }
  FB_DEVICE long units() const { return static_cast<long>(tiles()) * steps; }
};

/// Where a tile lies: groups of rows, by columns in a group.
struct Place {
  int batch, row, column;
  FB_DEVICE Place(const Problem& of, int tile) {
    const int of_batch = of.rows * of.columns, in_batch = tile % of_batch;
    const int of_group = kGroup * of.columns, in_group = in_batch % of_group;
    const int first = in_batch / of_group * kGroup, height = least(kGroup, of.rows - first);
    batch = tile / of_batch;
    row = first + in_group % height;
    column = in_group / height;
  }
};

/// Of units that are shared out: the first of a share, and the share that a unit belongs to.
FB_DEVICE long first_unit(const Problem& of, int share, int shares) {
  return of.units() * share / shares;
}
FB_DEVICE int share_of(const Problem& of, long unit, int shares) {
  return static_cast<int>(((unit + 1) * shares - 1) / of.units());
}

/// A block's units, one after another.
struct Walk {
  int tile, step, stride;
  int left;
  FB_DEVICE explicit Walk(const Problem& of) {
    if (of.is_split) {
      const long first = first_unit(of, block_x(), blocks_x());
      tile = static_cast<int>(first / of.steps);
      step = static_cast<int>(first % of.steps);
      stride = 1;
      left = static_cast<int>(first_unit(of, block_x() + 1, blocks_x()) - first);
    } else {
      tile = block_x();
      step = 0;
      stride = blocks_x();
      left = (of.tiles() - tile + stride - 1) / stride * of.steps;
    }
  }
  /// Units that are left of the tile.
  FB_DEVICE int of_tile(const Problem& of) const { return least(of.steps - step, left); }
  FB_DEVICE void advance(const Problem& of, int units) {
    left -= units;
    step += units;
    if (step < of.steps) return;
    step = 0;
    tile += stride;
  }
};

/// kLines lines of one operand (rows of a, columns of b) on their way to shared memory. A thread brings chunk thread % 8 of
/// each 32nd row of 128 bytes.
template <int kLines, bool kDepthLast>
struct Operand {
  static constexpr int kChunks = kLines * kStepDepth / kChunk / kThreads;

  const unsigned short* from;  ///< of the batch
  int lines, depths, line0;
  bool are_chunks;  ///< may 16 bytes be read at once?

  FB_DEVICE void bring(unsigned tile, int step) const {
    const int row = thread() / 8, part = thread() % 8 * kChunk;
    const unsigned to = tile + static_cast<unsigned>(row * 128 + ((thread() % 8 ^ row % 8) << 4));
    const int outer = row + (kDepthLast ? line0 : step * kStepDepth);
    const int inner = part + (kDepthLast ? step * kStepDepth : line0);
    const int outers = kDepthLast ? lines : depths, inners = kDepthLast ? depths : lines;
    const unsigned short* const first = from + static_cast<long>(outer) * inners + inner;
    // Of chunk i: rows of memory behind the first, and elements.
    const auto down = [](int i) __attribute__((device)) {
      return kRowsAtOnce * (kDepthLast ? i : i % 2);
    };
    const auto across = [](int i) __attribute__((device)) { return kDepthLast ? 0 : i / 2 * 64; };
    if (are_chunks) {
#pragma unroll
      for (int i = 0; i < kChunks; ++i) {
        const bool there = outer + down(i) < outers && inner + across(i) < inners;
        copy_later(to + static_cast<unsigned>(i * kRowsAtOnce * 128),
                   there ? first + static_cast<long>(down(i)) * inners + across(i) : from,
                   there ? 16 : 0);
      }
      return;
    }
#pragma unroll 1
    for (int i = 0; i < kChunks; ++i)
#pragma unroll 1
      for (int e = 0; e < kChunk; ++e) {
        const bool there = outer + down(i) < outers && inner + across(i) + e < inners;
        const unsigned short element =
            there ? first[static_cast<long>(down(i)) * inners + across(i) + e] : 0;
        asm volatile("st.shared.b16 [%0], %1;" ::"r"(
                         to + static_cast<unsigned>(i * kRowsAtOnce * 128 + 2 * e)),
                     "h"(element)
                     : "memory");
      }
  }
};

FB_DEVICE bool is_aligned(const void* base, int contiguous) {
  return reinterpret_cast<unsigned long>(base) % 16 == 0 && contiguous % kChunk == 0;
}

FB_DEVICE unsigned pair_of(float low, float high, Bf16) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
FB_DEVICE unsigned pair_of(float low, float high, F16) {
  unsigned pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
FB_DEVICE unsigned from_lane_xor(unsigned x, int mask) {
  return static_cast<unsigned>(__nvvm_shfl_sync_bfly_i32(kAllLanes, static_cast<int>(x), mask, 31));
}

/// Lanes l and l ^ mask exchange the second word of the lower for the first of the upper.
FB_DEVICE void exchange(unsigned& first, unsigned& second, int mask) {
  const bool is_upper = (thread() & mask) != 0;
  const unsigned got = from_lane_xor(is_upper ? first : second, mask);
  first = is_upper ? got : first;
  second = is_upper ? second : got;
}

/// Lane 4 g + t has word i of row t of a matrix of four lanes; it gets word t of row i.
FB_DEVICE void transpose(unsigned (&words)[4]) {
  exchange(words[0], words[1], 1);
  exchange(words[2], words[3], 1);
  exchange(words[0], words[2], 2);
  exchange(words[1], words[3], 2);
}

typedef float Vector2 __attribute__((ext_vector_type(2)));
typedef float Floats __attribute__((ext_vector_type(4)));

/// The same address, made here: sums of it and of constants are not kept in registers from the kernel's start.
template <class P>
FB_DEVICE P* here(P* address) {
  auto global = (__attribute__((address_space(1))) P*)address;
  asm volatile("" : "+l"(global));
  return (P*)global;
}

/// What is written of a tile: y = c + sums.
template <class T>
struct Result {
  const float* c;
  void* y;
  int m, n;
  bool is_wide;
  bool by_vectors;  ///< are rows of y and c aligned to what is written at once?

  FB_DEVICE Result(const float* c, void* y, const Problem& of)
      : c(c),
        y(y),
        m(of.m),
        n(of.n),
        is_wide(of.is_wide),
        by_vectors(is_aligned(y, n) && (c == nullptr || is_aligned(c, n))) {}

  /// Sums of a thread, of 8 columns each four. Those of a wide y are 32 bytes of four lanes; others exchange theirs, for 64.
  template <int kSums>
  FB_DEVICE void write(const float (&sums)[kSums], const Place& place, int column0) const {
    const int row = place.row * kRows + thread() / kWarp * 16 + thread() % kWarp / 4;
    const long batch = static_cast<long>(place.batch) * m;
    if (by_vectors) {
      write_rows<0>(sums, batch, row, column0);
      write_rows<1>(sums, batch, row + 8, column0);
      return;
    }
    float kept[kSums];  // in local memory: registers have no index, and code for each would be long
#pragma unroll
    for (int i = 0; i < kSums; ++i) kept[i] = sums[i];
#pragma unroll 1
    for (int i = 0; i < kSums; ++i)
      write_one(batch, row + i % 4 / 2 * 8, column0 + i / 4 * 8 + thread() % 4 * 2 + i % 2,
                kept[i]);
  }

 private:
  FB_DEVICE void write_one(long batch, int row, int column, float sum) const {
    if (row >= m || column >= n) return;
    const long at = (batch + row) * n + column;
    if (is_wide)
      static_cast<float*>(y)[at] = c != nullptr ? c[at] + sum : sum;
    else
      store(static_cast<T*>(y) + at, sum);
  }

  template <int kHalf, int kSums>
  FB_DEVICE void write_rows(const float (&sums)[kSums], long batch, int row, int column0) const {
    const int t = thread() % 4;
    const long at_row = (batch + row) * n;
    if (is_wide) {
      const int there = row < m ? n - column0 - 2 * t : 0;
      float* const to = here(static_cast<float*>(y) + at_row + column0 + 2 * t);
      const float* const from = here(c + at_row + column0 + 2 * t);
      // Several reads before the first write, which c may share its bytes with.
      constexpr int kAtOnce = least(kSums / 4, 8);
#pragma unroll
      for (int j0 = 0; j0 < kSums / 4; j0 += kAtOnce) {
        Vector2 values[kAtOnce];
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
          values[j] = 0;
          if (c != nullptr && 8 * (j0 + j) < there)
            values[j] = *reinterpret_cast<const Vector2*>(from + 8 * (j0 + j));
        }
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
          const int at = 4 * (j0 + j) + 2 * kHalf;
          if (8 * (j0 + j) < there)
            *reinterpret_cast<Vector2*>(to + 8 * (j0 + j)) =
                values[j] + Vector2{sums[at], sums[at + 1]};
        }
      }
      return;
    }
    const int there = row < m ? n - column0 - 8 * t : 0;
    T* const to = here(static_cast<T*>(y) + at_row + column0 + 8 * t);
#pragma unroll
    for (int j = 0; j < kSums / 4; j += 4) {
      unsigned words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        words[i] = pair_of(sums[4 * (j + i) + 2 * kHalf], sums[4 * (j + i) + 2 * kHalf + 1], T{});
      transpose(words);
      if (8 * j < there)
        *reinterpret_cast<Vector4*>(to + 8 * j) = Vector4{words[0], words[1], words[2], words[3]};
    }
  }
};

/// Partial sums in scratch, of a block's share of a tile: what each thread has of 8 columns.
template <int kColumns>
FB_DEVICE Floats* part_of(float* scratch, int block, int tile) {
  return reinterpret_cast<Floats*>(scratch) +
         static_cast<long>(block + tile) * (kRows * kColumns / 4) + thread();
}

template <class T, int kColumns, bool kTransposeA, bool kTransposeB>
struct Matmul {
  using OperandA = Operand<kRows, !kTransposeA>;
  using OperandB = Operand<kColumns, kTransposeB>;
  static constexpr int kBytesOfA = kRows / 64 * kLinesBytes;
  static constexpr int kStageBytes = kBytesOfA + kColumns / 64 * kLinesBytes;
  static constexpr int kStages = 192 * 1024 / kStageBytes;
  static constexpr int kSums = kColumns / 2;  // of a thread

  FB_DEVICE static void run(const unsigned short* a, const unsigned short* b, const float* c,
                            void* y, float* scratch, const Problem& problem) {
    const unsigned shared = shared_address(dynamic_shared);
    const unsigned long operand_a =
        operand_at<!kTransposeA>(shared + static_cast<unsigned>(thread() / 128 * kLinesBytes));
    const unsigned long operand_b = operand_at<kTransposeB>(shared + kBytesOfA);
    const Result<T> result(c, y, problem);
    Walk walk(problem), ahead(problem);
    OperandA of_a{a, problem.m, problem.k, 0, is_aligned(a, kTransposeA ? problem.m : problem.k)};
    OperandB of_b{b, problem.n, problem.k, 0, is_aligned(b, kTransposeB ? problem.k : problem.n)};
    int to = 0;
    int known = -1;
    const auto bring = [&]() __attribute__((device)) {
      if (ahead.left > 0) {
        if (ahead.tile != known) {
          known = ahead.tile;
          const Place place(problem, known);
          of_a.from = a + static_cast<long>(place.batch) * problem.m * problem.k;
          of_b.from = b + static_cast<long>(place.batch) * problem.n * problem.k;
          of_a.line0 = place.row * kRows;
          of_b.line0 = place.column * kColumns;
        }
        const unsigned stage = shared + static_cast<unsigned>(to * kStageBytes);
        of_a.bring(stage, ahead.step);
        of_b.bring(stage + kBytesOfA, ahead.step);
        ahead.advance(problem, 1);
      }
      to = to + 1 == kStages ? 0 : to + 1;
      commit_copies();
    };
#pragma unroll 1
    for (int i = 0; i < kStages - 2; ++i) bring();
    float sums[kSums] = {};
    int from = 0;
#pragma unroll 1
    while (walk.left > 0) {
      const int units = walk.of_tile(problem);
#pragma unroll 1
      for (int unit = 0; unit < units; ++unit) {
        wait_for_copies<kStages - 3>();
        show_tensor_cores();
        barrier();  // the stage is there for all, and products of the stage before the last are complete
        const unsigned long stage = from * static_cast<unsigned long>(kStageBytes >> 4);
        begin_products();
#pragma unroll
        for (int i = 0; i < kStepDepth / 16; ++i)
          add_product<kTransposeA, !kTransposeB>(
              sums, operand_a + stage + i * kNextDepth<!kTransposeA>,
              operand_b + stage + i * kNextDepth<kTransposeB>, unit > 0 || i > 0, T{});
        commit_products();
        bring();
        wait_for_products<1>();
        from = from + 1 == kStages ? 0 : from + 1;
      }
      wait_for_sums(sums);
      if (problem.is_split) {
        Floats* const part = part_of<kColumns>(scratch, block_x(), walk.tile);
#pragma unroll
        for (int j = 0; j < kSums / 4; ++j)
          part[j * kThreads] =
              Floats{sums[4 * j], sums[4 * j + 1], sums[4 * j + 2], sums[4 * j + 3]};
      } else {
        const Place place(problem, walk.tile);
        result.write(sums, place, place.column * kColumns);
      }
      walk.advance(problem, units);
    }
    wait_for_copies<0>();
  }
};

/// Sums the shares of a tile that blocks of `shares` have left, 32 columns of it, in the order of k.
template <class T, int kColumns>
FB_DEVICE void sum_parts(const float* c, void* y, float* scratch, const Problem& problem,
                         int shares) {
  constexpr int kSums = 16;
  const int tile = block_x(), first = block_y() * kSums / 4;
  const long unit = static_cast<long>(tile) * problem.steps;
  const int begin = share_of(problem, unit, shares);
  const int end = share_of(problem, unit + problem.steps - 1, shares) + 1;
  float sums[kSums] = {};
#pragma unroll 2
  for (int share = begin; share < end; ++share) {
    const Floats* const part = part_of<kColumns>(scratch, share, tile) + first * kThreads;
#pragma unroll
    for (int j = 0; j < kSums / 4; ++j) {
      const Floats of_share = part[j * kThreads];
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[4 * j + i] += of_share[i];
    }
  }
  const Place place(problem, tile);
  Result<T>(c, y, problem).write(sums, place, place.column * kColumns + 8 * first);
}

}  // namespace

// Names: dtype, whether a and b are transposed, columns of a tile. 256 threads, 192 KiB of dynamic shared memory.
#define FB_WARPGROUP(T, SUFFIX, TA, TB, TILE)                                                     \
  FB_KERNEL __attribute__((launch_bounds(kThreads, 1))) void matmul_##SUFFIX##_##TA##TB##_##TILE( \
      const unsigned short* a, const unsigned short* b, const float* c, void* y, float* scratch,  \
      int m, int n, int k, int batches, int is_wide, int is_split) {                              \
    Matmul<T, TILE, TA, TB>::run(a, b, c, y, scratch,                                             \
                                 Problem(m, n, k, batches, is_wide != 0, is_split != 0, TILE));   \
  }
#define FB_WARPGROUP_TILES(T, SUFFIX, TA, TB) \
  FB_WARPGROUP(T, SUFFIX, TA, TB, 256)        \
  FB_WARPGROUP(T, SUFFIX, TA, TB, 128)
#define FB_WARPGROUP_LAYOUTS(T, SUFFIX) \
  FB_WARPGROUP_TILES(T, SUFFIX, 0, 0)   \
  FB_WARPGROUP_TILES(T, SUFFIX, 0, 1)   \
  FB_WARPGROUP_TILES(T, SUFFIX, 1, 0)   \
  FB_WARPGROUP_TILES(T, SUFFIX, 1, 1)
FB_WARPGROUP_LAYOUTS(Bf16, bf16)
FB_WARPGROUP_LAYOUTS(F16, f16)

// A block for each tile and each 32 columns of it.
#define FB_PARTS(T, SUFFIX, TILE)                                                             \
  FB_KERNEL __attribute__((launch_bounds(kThreads))) void matmul_parts_##SUFFIX##_##TILE(     \
      const float* c, void* y, float* scratch, int m, int n, int k, int batches, int is_wide, \
      int shares) {                                                                           \
    sum_parts<T, TILE>(c, y, scratch, Problem(m, n, k, batches, is_wide != 0, true, TILE),    \
                       shares);                                                               \
  }
FB_PARTS(Bf16, bf16, 256)
FB_PARTS(Bf16, bf16, 128)
FB_PARTS(F16, f16, 256)
FB_PARTS(F16, f16, 128)
