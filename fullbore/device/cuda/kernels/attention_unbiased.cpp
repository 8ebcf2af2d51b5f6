// Attention for bf16 and f16 by tensor cores, without a bias on scores: masks of truth values, dropout, causal or not, heads
// up to 64 or 128 wide, a scale above 0. A warp has 32 queries (16 of wide heads, or with a mask or dropout) in
// registers, and a block of four warps walks over tiles of 64 keys, of which the next is copied while one is worked on;
// a block of two warps has a call of few queries. Weights go from one product to the next in registers, rounded to the
// operands' dtype: a warp's sums lie as its left operand does. No matrix of queries by keys is stored (Dao 2023,
// arXiv:2307.08691).
//
// Bound: of each score 4 W flops of tensor cores (W: columns) and one exponential, of which a multiprocessor makes 16 a clock.
#include "fullbore/device/cuda/kernels/attention_tiles.h"

namespace {

// Sums are scaled anew only if a row's largest score grows by more than this power of two: until then weights are larger
// than 1, which costs floats nothing.
constexpr float kSlack = 8;

FB_DEVICE float quad_most(float x) {
  for (int mask = 1; mask < 4; mask *= 2) x = larger(x, from_lane_xor(x, mask));
  return x;
}
FB_DEVICE float quad_sum(float x) {
  for (int mask = 1; mask < 4; mask *= 2) x += from_lane_xor(x, mask);
  return x;
}

/// Queries of one warp.
template <class T, int kWidth, class Form, bool kRuled>
struct Attending {
  static constexpr int kFragments = Form::kFragments, kKeys = Form::kPart;
  static constexpr int kToValues = Form::kTile * HeadTile<kWidth>::kRowBytes;

  const AttentionProblem& p;
  const int query0;    ///< of the warp
  const float factor;  ///< of a product, to powers of two
  Left<kFragments, kWidth> q;
  Sums<kFragments, kWidth> result;
  float largest[kFragments][2],
      sum[kFragments][2];  ///< products; of the latter this thread's columns

  FB_DEVICE Attending(const AttentionProblem& problem, int query)
      : p(problem), query0(query), factor(problem.scale * kLog2E) {
    clear<kFragments, kWidth>(result);
#pragma unroll
    for (int fragment = 0; fragment < kFragments; ++fragment)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        largest[fragment][half] = minus_infinity();
        sum[fragment][half] = 0;
      }
  }

