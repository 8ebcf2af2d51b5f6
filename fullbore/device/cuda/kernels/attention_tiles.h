#pragma once
// What attention without a bias and its gradient share: tiles of rows in shared memory, products of a warp that keeps its
// operands in registers, and which pairs of a query and a key count.
#include "fullbore/device/cuda/kernels/attention_scores.h"
#include "fullbore/device/cuda/kernels/tensor_core.h"

constexpr int kChunk = 8;  // elements of 16 bytes

extern FB_SHARED __attribute__((aligned(1024))) unsigned char dynamic_shared[];

FB_DEVICE int lane() { return thread() % kWarp; }
FB_DEVICE int warp() { return thread() / kWarp; }
// One instruction each: a power below the normal numbers is 0.
FB_DEVICE float exponential2(float x) { return __nvvm_ex2_approx_ftz_f(x); }
FB_DEVICE float larger(float a, float b) { return __nvvm_fmax_f(a, b); }
FB_DEVICE unsigned from_lane(unsigned x, int from) {
  return static_cast<unsigned>(
      __nvvm_shfl_sync_idx_i32(kAllLanes, static_cast<int>(x), from, kWarp - 1));
}

/// All rows of q, k, v or dy of one head.
struct Rows {
  const unsigned short* first;
  long stride;
  int count, width;
  bool are_chunks;  ///< may 16 bytes be read at once?

  FB_DEVICE Rows(const unsigned short* base, const AttentionStrides& strides, int batch, int head,
                 int tokens, int of_width)
      : first(base + offset_of(strides, batch, head, 0)),
        stride(strides.token),
        count(tokens),
        width(of_width),
        are_chunks(reinterpret_cast<unsigned long>(first) % 16 == 0 && stride % kChunk == 0 &&
                   of_width % kChunk == 0) {}
};

/// Rows of kWidth elements in shared memory, each at a multiple of its bytes; elements beyond the operand are zeros. Chunks
/// of a row are in an order of its own, so that the same chunk of eight rows in a row lies in all banks.
template <int kWidth>
struct HeadTile {
  static constexpr int kRowBytes = 2 * kWidth, kChunksOfRow = kWidth / kChunk;

  FB_DEVICE static unsigned at(int row, int chunk) {
    return static_cast<unsigned>(row * kRowBytes + ((chunk ^ row % 8) << 4));
  }

  /// Rows [token, token + kRows) by a block of kThreads.
  template <int kRows, int kThreads>
  FB_DEVICE static void bring(unsigned tile, const Rows& rows, int token) {
    constexpr int kStep = kThreads / kChunksOfRow;  // rows from a thread's chunk to its next
    static_assert(kThreads % kChunksOfRow == 0 && kRows % kStep == 0);
    // Places are made anew for each tile: over all of a block's work they would hold registers.
    const int self = unknown(thread()), first = self / kChunksOfRow, chunk = self % kChunksOfRow;
    const unsigned short* from = rows.first + (token + first) * rows.stride + chunk * kChunk;
    if (rows.are_chunks) {
      const int limit = chunk * kChunk < rows.width ? rows.count - token : 0;
#pragma unroll
      for (int i = 0; i < kRows / kStep; ++i) {
        const int row = first + i * kStep;
        const bool is_there = row < limit;
        copy_later(tile + at(row, chunk), is_there ? from : rows.first, is_there ? 16 : 0);
        from += kStep * rows.stride;
      }
      return;
    }
#pragma unroll 1
    for (int row = first; row < kRows; row += kStep) {
      const int there = token + row < rows.count ? rows.width - chunk * kChunk : 0;
#pragma unroll 1
      for (int word = 0; word < kChunk / 2; ++word) {
        const unsigned low = 2 * word < there ? from[2 * word] : 0;
        const unsigned high = 2 * word + 1 < there ? from[2 * word + 1] : 0;
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(tile + at(row, chunk) + 4 * word),
                     "r"(high << 16 | low)
                     : "memory");
      }
      from += kStep * rows.stride;
    }
  }
};

// Where a lane's row of four 8 x 8 matrices lies from the tile's first row and column on: of a left operand [16,16] and of a
// right one that is stored as rows along K, and of a right one [16,16] that is stored as columns. Columns from C on, C a
// multiple of 16: its exclusive or with 2 C.
template <int kWidth>
FB_DEVICE unsigned along_rows() {
  return HeadTile<kWidth>::at(lane() / 8 % 2 * 8 + lane() % 8, lane() / 16);
}
template <int kWidth>
FB_DEVICE unsigned along_columns() {
  return HeadTile<kWidth>::at(lane() / 16 * 8 + lane() % 8, lane() / 8 % 2);
}

/// Sums of a warp: kFragments times 16 rows. A thread has of eight columns two, of two rows.
template <int kFragments, int kColumns>
using Sums = float[kFragments][kColumns / 8][4];
/// A left operand of a warp.
template <int kFragments, int kDepth>
using Left = unsigned[kFragments][kDepth / 16][4];

