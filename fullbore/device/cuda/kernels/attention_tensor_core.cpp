// Attention for bf16 and f16, and its gradient for bf16, by tensor cores, heads up to 64 or 128 wide, with whatever stands
// between products and scores: what attention_unbiased.cpp does not take. A block of four warps has 64 queries (for the
// cotangents of keys and values: 64 keys), a warp 16 of them, and walks over tiles of 64 keys (queries). Weights go from
// one product to the next in registers, rounded to the operands' dtype: a warp's sums lie as its left operand does. No
// matrix of queries by keys is stored (Dao 2023, arXiv:2307.08691).
//
// Bound: of a tile of W columns 64 x 64 x W products for each of its two (gradient: five) products, by 256 W bytes from L2.
#include "fullbore/device/cuda/kernels/attention_scores.h"
#include "fullbore/device/cuda/kernels/tensor_core.h"

namespace {

constexpr int kTile = 64;
constexpr int kThreads = 128;
constexpr int kOfWarp = 16;   // rows
constexpr int kPad = 8;       // elements: rows of shared memory begin in different banks
constexpr int kChunk = 8;     // elements of 16 bytes
constexpr int kColumns = 64;  // of dk and dv: a block's, for the sums of both have to fit registers
constexpr int kDraws = kTile / 8;

extern FB_SHARED __attribute__((aligned(16))) unsigned char dynamic_shared[];

using Scores = float[kTile / 8][4];       // of a warp: 16 x 64
using Operand = unsigned[kTile / 16][4];  // the same, rounded, as a left operand

/// Rows of q, k, v or dy from some token on.
struct Rows {
  const unsigned short* first;
  long stride;
  int count, width;
  bool are_chunks;  ///< may 16 bytes be read at once?

  FB_DEVICE Rows(const unsigned short* base, const AttentionStrides& strides, int batch, int head,
                 int token, int tokens, int of_width)
      : first(base + offset_of(strides, batch, head, token)),
        stride(strides.token),
        count(tokens - token),
        width(of_width),
        are_chunks(reinterpret_cast<unsigned long>(first) % 16 == 0 && stride % kChunk == 0 &&
                   of_width % kChunk == 0) {}
};

/// 64 rows of kWidth elements in shared memory; those beyond the operand are zeros.
template <int kWidth>
struct Tile {
  static constexpr int kRow = kWidth + kPad;
  static constexpr int kBytes = kTile * kRow * 2;

  FB_DEVICE static unsigned at(unsigned tile, int row, int column) {
    return tile + 2 * static_cast<unsigned>(row * kRow + column);
  }
  FB_DEVICE static void bring(unsigned tile, const Rows& rows) {
    constexpr int kChunksOfRow = kWidth / kChunk;
    constexpr int kChunks = kTile * kChunksOfRow / kThreads;  // of a thread
#pragma unroll 2
    for (int i = 0; i < kChunks; ++i) {
      const int e = thread() + i * kThreads;
      const int row = e / kChunksOfRow, column = e % kChunksOfRow * kChunk;
      const int there = row < rows.count ? most(0, least(kChunk, rows.width - column)) : 0;
      const unsigned short* const from = rows.first + row * rows.stride + column;
      const unsigned to = at(tile, row, column);
      if (rows.are_chunks) {
        copy_later(to, there > 0 ? from : rows.first, 2 * there);
        continue;
      }
#pragma unroll 1
      for (int word = 0; word < kChunk / 2; ++word) {
        const unsigned low = 2 * word < there ? from[2 * word] : 0;
        const unsigned high = 2 * word + 1 < there ? from[2 * word + 1] : 0;
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(to + 4 * word), "r"(high << 16 | low)
                     : "memory");
      }
    }
  }
};

// Which matrix a lane gives the address of, and which of its rows.
FB_DEVICE int matrix() { return thread() % kWarp / 8; }
FB_DEVICE int line() { return thread() % 8; }