  /// Keys [key0, key0 + kKeys), which lie at `keys` in their tile, behind which is that of values.
  FB_DEVICE void add(const ScoreRules& rules, int key0, unsigned keys) {
    KeyBits bits[kKeys / 32];
    if constexpr (kRuled)
#pragma unroll
      for (int word = 0; word < kKeys / 32; ++word)
        bits[word].make(rules, query0, key0 + 32 * word);
    Sums<kFragments, kKeys> scores;
    multiply_rows<T, kWidth, kFragments, kKeys, 0>(scores, q, keys + along_columns<kWidth>());
    if (key0 + kKeys > visible_keys(p, query0)) hide_unseen(scores, key0);
    if constexpr (kRuled)
      if (p.mask != fullbore::cuda::kStoredNone) hide_masked(scores, bits);
    rescale(scores);
#pragma unroll
    for (int fragment = 0; fragment < kFragments; ++fragment)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        // -inf less -inf would be no number.
        const float top = largest[fragment][half];
        const float shift = top == minus_infinity() ? 0 : top * factor;
#pragma unroll
        for (int column = 0; column < kKeys / 8; ++column)
#pragma unroll
          for (int part = 2 * half; part < 2 * half + 2; ++part) {
            float& weight = scores[fragment][column][part];
            weight = exponential2(weight * factor - shift);
            sum[fragment][half] += weight;
          }
      }
    if constexpr (kRuled)
      if (p.drops != 0) drop(scores, bits);
    Left<kFragments, kKeys> weights;
    round_left<T, kFragments, kKeys>(weights, scores);
    add_product<T, kWidth, kFragments, kKeys, kToValues>(result, weights,
                                                         keys + along_rows<kWidth>());
  }

 private:
  /// Keys that come too late, or that there are not.
  FB_DEVICE void hide_unseen(Sums<kFragments, kKeys>& scores, int key0) {
#pragma unroll
    for (int fragment = 0; fragment < kFragments; ++fragment)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int query = query0 + 16 * fragment + 8 * half + lane() / 4;
        const int seen = visible_keys(p, query) - key0 - lane() % 4 * 2;
#pragma unroll
        for (int column = 0; column < kKeys / 8; ++column)
#pragma unroll
          for (int part = 0; part < 2; ++part)
            if (8 * column + part >= seen)
              scores[fragment][column][2 * half + part] = minus_infinity();
      }
  }
  FB_DEVICE void hide_masked(Sums<kFragments, kKeys>& scores, const KeyBits (&bits)[kKeys / 32]) {
#pragma unroll
    for (int fragment = 0; fragment < kFragments; ++fragment)
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int word = 0; word < kKeys / 32; ++word) {
          const unsigned seen =
              from_lane(bits[word].seen, 16 * fragment + 8 * half + lane() / 4) >> lane() % 4 * 2;
#pragma unroll
          for (int column = 0; column < 4; ++column)
#pragma unroll
            for (int part = 0; part < 2; ++part)
              if (!has_bit(seen, 8 * column + part))
                scores[fragment][4 * word + column][2 * half + part] = minus_infinity();
        }
  }
  FB_DEVICE void drop(Sums<kFragments, kKeys>& weights, const KeyBits (&bits)[kKeys / 32]) {
#pragma unroll
    for (int fragment = 0; fragment < kFragments; ++fragment)
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int word = 0; word < kKeys / 32; ++word) {
          const unsigned kept =
              from_lane(bits[word].kept, 16 * fragment + 8 * half + lane() / 4) >> lane() % 4 * 2;
#pragma unroll
          for (int column = 0; column < 4; ++column)
#pragma unroll
            for (int part = 0; part < 2; ++part)
              if (!has_bit(kept, 8 * column + part))
                weights[fragment][4 * word + column][2 * half + part] = 0;
        }
  }
  FB_DEVICE void rescale(const Sums<kFragments, kKeys>& scores) {
    float of_tile[kFragments][2];
    bool grows = false;
#pragma unroll
    for (int fragment = 0; fragment < kFragments; ++fragment)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float top = minus_infinity();
#pragma unroll
        for (int column = 0; column < kKeys / 8; ++column)
          top = larger(top, larger(scores[fragment][column][2 * half],
                                   scores[fragment][column][2 * half + 1]));
        of_tile[fragment][half] = quad_most(top);
        grows |= (of_tile[fragment][half] - largest[fragment][half]) * factor > kSlack;
      }
    if (ballot(grows) == 0) return;
#pragma unroll
    for (int fragment = 0; fragment < kFragments; ++fragment)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float before = largest[fragment][half], now = larger(before, of_tile[fragment][half]);
        // Without a key so far there is nothing to scale.
        const float by = now == before ? 1 : exponential2((before - now) * factor);
        largest[fragment][half] = now;
        sum[fragment][half] *= by;
#pragma unroll
        for (int column = 0; column < kWidth / 8; ++column) {
          result[fragment][column][2 * half] *= by;
          result[fragment][column][2 * half + 1] *= by;
        }
      }
  }
};

