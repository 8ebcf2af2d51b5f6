// The gradient of attention without a bias on scores, for bf16 by tensor cores: masks of truth values, dropout, causal or
// not, heads up to 64 or 128 wide, a scale above 0. One launch: blocks for the cotangents of keys and values, then
// blocks for those of queries. A warp has 16 keys (queries), and goes over tiles of queries (keys), of which the next is
// copied while one is worked on, 16 or 32 of them at a time. Scores are made by both kinds of blocks, in the order in which
// they are left operands of the products behind: no block waits for another, and none adds to what another has written.
//
// Bound: of each score 14 W flops of tensor cores (W: columns) and two exponentials.
#include "fullbore/device/cuda/kernels/attention_tiles.h"

namespace {

constexpr int kStep = 32;  // queries or keys whose draws are made at once

/// Of a row or column of scores: log-sum-exp, as a power of two, and delta.
struct Statistics {
  float log_sum_exp, delta;
};

/// The cotangents of a warp's queries.
template <class T, int kWidth, class Form, bool kRuled>
struct OfQueries {
  static constexpr int kFragments = Form::kFragments, kPart = Form::kPart;
  static constexpr int kToValues = Form::kTile * HeadTile<kWidth>::kRowBytes;

  const AttentionProblem& p;
  const int query0;    ///< of the warp
  const float factor;  ///< of a product, to powers of two
  Left<kFragments, kWidth> q, dy;
  Statistics rows[kFragments][2];
  Sums<kFragments, kWidth> dq;

  FB_DEVICE OfQueries(const Operands& of, const AttentionProblem& problem, int batch, int head,
                      int query)
      : p(problem), query0(query), factor(problem.scale * kLog2E) {
    clear<kFragments, kWidth>(dq);
#pragma unroll
    for (int fragment = 0; fragment < kFragments; ++fragment)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = least(query0 + 16 * fragment + 8 * half + lane() / 4, p.queries - 1);
        rows[fragment][half] = {
            of.log_sum_exp[offset_of(p.log_sum_exp_strides, batch, head, row)] * kLog2E,
            of.delta[offset_of(p.delta_strides, batch, head, row)]};
      }
  }

  /// Keys [key0, key0 + 32), which lie at `keys` in their tile, behind which is that of values.
  FB_DEVICE void add(const ScoreRules& rules, int key0, unsigned keys) {
    KeyBits bits;
    if constexpr (kRuled) bits.make(rules, query0, key0);
#pragma unroll 1
    for (int part = 0; part < kStep; part += kPart) {
      add(bits, key0 + part, keys + part * HeadTile<kWidth>::kRowBytes);
      bits.seen >>= kPart % kStep;
      bits.kept >>= kPart % kStep;
    }
  }

 private:
  FB_DEVICE void add(const KeyBits& bits, int key0, unsigned keys) {
    Sums<kFragments, kPart> weights, slopes;
    const unsigned columns = keys + along_columns<kWidth>();
    multiply_rows<T, kWidth, kFragments, kPart, 0>(weights, q, columns);
    multiply_rows<T, kWidth, kFragments, kPart, kToValues>(slopes, dy, columns);
    const bool is_cut = key0 + kPart > visible_keys(p, query0);
#pragma unroll
    for (int fragment = 0; fragment < kFragments; ++fragment)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int line = 16 * fragment + 8 * half + lane() / 4;
#pragma unroll
        for (int column = 0; column < kPart / 8; ++column)
#pragma unroll
          for (int part = 2 * half; part < 2 * half + 2; ++part) {
            float& weight = weights[fragment][column][part];
            weight = exponential2(weight * factor - rows[fragment][half].log_sum_exp);
          }
        if (is_cut) {
          const int seen = visible_keys(p, query0 + line) - key0 - lane() % 4 * 2;
          keep(
              weights[fragment],
              half, [&](int key) __attribute__((device, always_inline)) { return key < seen; });
        }
        unsigned kept = ~0U;
        if constexpr (kRuled) {
          if (p.mask != fullbore::cuda::kStoredNone) {
            const unsigned seen = from_lane(bits.seen, line) >> lane() % 4 * 2;
            keep(
                weights[fragment], half, [&](int key) __attribute__((device, always_inline)) {
                  return has_bit(seen, key);
                });
          }
          if (p.drops != 0) kept = from_lane(bits.kept, line) >> lane() % 4 * 2;
        }
#pragma unroll
        for (int column = 0; column < kPart / 8; ++column)
#pragma unroll
          for (int part = 0; part < 2; ++part) {
            float& slope = slopes[fragment][column][2 * half + part];
            if constexpr (kRuled)
              if (p.drops != 0)
                slope = has_bit(kept, 8 * column + part) ? slope * p.kept_factor : 0;
            slope =
                weights[fragment][column][2 * half + part] * (slope - rows[fragment][half].delta);
          }
      }
    Left<kFragments, kPart> left;
    round_left<T, kFragments, kPart>(left, slopes);
    add_product<T, kWidth, kFragments, kPart, 0>(dq, left, keys + along_rows<kWidth>());
  }

  template <class Keeps>
  FB_DEVICE static void keep(float (&weights)[kPart / 8][4], int half, const Keeps& keeps) {
#pragma unroll
    for (int column = 0; column < kPart / 8; ++column)
#pragma unroll
      for (int part = 0; part < 2; ++part)
        if (!keeps(8 * column + part)) weights[column][2 * half + part] = 0;
  }
};

