// Attention and its gradient in f32 arithmetic for f32, bf16 and f16, heads of any width: a block has 32 queries (for the
// cotangents of keys and values: 32 keys) and 64 columns of its results, and walks over tiles of 32 keys (queries). No
// matrix of queries by keys is stored (Dao 2023, arXiv:2307.08691). Blocks of other columns make the scores again: heads
// are rarely wider than 64.
//
// Of a tile of 32 x 32 scores thread t has row t / 4 and columns 8 (t mod 4) to 8 (t mod 4) + 7; of a result the same row
// and columns t mod 4 + 4 j.
#include "fullbore/device/cuda/kernels/attention_scores.h"

namespace {

constexpr int kTile = 32;
constexpr int kThreads = 128;
constexpr int kOfRow = kThreads / kTile;     // threads of a row
constexpr int kScores = kTile / kOfRow;      // of a thread
constexpr int kColumns = 64;                 // of a block's results
constexpr int kResults = kColumns / kOfRow;  // of a thread
constexpr int kPad = 1;

using Square = float[kTile][kTile + kPad];
using WideTile = float[kTile][kColumns + kPad];

/// Rows of q, k, v or dy, from some token on.
template <class T>
struct Rows {
  const T* first;
  long stride;
  int count, width;

  FB_DEVICE Rows(const T* base, const AttentionStrides& strides, int batch, int head, int token,
                 int tokens, int of_width)
      : first(base + offset_of(strides, batch, head, token)),
        stride(strides.token),
        count(tokens - token),
        width(of_width) {}
  FB_DEVICE float at(int row, int column) const {
    return row < count && column < width ? load(first[row * stride + column]) : 0;
  }
};

template <class T>
FB_DEVICE void load_square(Square& to, const Rows<T>& rows, int column0) {
#pragma unroll 2
  for (int i = 0; i < kTile * kTile / kThreads; ++i) {
    const int e = thread() + i * kThreads;
    to[e / kTile][e % kTile] = rows.at(e / kTile, column0 + e % kTile);
  }
}
template <class T>
FB_DEVICE void load_wide(WideTile& to, const Rows<T>& rows, int column0) {
#pragma unroll 2
  for (int i = 0; i < kTile * kColumns / kThreads; ++i) {
    const int e = thread() + i * kThreads;
    to[e / kColumns][e % kColumns] = rows.at(e / kColumns, column0 + e % kColumns);
  }
}

struct Place {
  int row, column;  ///< of the thread's scores
  FB_DEVICE Place() : row(thread() / kOfRow), column(thread() % kOfRow * kScores) {}
};

// sums = rows of a times rows of b. Its barriers come behind all that a thread has done before.
template <class T>
FB_DEVICE void multiply_rows(float (&sums)[kScores], const Rows<T>& a, const Rows<T>& b,
                             Square& left, Square& right) {
  const Place place;
  for (float& sum : sums) sum = 0;
  for (int depth = 0; depth < a.width; depth += kTile) {
    barrier();
    load_square(left, a, depth);
    load_square(right, b, depth);
    barrier();
#pragma unroll 4
    for (int d = 0; d < kTile; ++d)
#pragma unroll
      for (int i = 0; i < kScores; ++i) sums[i] += left[place.row][d] * right[place.column + i][d];
  }
}

/// What a block works on.
struct Block {
  int batch, head, token0, column0;
  FB_DEVICE Block(int tokens, int heads, int width) {
    const int tiles = (tokens + kTile - 1) / kTile, chunks = (width + kColumns - 1) / kColumns;
    int index = block_x();
    token0 = index % tiles * kTile;
    index /= tiles;
    column0 = index % chunks * kColumns;
    index /= chunks;
    head = index % heads;
    batch = index / heads;
  }
};

FB_DEVICE float row_most(float x) {
  for (int mask = 1; mask < kOfRow; mask *= 2) x = most(x, from_lane_xor(x, mask));
  return x;
}
FB_DEVICE float row_sum(float x) {
  for (int mask = 1; mask < kOfRow; mask *= 2) x += from_lane_xor(x, mask);
  return x;
}

struct Optional {
  const void* mask;
  const unsigned long *seed, *step, *iteration;
};

template <class T>
FB_DEVICE void attend(const T* q, const T* k, const T* v, const Optional& optional, T* y,
                      float* log_sum_exp, const AttentionProblem& p) {
  FB_SHARED static Square left, right, weights;
  FB_SHARED static WideTile values;
  const Block block(p.queries, p.heads, p.width);
  const int group = block.head / (p.heads / p.groups);
  const Place place;
  const int query = block.token0 + place.row;
  const ScoreRules rules(p, optional.mask, optional.seed, optional.step, optional.iteration,
                         block.batch, block.head);
  const Rows<T> queries(q, p.q, block.batch, block.head, block.token0, p.queries, p.width);
  float largest = minus_infinity(), sum = 0;
  float result[kResults] = {};
  const int last = visible_keys(p, least(p.queries, block.token0 + kTile) - 1);
  for (int key0 = 0; key0 < last; key0 += kTile) {
    float scores[kScores];
    const Rows<T> keys(k, p.k, block.batch, group, key0, p.keys, p.width);
    multiply_rows(scores, queries, keys, left, right);
    float of_tile = minus_infinity();
#pragma unroll
    for (int i = 0; i < kScores; ++i) {
      scores[i] = rules.score(scores[i], query, key0 + place.column + i);
      of_tile = most(of_tile, scores[i]);
    }
    const float before = largest;
    largest = most(largest, row_most(of_tile));
    // Without a key so far nothing is scaled; -inf less -inf would be no number.
    const float shift = largest == minus_infinity() ? 0 : largest;
    const float rescale = exponential(before - shift);
    float of_row = 0;
#pragma unroll
    for (int i = 0; i < kScores; ++i) {
      const float weight = exponential(scores[i] - shift);
      of_row += weight;
      weights[place.row][place.column + i] = weight;
    }
    if (p.drops != 0)
#pragma unroll 1
      for (int i = place.column; i < place.column + kScores; ++i)
        weights[place.row][i] *= rules.factor(query, key0 + i);
    load_wide(values, Rows<T>(v, p.v, block.batch, group, key0, p.keys, p.width), block.column0);
    barrier();
    sum = sum * rescale + row_sum(of_row);
#pragma unroll
    for (int j = 0; j < kResults; ++j) result[j] *= rescale;
#pragma unroll 4
    for (int i = 0; i < kTile; ++i)
#pragma unroll
      for (int j = 0; j < kResults; ++j)
        result[j] += weights[place.row][i] * values[i][thread() % kOfRow + kOfRow * j];
  }
  if (query >= p.queries) return;
  const bool sees_none = largest == minus_infinity();
  T* const to = y + offset_of(p.y, block.batch, block.head, query);
#pragma unroll
  for (int j = 0; j < kResults; ++j) {
    const int column = block.column0 + thread() % kOfRow + kOfRow * j;
    if (column < p.width) store(&to[column], sees_none ? 0 : result[j] / sum);
  }
  if (block.column0 == 0 && thread() % kOfRow == 0)
    log_sum_exp[offset_of(p.log_sum_exp_strides, block.batch, block.head, query)] =
        sees_none ? 0 : largest + logarithm(sum);
}

// Of a tile of queries and keys, what both gradient kernels need: weights as values meet them, and cotangents of scores
// times the scale.
template <class T>
FB_DEVICE void make_slopes(const AttentionProblem& p, const ScoreRules& rules,
                           const void* log_sum_exp, const void* delta, const Rows<T>& q,
                           const Rows<T>& k, const Rows<T>& v, const Rows<T>& dy, int query0,
                           int key0, Square& left, Square& right, Square& dropped, Square& slopes) {
  const Place place;
  float scores[kScores], of_weights[kScores];
  multiply_rows(scores, q, k, left, right);
  multiply_rows(of_weights, dy, v, left, right);
  const int query = query0 + place.row;
  float statistic = 0, of_row = 0;
  if (query < p.queries) {
    statistic = read(log_sum_exp, p.log_sum_exp,
                     offset_of(p.log_sum_exp_strides, rules.batch, rules.head, query));
    of_row = read(delta, p.delta, offset_of(p.delta_strides, rules.batch, rules.head, query));
  }
#pragma unroll
  for (int i = 0; i < kScores; ++i) {
    dropped[place.row][place.column + i] = scores[i];
    slopes[place.row][place.column + i] = of_weights[i];
  }
  // Each thread its own again, in a loop: a draw is long.
#pragma unroll 1
  for (int i = place.column; i < place.column + kScores; ++i) {
    const float score = rules.score(dropped[place.row][i], query, key0 + i);
    const bool is_seen = score != minus_infinity();
    const float weight = is_seen ? exponential(score - statistic) : 0;
    const float factor = is_seen ? rules.factor(query, key0 + i) : 0;
    dropped[place.row][i] = weight * factor;
    slopes[place.row][i] =
        is_seen ? weight * (factor * slopes[place.row][i] - of_row) * p.scale : 0;
  }
}

template <class T>
FB_DEVICE void pull_back_queries(const T* q, const T* k, const T* v, const T* dy,
                                 const void* log_sum_exp, const void* delta,
                                 const Optional& optional, T* dq, const AttentionProblem& p) {
  FB_SHARED static Square left, right, dropped, slopes;
  FB_SHARED static WideTile factors;
  const Block block(p.queries, p.heads, p.width);
  const int group = block.head / (p.heads / p.groups);
  const Place place;
  const ScoreRules rules(p, optional.mask, optional.seed, optional.step, optional.iteration,
                         block.batch, block.head);
  const Rows<T> queries(q, p.q, block.batch, block.head, block.token0, p.queries, p.width);
  const Rows<T> cotangents(dy, p.y, block.batch, block.head, block.token0, p.queries, p.width);
  float result[kResults] = {};
  const int last = visible_keys(p, least(p.queries, block.token0 + kTile) - 1);
  for (int key0 = 0; key0 < last; key0 += kTile) {
    const Rows<T> keys(k, p.k, block.batch, group, key0, p.keys, p.width);
    const Rows<T> values(v, p.v, block.batch, group, key0, p.keys, p.width);
    make_slopes(p, rules, log_sum_exp, delta, queries, keys, values, cotangents, block.token0, key0,
                left, right, dropped, slopes);
    load_wide(factors, keys, block.column0);
    barrier();
#pragma unroll 4
    for (int i = 0; i < kTile; ++i)
#pragma unroll
      for (int j = 0; j < kResults; ++j)
        result[j] += slopes[place.row][i] * factors[i][thread() % kOfRow + kOfRow * j];
  }
  const int query = block.token0 + place.row;
  if (query >= p.queries) return;
  T* const to = dq + offset_of(p.q, block.batch, block.head, query);
#pragma unroll
  for (int j = 0; j < kResults; ++j) {
    const int column = block.column0 + thread() % kOfRow + kOfRow * j;
    if (column < p.width) store(&to[column], result[j]);
  }
}

template <class T>
FB_DEVICE void pull_back_keys(const T* q, const T* k, const T* v, const T* dy,
                              const void* log_sum_exp, const void* delta, const Optional& optional,
                              T* dk, T* dv, const AttentionProblem& p) {
  FB_SHARED static Square left, right, dropped, slopes;
  FB_SHARED static WideTile of_queries, of_cotangents;
  const Block block(p.keys, p.groups, p.width);
  const int group = block.head, sharing = p.heads / p.groups, key0 = block.token0;
  const Place place;
  const Rows<T> keys(k, p.k, block.batch, group, key0, p.keys, p.width);
  const Rows<T> values(v, p.v, block.batch, group, key0, p.keys, p.width);
  float of_key[kResults] = {}, of_value[kResults] = {};
  for (int head = group * sharing; head < (group + 1) * sharing; ++head) {
    const ScoreRules rules(p, optional.mask, optional.seed, optional.step, optional.iteration,
                           block.batch, head);
    for (int query0 = 0; query0 < p.queries; query0 += kTile) {
      if (visible_keys(p, least(p.queries, query0 + kTile) - 1) <= key0) continue;
      const Rows<T> queries(q, p.q, block.batch, head, query0, p.queries, p.width);
      const Rows<T> cotangents(dy, p.y, block.batch, head, query0, p.queries, p.width);
      make_slopes(p, rules, log_sum_exp, delta, queries, keys, values, cotangents, query0, key0,
                  left, right, dropped, slopes);
      load_wide(of_queries, queries, block.column0);
      load_wide(of_cotangents, cotangents, block.column0);
      barrier();
#pragma unroll 4
      for (int i = 0; i < kTile; ++i)
#pragma unroll
        for (int j = 0; j < kResults; ++j) {
          const int column = thread() % kOfRow + kOfRow * j;
          of_key[j] += slopes[i][place.row] * of_queries[i][column];
          of_value[j] += dropped[i][place.row] * of_cotangents[i][column];
        }
    }
  }
  const int key = key0 + place.row;
  if (key >= p.keys) return;
  T* const to_key = dk + offset_of(p.k, block.batch, group, key);
  T* const to_value = dv + offset_of(p.v, block.batch, group, key);
#pragma unroll
  for (int j = 0; j < kResults; ++j) {
    const int column = block.column0 + thread() % kOfRow + kOfRow * j;
    if (column >= p.width) continue;
    store(&to_key[column], of_key[j]);
    store(&to_value[column], of_value[j]);
  }
}

}  // namespace