// sums [16, 64] = rows `row0` and on of `left` times all rows of `right`.
template <class T, int kWidth>
FB_DEVICE void multiply_rows(Scores& sums, unsigned left, int row0, unsigned right) {
  using Of = Tile<kWidth>;
#pragma unroll
  for (auto& of_column : sums)
    for (float& sum : of_column) sum = 0;
#pragma unroll
  for (int depth = 0; depth < kWidth; depth += 16) {
    unsigned a[4];
    load_matrices(a, Of::at(left, row0 + matrix() % 2 * 8 + line(), depth + matrix() / 2 * 8));
#pragma unroll
    for (int column = 0; column < kTile; column += 16) {
      unsigned b[4];
      load_matrices(b, Of::at(right, column + matrix() / 2 * 8 + line(), depth + matrix() % 2 * 8));
      multiply(sums[column / 8], a, b[0], b[1], T{});
      multiply(sums[column / 8 + 1], a, b[2], b[3], T{});
    }
  }
}

// sums [16, kOut] += a [16, 64] times columns `column0` and on of the 64 rows of a tile.
template <class T, int kWidth, int kOut>
FB_DEVICE void add_product(float (&sums)[kOut / 8][4], const Operand& a, unsigned tile,
                           int column0) {
#pragma unroll
  for (int depth = 0; depth < kTile; depth += 16)
#pragma unroll
    for (int column = 0; column < kOut; column += 16) {
      unsigned b[4];
      load_transposed(b, Tile<kWidth>::at(tile, depth + matrix() % 2 * 8 + line(),
                                          column0 + column + matrix() / 2 * 8));
      multiply(sums[column / 8], a[depth / 16], b[0], b[1], T{});
      multiply(sums[column / 8 + 1], a[depth / 16], b[2], b[3], T{});
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
template <class T>
FB_DEVICE void round_operand(Operand& to, const Scores& from) {
#pragma unroll
  for (int step = 0; step < kTile / 16; ++step)
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      const float* const pair = &from[2 * step + part / 2][part % 2 * 2];
      to[step][part] = rounded_pair(pair[0], pair[1], T{});
    }
}

// Rows and columns of a thread's part of Scores.
FB_DEVICE int row_of(int part) {
  return thread() / kWarp * kOfWarp + thread() % kWarp / 4 + part / 2 * 8;
}
FB_DEVICE int column_of(int column, int part) { return 8 * column + thread() % 4 * 2 + part % 2; }

/// What stands between products and weights of one tile, made by all threads of the block before they need it: a draw is
/// long, and a mask has many forms.
struct TileRules {
  unsigned char kept[kTile][kDraws];  ///< of dropout: a bit a key, by query
  float bias[kTile][kTile + 1];       ///< of a mask

  FB_DEVICE void make(const ScoreRules& rules, int query0, int key0) {
    const AttentionProblem& p = rules.problem;
    if (p.drops != 0)
#pragma unroll 1
      for (int e = thread(); e < kTile * kDraws; e += kThreads)
        kept[e / kDraws][e % kDraws] =
            rules.kept(least(query0 + e / kDraws, p.queries - 1), key0 / 8 + e % kDraws);
    if (p.mask != fullbore::cuda::kStoredNone)
#pragma unroll 1
      for (int e = thread(); e < kTile * kTile; e += kThreads) {
        const int query = query0 + e / kTile, key = key0 + e % kTile;
        const bool is_there = query < p.queries && key < p.keys;
        bias[e / kTile][e % kTile] = is_there ? rules.bias(query, key) : 0;
      }
  }
  FB_DEVICE bool is_kept(int query, int key) const {
    return (kept[query][key / 8] >> key % 8 & 1) != 0;
  }
};

/// Where a tile begins, and whether every query of it sees every key, with nothing but the scale between products and
/// scores.
struct Corner {
  int query, key;
  bool is_plain;
  FB_DEVICE Corner(const AttentionProblem& p, int query0, int key0)
      : query(query0),
        key(key0),
        is_plain(p.mask == fullbore::cuda::kStoredNone && key0 + kTile <= visible_keys(p, query0) &&
                 query0 + kTile <= p.queries) {}
};

// Of a product, by the places of its query and key in the tile.
FB_DEVICE float score_of(float product, const AttentionProblem& p, const TileRules& tile,
                         const Corner& corner, int query, int key) {
  const float scaled = product * p.scale;
  if (corner.is_plain) return scaled;
  const int at_query = corner.query + query, at_key = corner.key + key;
  const int most_keys = p.is_causal != 0 ? at_query + 1 + p.keys - p.queries : p.keys;
  if (at_query >= p.queries || at_key >= least(p.keys, most_keys)) return minus_infinity();
  if (p.mask == fullbore::cuda::kStoredNone) return scaled;
  const float bias = tile.bias[query][key];
  return bias == minus_infinity() ? bias : scaled + bias;
}

/// What a block works on.
struct Block {
  int batch, head, token0, column0;
  FB_DEVICE Block(int tokens, int heads, int chunks) {
    const int tiles = (tokens + kTile - 1) / kTile;
    int index = block_x();
    token0 = index % tiles * kTile;
    index /= tiles;
    column0 = index % chunks * kColumns;
    index /= chunks;
    head = index % heads;
    batch = index / heads;
  }
};

struct Operands {
  const unsigned short *q, *k, *v, *dy;
  const void *log_sum_exp, *delta, *mask;
  const unsigned long *seed, *step, *iteration;

  FB_DEVICE ScoreRules rules(const AttentionProblem& p, int batch, int head) const {
    return ScoreRules(p, mask, seed, step, iteration, batch, head);
  }
};

// Rows of a result from the sums of a warp, each half of them times a factor.
template <class T, int kOut>
FB_DEVICE void write(T* to, const AttentionStrides& strides, int batch, int head, int token0,
                     int tokens, int column0, int width, const float (&sums)[kOut / 8][4],
                     const float (&factors)[2]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int token = token0 + row_of(2 * half), first = column0 + column_of(0, 0);
    if (token >= tokens) continue;
    T* const row = to + offset_of(strides, batch, head, token) + first;
#pragma unroll
    for (int column = 0; column < kOut / 8; ++column)
#pragma unroll
      for (int part = 0; part < 2; ++part)
        if (first + 8 * column + part < width)
          store(row + 8 * column + part, sums[column][2 * half + part] * factors[half]);
  }
}