template <class T, int kWidth, class Form, bool kRuled>
FB_DEVICE void pull_back_queries(const Operands& of, T* dq, const AttentionProblem& p, int index) {
  using Of = HeadTile<kWidth>;
  constexpr int kTileBytes = Form::kTile * Of::kRowBytes, kFragments = Form::kFragments;
  constexpr int kRowsBytes = Form::kRows * Of::kRowBytes;
  const int tiles = (p.queries + Form::kRows - 1) / Form::kRows;
  const TilePlace place(index, tiles, p.heads, p.batch);
  const int group = place.head / (p.heads / p.groups);
  const int block0 = (tiles - 1 - place.tile) * Form::kRows;
  const int last = visible_keys(p, least(p.queries, block0 + Form::kRows) - 1);
  const unsigned q_tile = shared_address(dynamic_shared), dy_tile = q_tile + kRowsBytes,
                 stages = dy_tile + kRowsBytes;
  const Rows keys(of.k, p.k, place.batch, group, p.keys, p.width);
  const Rows values(of.v, p.v, place.batch, group, p.keys, p.width);
  const auto bring = [&](unsigned stage, int key0) __attribute__((device, always_inline)) {
    if (key0 < last) {
      Of::template bring<Form::kTile, Form::kThreads>(stage, keys, key0);
      Of::template bring<Form::kTile, Form::kThreads>(stage + kTileBytes, values, key0);
    }
    commit_copies();
  };
  Of::template bring<Form::kRows, Form::kThreads>(
      q_tile, Rows(of.q, p.q, place.batch, place.head, p.queries, p.width), block0);
  Of::template bring<Form::kRows, Form::kThreads>(
      dy_tile, Rows(of.dy, p.y, place.batch, place.head, p.queries, p.width), block0);
  commit_copies();
  bring(stages, 0);
  const ScoreRules rules = of.rules(p, place.batch, place.head);
  const int of_warp = warp() * kFragments * 16, query0 = block0 + of_warp;
  // Of a warp beyond the last query: none.
  const int last_of_warp =
      query0 < p.queries ? visible_keys(p, least(p.queries, query0 + 16 * kFragments) - 1) : 0;
  OfQueries<T, kWidth, Form, kRuled> sums(of, p, place.batch, place.head, query0);
  wait_for_copies<1>();
  barrier();
  const unsigned rows = along_rows<kWidth>() + of_warp * Of::kRowBytes;
  load_left<kWidth, kFragments>(sums.q, q_tile + rows);
  load_left<kWidth, kFragments>(sums.dy, dy_tile + rows);
  unsigned stage = stages, other = stages + 2 * kTileBytes;
#pragma unroll 1
  for (int key0 = 0; key0 < last; key0 += Form::kTile) {
    wait_for_copies<0>();
    barrier();
    bring(other, key0 + Form::kTile);
#pragma unroll 1
    for (int row = 0; row < Form::kTile && key0 + row < last_of_warp; row += kStep)
      sums.add(rules, key0 + row, stage + row * Of::kRowBytes);
    const unsigned next = other;
    other = stage;
    stage = next;
  }
  wait_for_copies<0>();
  float factors[kFragments][2];
#pragma unroll
  for (auto& fragment : factors) fragment[0] = fragment[1] = p.scale;
  write<T, kWidth, kFragments>(dq, p.q, place.batch, place.head, query0, p.queries, p.width,
                               sums.dq, factors);
}