template <class T, int kWidth, class Form, bool kRuled>
FB_DEVICE void attend(const Operands& of, T* y, float* log_sum_exp, const AttentionProblem& p) {
  using Of = HeadTile<kWidth>;
  constexpr int kTileBytes = Form::kTile * Of::kRowBytes, kFragments = Form::kFragments;
  const int tiles = (p.queries + Form::kRows - 1) / Form::kRows;
  const TilePlace place(block_x(), tiles, p.heads, p.batch);
  const int group = place.head / (p.heads / p.groups);
  const int block0 = (tiles - 1 - place.tile) * Form::kRows;
  const int last = visible_keys(p, least(p.queries, block0 + Form::kRows) - 1);
  const unsigned q_tile = shared_address(dynamic_shared),
                 stages = q_tile + Form::kRows * Of::kRowBytes;
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
  commit_copies();
  bring(stages, 0);
  const ScoreRules rules = of.rules(p, place.batch, place.head);
  const int of_warp = warp() * kFragments * 16, query0 = block0 + of_warp;
  // Of a warp beyond the last query: none.
  const int last_of_warp =
      query0 < p.queries ? visible_keys(p, least(p.queries, query0 + 16 * kFragments) - 1) : 0;
  Attending<T, kWidth, Form, kRuled> warp_sums(p, query0);
  wait_for_copies<1>();
  barrier();
  load_left<kWidth, kFragments>(warp_sums.q,
                                q_tile + along_rows<kWidth>() + of_warp * Of::kRowBytes);
  unsigned stage = stages, other = stages + 2 * kTileBytes;
#pragma unroll 1
  for (int key0 = 0; key0 < last; key0 += Form::kTile) {
    wait_for_copies<0>();
    barrier();
    bring(other, key0 + Form::kTile);
#pragma unroll 1
    for (int row = 0; row < Form::kTile && key0 + row < last_of_warp; row += Form::kPart)
      warp_sums.add(rules, key0 + row, stage + row * Of::kRowBytes);
    const unsigned next = other;
    other = stage;
    stage = next;
  }
  wait_for_copies<0>();
  float factors[kFragments][2];
#pragma unroll
  for (int fragment = 0; fragment < kFragments; ++fragment)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float top = warp_sums.largest[fragment][half],
                  sum = quad_sum(warp_sums.sum[fragment][half]);
      const bool sees_none = top == minus_infinity();
      factors[fragment][half] = sees_none ? 0 : (p.drops != 0 ? p.kept_factor : 1) / sum;
      const int query = query0 + 16 * fragment + 8 * half + lane() / 4;
      if (lane() % 4 == 0 && query < p.queries)
        log_sum_exp[offset_of(p.log_sum_exp_strides, place.batch, place.head, query)] =
            sees_none ? 0 : top * p.scale + logarithm(sum);
    }
  write<T, kWidth, kFragments>(y, p.y, place.batch, place.head, query0, p.queries, p.width,
                               warp_sums.result, factors);
}

}  // namespace

// Names: dtype, the most columns of a head, and the queries of a block; `ruled`: with a mask or dropout, or without.
// Shared memory is dynamic: the queries of a block and four tiles of keys, rows of so many columns of 2 bytes.
#define FB_FORWARD(T, NAME, WIDTH, RULED, BLOCKS, ...)                                             \
  FB_KERNEL                                                                                        \
  __attribute__((launch_bounds(Form<__VA_ARGS__>::kThreads, BLOCKS))) void attention_##NAME(       \
      const unsigned short* q, const unsigned short* k, const unsigned short* v, const void* mask, \
      const unsigned long* seed, const unsigned long* step, const unsigned long* iteration, T* y,  \
      float* log_sum_exp, AttentionProblem problem) {                                              \
    attend<T, WIDTH, Form<__VA_ARGS__>, RULED>(                                                    \
        {q, k, v, nullptr, nullptr, nullptr, mask, seed, step, iteration}, y, log_sum_exp,         \
        problem);                                                                                  \
  }
#define FB_FORWARDS(T, SUFFIX)                                   \
  FB_FORWARD(T, SUFFIX##_64_128, 64, false, 2, 4, 2, 64, 64)     \
  FB_FORWARD(T, SUFFIX##_64_64_ruled, 64, true, 3, 4, 1, 64, 32) \
  FB_FORWARD(T, SUFFIX##_64_32_ruled, 64, true, 2, 2, 1, 32, 32) \
  FB_FORWARD(T, SUFFIX##_128_64, 128, false, 2, 4, 1, 64, 64)    \
  FB_FORWARD(T, SUFFIX##_128_64_ruled, 128, true, 2, 4, 1, 64, 32)
FB_FORWARDS(Bf16, bf16)
FB_FORWARDS(F16, f16)