FB_DEVICE float quad_most(float x) {
  for (int mask = 1; mask < 4; mask *= 2) x = most(x, from_lane_xor(x, mask));
  return x;
}
FB_DEVICE float quad_sum(float x) {
  for (int mask = 1; mask < 4; mask *= 2) x += from_lane_xor(x, mask);
  return x;
}

template <class T, int kWidth>
FB_DEVICE void attend(const Operands& of, T* y, float* log_sum_exp, const AttentionProblem& p) {
  using Of = Tile<kWidth>;
  FB_SHARED static TileRules tile;
  const unsigned q_tile = shared_address(dynamic_shared), k_tile = q_tile + Of::kBytes,
                 v_tile = k_tile + Of::kBytes;
  const Block block(p.queries, p.heads, 1);
  const int group = block.head / (p.heads / p.groups), query0 = block.token0;
  const ScoreRules rules = of.rules(p, block.batch, block.head);
  const int last = visible_keys(p, least(p.queries, query0 + kTile) - 1);
  const auto bring_keys = [&](int key0) __attribute__((device)) {
    if (key0 < last) Of::bring(k_tile, Rows(of.k, p.k, block.batch, group, key0, p.keys, p.width));
    commit_copies();
  };
  const auto bring_values = [&](int key0) __attribute__((device)) {
    if (key0 < last) Of::bring(v_tile, Rows(of.v, p.v, block.batch, group, key0, p.keys, p.width));
    commit_copies();
  };
  Of::bring(q_tile, Rows(of.q, p.q, block.batch, block.head, query0, p.queries, p.width));
  bring_keys(0);
  bring_values(0);
  float largest[2] = {minus_infinity(), minus_infinity()}, sum[2] = {};
  float result[kWidth / 8][4] = {};
  for (int key0 = 0; key0 < last; key0 += kTile) {
    tile.make(rules, query0, key0);
    wait_for_copies<1>();
    barrier();
    Scores scores;
    multiply_rows<T, kWidth>(scores, q_tile, thread() / kWarp * kOfWarp, k_tile);
    barrier();
    bring_keys(key0 + kTile);
    const Corner corner(p, query0, key0);
    float of_tile[2] = {minus_infinity(), minus_infinity()};
#pragma unroll
    for (int column = 0; column < kTile / 8; ++column)
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        float& score = scores[column][part];
        score = score_of(score, p, tile, corner, row_of(part), column_of(column, part));
        of_tile[part / 2] = most(of_tile[part / 2], score);
      }
    float shift[2], rescale[2], of_row[2] = {};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float before = largest[half];
      largest[half] = most(before, quad_most(of_tile[half]));
      // Without a key so far nothing is scaled; -inf less -inf would be no number.
      shift[half] = largest[half] == minus_infinity() ? 0 : largest[half];
      rescale[half] = exponential(before - shift[half]);
    }