template <int kFragments, int kColumns>
FB_DEVICE void clear(Sums<kFragments, kColumns>& sums) {
#pragma unroll
  for (auto& fragment : sums)
#pragma unroll
    for (auto& of_column : fragment)
#pragma unroll
      for (float& sum : of_column) sum = 0;
}

// Below, `rows` and `columns` are addresses of shared memory with along_rows() and along_columns() added; kFrom: bytes from
// there to the tile, so that tiles at known distances share registers with addresses.

/// Rows [0, 16 kFragments) of a tile as a left operand.
template <int kWidth, int kFragments>
FB_DEVICE void load_left(Left<kFragments, kWidth>& left, unsigned rows) {
#pragma unroll
  for (int fragment = 0; fragment < kFragments; ++fragment)
#pragma unroll
    for (int depth = 0; depth < kWidth; depth += 16)
      load_matrices(left[fragment][depth / 16],
                    (rows ^ 2 * depth) + 16 * fragment * HeadTile<kWidth>::kRowBytes);
}

/// sums = left times rows [0, kColumns) of a tile, transposed.
template <class T, int kWidth, int kFragments, int kColumns, int kFrom>
FB_DEVICE void multiply_rows(Sums<kFragments, kColumns>& sums, const Left<kFragments, kWidth>& left,
                             unsigned columns) {
  clear<kFragments, kColumns>(sums);
#pragma unroll
  for (int depth = 0; depth < kWidth; depth += 16)
#pragma unroll
    for (int column = 0; column < kColumns; column += 16) {
      unsigned b[4];
      load_matrices(b, (columns ^ 2 * depth) + (kFrom + column * HeadTile<kWidth>::kRowBytes));
#pragma unroll
      for (int fragment = 0; fragment < kFragments; ++fragment) {
        multiply(sums[fragment][column / 8], left[fragment][depth / 16], b[0], b[1], T{});
        multiply(sums[fragment][column / 8 + 1], left[fragment][depth / 16], b[2], b[3], T{});
      }
    }
}
/// The same with a left operand that stays in shared memory.
template <class T, int kWidth, int kFragments, int kColumns, int kLeftFrom, int kFrom>
FB_DEVICE void multiply_tiles(Sums<kFragments, kColumns>& sums, unsigned left_rows,
                              unsigned columns) {
  clear<kFragments, kColumns>(sums);
#pragma unroll
  for (int depth = 0; depth < kWidth; depth += 16) {
    unsigned a[kFragments][4];
#pragma unroll
    for (int fragment = 0; fragment < kFragments; ++fragment)
      load_matrices(a[fragment], (left_rows ^ 2 * depth) +
                                     (kLeftFrom + 16 * fragment * HeadTile<kWidth>::kRowBytes));
#pragma unroll
    for (int column = 0; column < kColumns; column += 16) {
      unsigned b[4];
      load_matrices(b, (columns ^ 2 * depth) + (kFrom + column * HeadTile<kWidth>::kRowBytes));
#pragma unroll
      for (int fragment = 0; fragment < kFragments; ++fragment) {
        multiply(sums[fragment][column / 8], a[fragment], b[0], b[1], T{});
        multiply(sums[fragment][column / 8 + 1], a[fragment], b[2], b[3], T{});
      }
    }
  }
}
/// sums += left times rows [0, kDepth) of a tile.
template <class T, int kWidth, int kFragments, int kDepth, int kFrom>
FB_DEVICE void add_product(Sums<kFragments, kWidth>& sums, const Left<kFragments, kDepth>& left,
                           unsigned rows) {
#pragma unroll
  for (int depth = 0; depth < kDepth; depth += 16)
#pragma unroll
    for (int column = 0; column < kWidth; column += 16) {
      unsigned b[4];
      load_transposed(b, (rows ^ 2 * column) + (kFrom + depth * HeadTile<kWidth>::kRowBytes));
#pragma unroll
      for (int fragment = 0; fragment < kFragments; ++fragment) {
        multiply(sums[fragment][column / 8], left[fragment][depth / 16], b[0], b[1], T{});
        multiply(sums[fragment][column / 8 + 1], left[fragment][depth / 16], b[2], b[3], T{});
      }
    }
}

FB_DEVICE unsigned rounded_pair(float low, float high, Bf16) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
FB_DEVICE unsigned rounded_pair(float low, float high, F16) {
  unsigned pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
/// Sums as the left operand of a next product.
template <class T, int kFragments, int kColumns>
FB_DEVICE void round_left(Left<kFragments, kColumns>& to, const Sums<kFragments, kColumns>& from) {
#pragma unroll
  for (int fragment = 0; fragment < kFragments; ++fragment)
#pragma unroll
    for (int step = 0; step < kColumns / 16; ++step)
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        const float* const pair = &from[fragment][2 * step + part / 2][part % 2 * 2];
        to[fragment][step][part] = rounded_pair(pair[0], pair[1], T{});
      }
}