/// The cotangents of a warp's keys and values. Scores are made transposed. Queries and keys beyond the last are zeros, and
/// so is what they add to others.
template <class T, int kWidth, class Form, bool kRuled>
struct OfKeys {
  static constexpr int kFragments = Form::kFragments, kPart = Form::kPart;
  static constexpr int kRowBytes = HeadTile<kWidth>::kRowBytes;
  static constexpr int kToValues = Form::kRows * kRowBytes, kToSlopes = Form::kTile * kRowBytes;
  static constexpr int kToDelta = 4 * Form::kTile;

  const AttentionProblem& p;
  const int key0;      ///< of the warp
  const float factor;  ///< of a product, to powers of two
  Sums<kFragments, kWidth> dk, dv;

  FB_DEVICE OfKeys(const AttentionProblem& problem, int key)
      : p(problem), key0(key), factor(problem.scale * kLog2E) {
    clear<kFragments, kWidth>(dk);
    clear<kFragments, kWidth>(dv);
  }

  /// Queries [query, query + 32). `keys`: where the warp's keys lie, in their tile, behind which is that of values; `queries`
  /// and `statistics` likewise: of the queries, and of their log-sum-exp and delta.
  FB_DEVICE void add(const ScoreRules& rules, int query, unsigned keys, unsigned queries,
                     unsigned statistics) {
    KeyBits bits;
    if constexpr (kRuled) bits.make(rules, query, key0 / 32 * 32);
#pragma unroll 1
    for (int part = 0; part < kStep; part += kPart)
      add(bits, part, query + part, keys, queries + part * kRowBytes, statistics + 4 * part);
  }

 private:
  /// `part`: the first query's place among those of the bits.
  FB_DEVICE void add(const KeyBits& bits, int part, int query, unsigned keys, unsigned queries,
                     unsigned statistics) {
    Sums<kFragments, kPart> weights, slopes;
    const unsigned columns = queries + along_columns<kWidth>(),
                   rows = queries + along_rows<kWidth>(), left_rows = keys + along_rows<kWidth>();
    multiply_tiles<T, kWidth, kFragments, kPart, 0, 0>(weights, left_rows, columns);
    multiply_tiles<T, kWidth, kFragments, kPart, kToValues, kToSlopes>(slopes, left_rows, columns);
    // Key at which a query sees none any more, less the first of the thread's keys, for the first of its queries.
    const int unseen = query + p.keys - p.queries + 1 - key0 + lane() % 4 * 2 - lane() / 4;
    const bool is_cut = p.is_causal != 0 && key0 + 16 * kFragments > query + 1 + p.keys - p.queries;
#pragma unroll
    for (int column = 0; column < kPart / 8; ++column) {
      const unsigned at = statistics + 4 * (8 * column + lane() % 4 * 2);
      float log_sum_exp[2], delta[2];
      read_pair(log_sum_exp, at);
      read_pair(delta, at + kToDelta);
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        const float shift = log_sum_exp[side] * kLog2E;
        unsigned seen = ~0U, kept = ~0U;
        if constexpr (kRuled) {
          const int from = part + 8 * column + lane() % 4 * 2 + side, by = key0 % 32 + lane() / 4;
          if (p.mask != fullbore::cuda::kStoredNone) seen = from_lane(bits.seen, from) >> by;
          if (p.drops != 0) kept = from_lane(bits.kept, from) >> by;
        }
#pragma unroll
        for (int fragment = 0; fragment < kFragments; ++fragment)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int key = 16 * fragment + 8 * half;
            float& weight = weights[fragment][column][2 * half + side];
            float& slope = slopes[fragment][column][2 * half + side];
            weight = exponential2(weight * factor - shift);
            if (is_cut && key - 8 * column - side >= unseen) weight = 0;
            if constexpr (kRuled) {
              if (p.mask != fullbore::cuda::kStoredNone && !has_bit(seen, key)) weight = 0;
              const float of_draw = p.drops == 0 ? 1 : has_bit(kept, key) ? p.kept_factor : 0;
              slope = weight * (slope * of_draw - delta[side]);
              weight *= of_draw;
            } else {
              slope = weight * (slope - delta[side]);
            }
          }
      }
    }
    Left<kFragments, kPart> left;
    round_left<T, kFragments, kPart>(left, weights);
    add_product<T, kWidth, kFragments, kPart, kToSlopes>(dv, left, rows);
    round_left<T, kFragments, kPart>(left, slopes);
    add_product<T, kWidth, kFragments, kPart, 0>(dk, left, rows);
  }

  FB_DEVICE static void read_pair(float (&to)[2], unsigned address) {
    asm volatile("ld.shared.v2.f32 {%0,%1}, [%2];"
                 : "=f"(to[0]), "=f"(to[1])
                 : "r"(address)
                 : "memory");
  }
};