#pragma unroll
    for (int column = 0; column < kTile / 8; ++column)
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        float& weight = scores[column][part];
        weight = exponential(weight - shift[part / 2]);
        of_row[part / 2] += weight;
        if (p.drops != 0)
          weight = tile.is_kept(row_of(part), column_of(column, part)) ? weight * p.kept_factor : 0;
      }
#pragma unroll
    for (int half = 0; half < 2; ++half)
      sum[half] = sum[half] * rescale[half] + quad_sum(of_row[half]);
#pragma unroll
    for (auto& of_column : result)
#pragma unroll
      for (int part = 0; part < 4; ++part) of_column[part] *= rescale[part / 2];
    Operand weights;
    round_operand<T>(weights, scores);
    wait_for_copies<1>();
    barrier();
    add_product<T, kWidth, kWidth>(result, weights, v_tile, 0);
    barrier();
    bring_values(key0 + kTile);
  }
  wait_for_copies<0>();
  float factors[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const bool sees_none = largest[half] == minus_infinity();
    factors[half] = sees_none ? 0 : 1 / sum[half];
    const int query = query0 + row_of(2 * half);
    if (thread() % 4 == 0 && query < p.queries)
      log_sum_exp[offset_of(p.log_sum_exp_strides, block.batch, block.head, query)] =
          sees_none ? 0 : largest[half] + logarithm(sum[half]);
  }
  write<T, kWidth>(y, p.y, block.batch, block.head, query0, p.queries, 0, p.width, result, factors);
}

/// Row statistics of a tile of queries.
struct Statistics {
  float log_sum_exp[kTile], delta[kTile];
  FB_DEVICE void bring(const Operands& of, const AttentionProblem& p, int batch, int head,
                       int query0) {
    for (int row = thread(); row < kTile; row += kThreads) {
      const int query = least(query0 + row, p.queries - 1);
      log_sum_exp[row] =
          read(of.log_sum_exp, p.log_sum_exp, offset_of(p.log_sum_exp_strides, batch, head, query));
      delta[row] = read(of.delta, p.delta, offset_of(p.delta_strides, batch, head, query));
    }
  }
};

// Of one product of q and k and one of dy and v: `weight` becomes the weight that values meet, `slope` the cotangent of
// the score times the scale. query and key: within their tiles.
FB_DEVICE void make_slope(float& weight, float& slope, const AttentionProblem& p,
                          const TileRules& tile, const Statistics& statistics, const Corner& corner,
                          int query, int key) {
  const float score = score_of(weight, p, tile, corner, query, key);
  const bool is_seen = score != minus_infinity();
  const float of_score = is_seen ? exponential(score - statistics.log_sum_exp[query]) : 0;
  const float factor = p.drops == 0 ? 1 : tile.is_kept(query, key) ? p.kept_factor : 0;
  weight = of_score * factor;
  slope = is_seen ? of_score * (factor * slope - statistics.delta[query]) * p.scale : 0;
}