/// Rows of a result from the sums of a warp, whose first row is `token`; `factors`: of the two rows of each fragment.
template <class T, int kWidth, int kFragments>
FB_DEVICE void write(T* to, const AttentionStrides& strides, int batch, int head, int token,
                     int tokens, int width, const Sums<kFragments, kWidth>& sums,
                     const float (&factors)[kFragments][2]) {
  T* const head_rows = to + offset_of(strides, batch, head, 0);
  const bool are_pairs = reinterpret_cast<unsigned long>(head_rows) % 4 == 0 &&
                         strides.token % 2 == 0 && width % 2 == 0;
#pragma unroll
  for (int fragment = 0; fragment < kFragments; ++fragment)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = token + 16 * fragment + 8 * half + lane() / 4, first = lane() % 4 * 2;
      if (row >= tokens) continue;
      T* const at = head_rows + row * strides.token + first;
      const float factor = factors[fragment][half];
#pragma unroll
      for (int column = 0; column < kWidth / 8; ++column) {
        const float low = sums[fragment][column][2 * half] * factor,
                    high = sums[fragment][column][2 * half + 1] * factor;
        const int left = width - first - 8 * column;
        if (left <= 0) continue;
        if (are_pairs) {
          *reinterpret_cast<unsigned*>(at + 8 * column) = rounded_pair(low, high, T{});
        } else {
          store(at + 8 * column, low);
          if (left > 1) store(at + 8 * column + 1, high);
        }
      }
    }
}

/// How a block is made up: its warps, the 16-row fragments of a warp, the rows of a tile that it walks over, and how many of those
/// are worked on at once.
template <int kOfWarps, int kOfFragments, int kOfTile, int kOfPart>
struct Form {
  static constexpr int kWarps = kOfWarps, kFragments = kOfFragments, kTile = kOfTile,
                       kPart = kOfPart;
  static constexpr int kThreads = kWarps * kWarp, kRows = kWarps * kFragments * 16;
};

/// Which tile of which head a block has. Tiles go from the longest on over 64 heads at a time, whose operands the L2 cache
/// holds: the last blocks are short, and there are enough of them to fill up what longer ones leave.
struct TilePlace {
  int batch, head, tile;
  FB_DEVICE TilePlace(int index, int tiles, int heads, int batches) {
    constexpr int kTogether = 64;
    const int together = kTogether * tiles, first = index / together * kTogether;
    const int pairs = least(kTogether, heads * batches - first);
    tile = index % together / pairs;
    const int pair = first + index % together % pairs;
    head = pair % heads;
    batch = pair / heads;
  }
};

struct Operands {
  const unsigned short *q, *k, *v, *dy;
  const float *log_sum_exp, *delta;
  const void* mask;
  const unsigned long *seed, *step, *iteration;

  FB_DEVICE ScoreRules rules(const AttentionProblem& p, int batch, int head) const {
    return ScoreRules(p, mask, seed, step, iteration, batch, head);
  }
};

/// Bits of 32 keys from a multiple of 32 on, for the query of each lane, `query` + lane: does a mask of truth values let it
/// see the key, and does its weight stay? Made by the whole warp.
struct KeyBits {
  unsigned seen = ~0U, kept = ~0U;

  FB_DEVICE void make(const ScoreRules& rules, int query, int key) {
    const AttentionProblem& p = rules.problem;
    if (p.mask != fullbore::cuda::kStoredNone) make_seen(rules, query, key);
    if (p.drops == 0) return;
    kept = 0;
    // Each draw is a long chain: four at a time.
    const int of_lane = least(query + lane(), p.queries - 1);
#pragma unroll
    for (int eighth = 0; eighth < 4; ++eighth)
      kept |= static_cast<unsigned>(rules.kept(of_lane, key / 8 + eighth)) << 8 * eighth;
  }

 private:
  FB_DEVICE void make_seen(const ScoreRules& rules, int query, int key) {
    const AttentionProblem& p = rules.problem;
    const auto* const mask = static_cast<const unsigned char*>(rules.mask) +
                             offset_of(p.mask_strides, rules.batch, rules.head, 0) + key + lane();
    const bool is_key = key + lane() < p.keys;
    if (p.mask_strides.token == 0) {
      seen = ballot(is_key && *mask != 0);
      return;
    }
#pragma unroll 1
    for (int row = 0; row < kWarp && query + row < p.queries; ++row) {
      const unsigned of_row = ballot(is_key && mask[(query + row) * p.mask_strides.token] != 0);
      if (lane() == row) seen = of_row;
    }
  }
};

FB_DEVICE bool has_bit(unsigned bits, int bit) { return (bits >> bit & 1) != 0; }