template <class T, int kWidth, class Form, bool kRuled>
FB_DEVICE void pull_back_keys(const Operands& of, T* dk, T* dv, const AttentionProblem& p,
                              int index) {
  using Of = HeadTile<kWidth>;
  constexpr int kFragments = Form::kFragments, kTile = Form::kTile, kThreads = Form::kThreads;
  constexpr int kTileBytes = kTile * Of::kRowBytes, kRowsBytes = Form::kRows * Of::kRowBytes;
  constexpr int kStatistics = 4 * kTile, kStageBytes = 2 * (kTileBytes + kStatistics);
  const int tiles = (p.keys + Form::kRows - 1) / Form::kRows;
  const TilePlace place(index, tiles, p.groups, p.batch);
  const int group = place.head, sharing = p.heads / p.groups, block0 = place.tile * Form::kRows;
  const unsigned k_tile = shared_address(dynamic_shared), v_tile = k_tile + kRowsBytes,
                 stages = v_tile + kRowsBytes;
  Of::template bring<Form::kRows, kThreads>(
      k_tile, Rows(of.k, p.k, place.batch, group, p.keys, p.width), block0);
  Of::template bring<Form::kRows, kThreads>(
      v_tile, Rows(of.v, p.v, place.batch, group, p.keys, p.width), block0);
  // Steps: tiles of queries of which one sees a key of the block, for each head of the group.
  const int first =
      p.is_causal != 0 ? least(most(0, block0 - (p.keys - p.queries)), p.queries) / kTile : 0;
  const int of_head = (p.queries + kTile - 1) / kTile - first;
  const auto bring = [&](int which, int head, int query0) __attribute__((device, always_inline)) {
    // Addresses of the batch are made anew each time, for they would hold registers in between.
    const int batch = unknown(place.batch);
    const unsigned stage = stages + which * kStageBytes;
    Of::template bring<kTile, kThreads>(stage, Rows(of.q, p.q, batch, head, p.queries, p.width),
                                        query0);
    Of::template bring<kTile, kThreads>(stage + kTileBytes,
                                        Rows(of.dy, p.y, batch, head, p.queries, p.width), query0);
#pragma unroll 1
    for (int row = thread(); row < kTile; row += kThreads) {
      const int query = least(query0 + row, p.queries - 1),
                bytes = query0 + row < p.queries ? 4 : 0;
      const unsigned to = stage + 2 * kTileBytes + 4 * row;
      copy_word(to, of.log_sum_exp + offset_of(p.log_sum_exp_strides, batch, head, query), bytes);
      copy_word(to + kStatistics, of.delta + offset_of(p.delta_strides, batch, head, query), bytes);
    }
  };
  const int of_warp = warp() * kFragments * 16, key0 = block0 + of_warp;
  OfKeys<T, kWidth, Form, kRuled> sums(p, key0);
  ScoreRules rules = of.rules(p, place.batch, group * sharing);
  // The step that is copied, of which there is none if its head is beyond the group.
  const int end = (group + 1) * sharing;
  int next_head = of_head > 0 ? group * sharing : end, next_tile = first;
  if (next_head < end) bring(0, next_head, next_tile * kTile);
  commit_copies();
  int which = 0;
#pragma unroll 1
  while (next_head < end) {
    const int head = next_head, query0 = next_tile * kTile;
    if (++next_tile == first + of_head) next_tile = first, ++next_head;
    wait_for_copies<0>();
    barrier();
    if (next_head < end) bring(which ^ 1, next_head, next_tile * kTile);
    commit_copies();
    rules.head = head;
    const unsigned stage = stages + which * kStageBytes;
#pragma unroll 1
    for (int row = 0; row < kTile; row += kStep) {
      const int query = query0 + row;
      if (key0 >= p.keys || query >= p.queries ||
          visible_keys(p, least(p.queries, query + kStep) - 1) <= key0)
        continue;
      sums.add(rules, query, k_tile + of_warp * Of::kRowBytes, stage + row * Of::kRowBytes,
               stage + 2 * kTileBytes + 4 * row);
    }
    which ^= 1;
  }
  wait_for_copies<0>();
  float of_value[kFragments][2], of_key[kFragments][2];
#pragma unroll
  for (int fragment = 0; fragment < kFragments; ++fragment)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      of_value[fragment][half] = 1, of_key[fragment][half] = p.scale;
  write<T, kWidth, kFragments>(dk, p.k, place.batch, group, key0, p.keys, p.width, sums.dk, of_key);
  write<T, kWidth, kFragments>(dv, p.v, place.batch, group, key0, p.keys, p.width, sums.dv,
                               of_value);
}