template <class T, int kWidth>
FB_DEVICE void pull_back_queries(const Operands& of, T* dq, const AttentionProblem& p) {
  using Of = Tile<kWidth>;
  FB_SHARED static TileRules tile;
  FB_SHARED static Statistics statistics;
  const unsigned q_tile = shared_address(dynamic_shared), dy_tile = q_tile + Of::kBytes,
                 k_tile = dy_tile + Of::kBytes, v_tile = k_tile + Of::kBytes;
  const Block block(p.queries, p.heads, 1);
  const int group = block.head / (p.heads / p.groups), query0 = block.token0;
  const int row0 = thread() / kWarp * kOfWarp;
  const ScoreRules rules = of.rules(p, block.batch, block.head);
  const int last = visible_keys(p, least(p.queries, query0 + kTile) - 1);
  Of::bring(q_tile, Rows(of.q, p.q, block.batch, block.head, query0, p.queries, p.width));
  Of::bring(dy_tile, Rows(of.dy, p.y, block.batch, block.head, query0, p.queries, p.width));
  statistics.bring(of, p, block.batch, block.head, query0);
  float result[kWidth / 8][4] = {};
  for (int key0 = 0; key0 < last; key0 += kTile) {
    Of::bring(k_tile, Rows(of.k, p.k, block.batch, group, key0, p.keys, p.width));
    Of::bring(v_tile, Rows(of.v, p.v, block.batch, group, key0, p.keys, p.width));
    commit_copies();
    tile.make(rules, query0, key0);
    wait_for_copies<0>();
    barrier();
    Scores weights, slopes;
    multiply_rows<T, kWidth>(weights, q_tile, row0, k_tile);
    multiply_rows<T, kWidth>(slopes, dy_tile, row0, v_tile);
    const Corner corner(p, query0, key0);
#pragma unroll
    for (int column = 0; column < kTile / 8; ++column)
#pragma unroll
      for (int part = 0; part < 4; ++part)
        make_slope(weights[column][part], slopes[column][part], p, tile, statistics, corner,
                   row_of(part), column_of(column, part));
    Operand left;
    round_operand<T>(left, slopes);
    add_product<T, kWidth, kWidth>(result, left, k_tile, 0);
    barrier();  // before the tiles are brought anew
  }
  wait_for_copies<0>();
  write<T, kWidth>(dq, p.q, block.batch, block.head, query0, p.queries, 0, p.width, result, {1, 1});
}