#define FB_ATTENTION(T, SUFFIX)                                                                    \
  FB_KERNEL void attention_##SUFFIX(const T* q, const T* k, const T* v, const void* mask,          \
                                    const unsigned long* seed, const unsigned long* step,          \
                                    const unsigned long* iteration, T* y, float* log_sum_exp,      \
                                    AttentionProblem problem) {                                    \
    attend(q, k, v, Optional{mask, seed, step, iteration}, y, log_sum_exp, problem);               \
  }                                                                                                \
  FB_KERNEL void attention_queries_##SUFFIX(                                                       \
      const T* q, const T* k, const T* v, const T* dy, const void* log_sum_exp, const void* delta, \
      const void* mask, const unsigned long* seed, const unsigned long* step,                      \
      const unsigned long* iteration, T* dq, AttentionProblem problem) {                           \
    pull_back_queries(q, k, v, dy, log_sum_exp, delta, Optional{mask, seed, step, iteration}, dq,  \
                      problem);                                                                    \
  }                                                                                                \
  FB_KERNEL void attention_keys_##SUFFIX(                                                          \
      const T* q, const T* k, const T* v, const T* dy, const void* log_sum_exp, const void* delta, \
      const void* mask, const unsigned long* seed, const unsigned long* step,                      \
      const unsigned long* iteration, T* dk, T* dv, AttentionProblem problem) {                    \
    pull_back_keys(q, k, v, dy, log_sum_exp, delta, Optional{mask, seed, step, iteration}, dk, dv, \
                   problem);                                                                       \
  }
FB_ATTENTION(float, f32)
FB_ATTENTION(Bf16, bf16)
FB_ATTENTION(F16, f16)