template <class T, int kWidth, class Form, bool kRuled>
FB_DEVICE void pull_back(const Operands& of, T* dq, T* dk, T* dv, const AttentionProblem& p) {
  const int of_keys = (p.keys + Form::kRows - 1) / Form::kRows * p.groups * p.batch;
  if (block_x() < of_keys)
    pull_back_keys<T, kWidth, Form, kRuled>(of, dk, dv, p, block_x());
  else
    pull_back_queries<T, kWidth, Form, kRuled>(of, dq, p, block_x() - of_keys);
}

}  // namespace

// Names as in attention_unbiased.cpp. Shared memory is dynamic: two tiles of a block's rows, four tiles that it walks over,
// and 16 bytes for each row of one of the latter.
#define FB_GRADIENT(T, NAME, WIDTH, RULED, BLOCKS, ...)                                       \
  FB_KERNEL                                                                                   \
  __attribute__((launch_bounds(Form<__VA_ARGS__>::kThreads, BLOCKS))) void                    \
      attention_gradient_##NAME(                                                              \
          const unsigned short* q, const unsigned short* k, const unsigned short* v,          \
          const unsigned short* dy, const float* log_sum_exp, const float* delta,             \
          const void* mask, const unsigned long* seed, const unsigned long* step,             \
          const unsigned long* iteration, T* dq, T* dk, T* dv, AttentionProblem problem) {    \
    pull_back<T, WIDTH, Form<__VA_ARGS__>, RULED>(                                            \
        {q, k, v, dy, log_sum_exp, delta, mask, seed, step, iteration}, dq, dk, dv, problem); \
  }
// Not of f16: cotangents of scores are often too small for it.
FB_GRADIENT(Bf16, bf16_64_64, 64, false, 3, 4, 1, 64, 32)
FB_GRADIENT(Bf16, bf16_64_64_ruled, 64, true, 3, 4, 1, 64, 16)
FB_GRADIENT(Bf16, bf16_64_32_ruled, 64, true, 2, 2, 1, 32, 32)
FB_GRADIENT(Bf16, bf16_128_64, 128, false, 2, 4, 1, 32, 32)
FB_GRADIENT(Bf16, bf16_128_64_ruled, 128, true, 2, 4, 1, 32, 16)