// Scores are made transposed, a warp having 16 keys, so that weights lie as left operands of both products.
template <class T, int kWidth>
FB_DEVICE void pull_back_keys(const Operands& of, T* dk, T* dv, const AttentionProblem& p) {
  using Of = Tile<kWidth>;
  FB_SHARED static TileRules tile;
  FB_SHARED static Statistics statistics;
  const unsigned k_tile = shared_address(dynamic_shared), v_tile = k_tile + Of::kBytes,
                 q_tile = v_tile + Of::kBytes, dy_tile = q_tile + Of::kBytes;
  const Block block(p.keys, p.groups, (p.width + kColumns - 1) / kColumns);
  const int group = block.head, sharing = p.heads / p.groups, key0 = block.token0;
  const int row0 = thread() / kWarp * kOfWarp;
  Of::bring(k_tile, Rows(of.k, p.k, block.batch, group, key0, p.keys, p.width));
  Of::bring(v_tile, Rows(of.v, p.v, block.batch, group, key0, p.keys, p.width));
  float of_key[kColumns / 8][4] = {}, of_value[kColumns / 8][4] = {};
  for (int head = group * sharing; head < (group + 1) * sharing; ++head) {
    const ScoreRules rules = of.rules(p, block.batch, head);
    for (int query0 = 0; query0 < p.queries; query0 += kTile) {
      if (visible_keys(p, least(p.queries, query0 + kTile) - 1) <= key0) continue;
      Of::bring(q_tile, Rows(of.q, p.q, block.batch, head, query0, p.queries, p.width));
      Of::bring(dy_tile, Rows(of.dy, p.y, block.batch, head, query0, p.queries, p.width));
      commit_copies();
      statistics.bring(of, p, block.batch, head, query0);
      tile.make(rules, query0, key0);
      wait_for_copies<0>();
      barrier();
      Scores weights, slopes;
      multiply_rows<T, kWidth>(weights, k_tile, row0, q_tile);
      multiply_rows<T, kWidth>(slopes, v_tile, row0, dy_tile);
      const Corner corner(p, query0, key0);
#pragma unroll
      for (int column = 0; column < kTile / 8; ++column)
#pragma unroll
        for (int part = 0; part < 4; ++part)
          make_slope(weights[column][part], slopes[column][part], p, tile, statistics, corner,
                     column_of(column, part), row_of(part));
      Operand left;
      round_operand<T>(left, weights);
      add_product<T, kWidth, kColumns>(of_value, left, dy_tile, block.column0);
      round_operand<T>(left, slopes);
      add_product<T, kWidth, kColumns>(of_key, left, q_tile, block.column0);
      barrier();  // before the tiles are brought anew
    }
  }
  wait_for_copies<0>();
  write<T, kColumns>(dk, p.k, block.batch, group, key0, p.keys, block.column0, p.width, of_key,
                     {1, 1});
  write<T, kColumns>(dv, p.v, block.batch, group, key0, p.keys, block.column0, p.width, of_value,
                     {1, 1});
}

}  // namespace

// Names: dtype and the most columns of a head. Shared memory is dynamic: three tiles, of gradients four, of 64 rows of so
// many columns and 8, 2 bytes each.
#define FB_FORWARD(T, SUFFIX, WIDTH)                                                               \
  FB_KERNEL void attention_##SUFFIX##_##WIDTH(                                                     \
      const unsigned short* q, const unsigned short* k, const unsigned short* v, const void* mask, \
      const unsigned long* seed, const unsigned long* step, const unsigned long* iteration, T* y,  \
      float* log_sum_exp, AttentionProblem problem) {                                              \
    attend<T, WIDTH>({q, k, v, nullptr, nullptr, nullptr, mask, seed, step, iteration}, y,         \
                     log_sum_exp, problem);                                                        \
  }
#define FB_GRADIENT(T, SUFFIX, WIDTH)                                                              \
  FB_KERNEL void attention_queries_##SUFFIX##_##WIDTH(                                             \
      const unsigned short* q, const unsigned short* k, const unsigned short* v,                   \
      const unsigned short* dy, const void* log_sum_exp, const void* delta, const void* mask,      \
      const unsigned long* seed, const unsigned long* step, const unsigned long* iteration, T* dq, \
      AttentionProblem problem) {                                                                  \
    pull_back_queries<T, WIDTH>({q, k, v, dy, log_sum_exp, delta, mask, seed, step, iteration},    \
                                dq, problem);                                                      \
  }                                                                                                \
  FB_KERNEL void attention_keys_##SUFFIX##_##WIDTH(                                                \
      const unsigned short* q, const unsigned short* k, const unsigned short* v,                   \
      const unsigned short* dy, const void* log_sum_exp, const void* delta, const void* mask,      \
      const unsigned long* seed, const unsigned long* step, const unsigned long* iteration, T* dk, \
      T* dv, AttentionProblem problem) {                                                           \
    pull_back_keys<T, WIDTH>({q, k, v, dy, log_sum_exp, delta, mask, seed, step, iteration}, dk,   \
                             dv, problem);                                                         \
  }
FB_FORWARD(Bf16, bf16, 64)
FB_FORWARD(Bf16, bf16, 128)
FB_FORWARD(F16, f16, 64)
FB_FORWARD(F16, f16, 128)
// Not of f16: cotangents of scores are often too small for it.
FB_GRADIENT(Bf16, bf16, 64)
FB_GRADIENT(Bf16, bf16, 128)
