// The end of the gradient of a linear recurrence, from what recurrence_walks.cpp made of each head: dr and dk with their
// bonus and summed over the heads that share them, du, and dg.
//
// Every product with exp(the sum of some tokens' log-decays) counts for each of these tokens. With E the products of the
// state behind the chunk with its cotangent, those that count for token t of an inclusive recurrence are
//   E + sum over q >= t of r_q dr_q - sum over s >= t of k_s dk_s
// and of one that is not inclusive those with q > t: what is read at t does not decay with it. (What is written at s >= t
// is read behind t alone, and is in both other terms if it is ever read.)
#include "fullbore/device/cuda/kernels/recurrence_operands.h"

namespace {

constexpr int kThreads = 256;
constexpr int kTokens = 128;  // whose sums over keys lie in shared memory at a time

/// What the walks made: dr and dk [B,T,H,K], slopes v_t dy_t [B,T,H], ends [chunks,B,H,K].
struct Made {
  const float *dr, *dk, *slopes, *ends;
};

// dr and dk of one key of a token, [B,T,G,K].
template <class T>
FB_DEVICE void sum_heads(long index, const T* r, const T* k, const void* u, const Made& made, T* dr,
                         T* dk, const RecurrenceProblem& p) {
  if (index >= static_cast<long>(p.batch) * p.tokens * p.groups * p.keys) return;
  const int key = static_cast<int>(index % p.keys), sharing = p.heads / p.groups;
  const long row = index / p.keys;
  const int group = static_cast<int>(row % p.groups);
  const long row0 = row / p.groups * p.heads + static_cast<long>(group) * sharing;
  const Either<T> bonus{u, p.wide_u};
  float of_r = 0, of_k = 0, factor = 0;
  for (int i = 0; i < sharing; ++i) {
    of_r += made.dr[(row0 + i) * p.keys + key];
    of_k += made.dk[(row0 + i) * p.keys + key];
    if (u != nullptr)
      factor +=
          bonus.at((static_cast<long>(group) * sharing + i) * p.keys + key) * made.slopes[row0 + i];
  }
  if (u != nullptr) {
    of_r += factor * load(k[index]);
    of_k += factor * load(r[index]);
  }
  store(&dr[index], of_r);
  store(&dk[index], of_k);
}

/// A chunk of one head.
template <class T>
struct ChunkOfHead {
  const RecurrenceProblem& p;
  OneHead one;
  int token0, end;
  long keys_at;  ///< of [chunks,B,H,K]
  HeadRows<T> r, k;

  FB_DEVICE ChunkOfHead(const RecurrenceProblem& of, int chunk, int head, const T* all_r,
                        const T* all_k)
      : p(of),
        one(of, head),
        token0(chunk * of.chunk),
        end(least(of.tokens, token0 + of.chunk)),
        keys_at(one.keys_of_chunk(of, chunk)),
        r(one.keys(all_r, of)),
        k(one.keys(all_k, of)) {}

  /// r_t dr_t and k_t dk_t of one key.
  FB_DEVICE float read(const Made& made, int t, int key) const {
    return load(r.at(t, key)) * made.dr[one.row(p, t) * p.keys + key];
  }
  FB_DEVICE float written(const Made& made, int t, int key) const {
    return load(k.at(t, key)) * made.dk[one.row(p, t) * p.keys + key];
  }
  /// Of one key, summed over the chunk.
  FB_DEVICE float bonus_cotangent(const Made& made, int key) const {
    float sum = 0;
    for (int t = token0; t < end; ++t)
      sum += load(r.at(t, key)) * load(k.at(t, key)) * made.slopes[one.row(p, t)];
    return sum;
  }
  FB_DEVICE long decay_at(int t, int decay) const { return one.row(p, t) * p.decays + decay; }
  FB_DEVICE float log_decay(const void* g, int t, int decay) const {
    return Either<T>{g, p.wide_g}.at(decay_at(t, decay));
  }
};

/// Beyond its limits a log-decay has no influence.
FB_DEVICE float where_within(float log_decay, float cotangent) {
  return log_decay >= kLeastLogDecay && log_decay <= 0 ? cotangent : 0;
}

// dg and du of one key, token by token. Some tokens are read before the first of them is needed.
template <class T>
FB_DEVICE void key_decays(const ChunkOfHead<T>& chunk, int key, const void* g, const Made& made,
                          float* dg, float* du) {
  constexpr int kAhead = 8;
  const RecurrenceProblem& p = chunk.p;
  float sum = made.ends[chunk.keys_at + key];
  for (int last = chunk.end - 1; last >= chunk.token0; last -= kAhead) {
    float read[kAhead], written[kAhead], log_decay[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int t = most(chunk.token0, last - i);
      read[i] = chunk.read(made, t, key);
      written[i] = chunk.written(made, t, key);
      log_decay[i] = chunk.log_decay(g, t, key);
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int t = last - i;
      sum -= written[i];
      if (t >= chunk.token0)
        dg[chunk.decay_at(t, key)] =
            where_within(log_decay[i], p.inclusive != 0 ? sum + read[i] : sum);
      sum += read[i];
    }
  }
  if (du != nullptr) du[chunk.keys_at + key] = chunk.bonus_cotangent(made, key);
}

FB_DEVICE float warp_sum(float x) {
  for (int mask = 1; mask < kWarp; mask *= 2) x += from_lane_xor(x, mask);
  return x;
}
/// With all lanes behind.
FB_DEVICE float sum_from_here(float x) {
#pragma unroll
  for (int distance = 1; distance < kWarp; distance *= 2) {
    const float behind = from_lane_behind(x, distance);
    if (thread() % kWarp + distance < kWarp) x += behind;
  }
  return x;
}

// dg of one decay for all keys: a warp sums a token's keys, then one warp goes from token to token.
template <class T>
FB_DEVICE void one_decay(const ChunkOfHead<T>& chunk, const void* g, const Made& made, float* dg,
                         float* du) {
  FB_SHARED static float read[kTokens], written[kTokens];
  const RecurrenceProblem& p = chunk.p;
  const int lane = thread() % kWarp;
  if (du != nullptr)
    for (int key = thread(); key < p.keys; key += kThreads)
      du[chunk.keys_at + key] = chunk.bonus_cotangent(made, key);
  float sum = 0;
  for (int key = lane; key < p.keys; key += kWarp) sum += made.ends[chunk.keys_at + key];
  sum = warp_sum(sum);
  for (int end = chunk.end; end > chunk.token0; end -= kTokens) {
    const int first = most(chunk.token0, end - kTokens);
    for (int t = first + thread() / kWarp; t < end; t += kThreads / kWarp) {
      float of_r = 0, of_k = 0;
      for (int key = lane; key < p.keys; key += kWarp) {
        of_r += chunk.read(made, t, key);
        of_k += chunk.written(made, t, key);
      }
      of_r = warp_sum(of_r);
      of_k = warp_sum(of_k);
      if (lane == 0) {
        read[t - first] = of_r;
        written[t - first] = of_k;
      }
    }
    barrier();
    if (thread() < kWarp)
      for (int end_here = end; end_here > first; end_here -= kWarp) {
        const int t = end_here - kWarp + lane;
        const float of_r = t >= first ? read[t - first] : 0;
        const float of_k = t >= first ? written[t - first] : 0;
        const float from_here = sum_from_here(of_r - of_k);
        if (t >= first)
          dg[chunk.decay_at(t, 0)] =
              where_within(chunk.log_decay(g, t, 0),
                           p.inclusive != 0 ? sum + from_here : sum + from_here - of_r);
        sum += warp_sum(of_r - of_k);
      }
    barrier();
  }
}

// Blocks first of the heads' sums, `sum_blocks` of them, then of decays: of each key a thread, of one decay a block for
// each chunk and head.
template <class T>
FB_DEVICE void finish(const T* r, const T* k, const void* g, const void* u, const Made& made, T* dr,
                      T* dk, float* dg, float* du, int sum_blocks, const RecurrenceProblem& p) {
  if (block_x() < sum_blocks) {
    sum_heads(static_cast<long>(block_x()) * kThreads + thread(), r, k, u, made, dr, dk, p);
    return;
  }
  const int block = block_x() - sum_blocks, heads = p.batch * p.heads;
  if (p.decays == 1) {
    one_decay<T>({p, block / heads, block % heads, r, k}, g, made, dg, du);
    return;
  }
  const long index = static_cast<long>(block) * kThreads + thread();
  const int chunk = static_cast<int>(index / p.keys / heads);
  if (chunk < p.chunks)
    key_decays<T>({p, chunk, static_cast<int>(index / p.keys % heads), r, k},
                  static_cast<int>(index % p.keys), g, made, dg, du);
}

}  // namespace

#define FB_FINISH(T, SUFFIX)                                                                      \
  FB_KERNEL void recurrence_cotangents_##SUFFIX(                                                  \
      const T* r, const T* k, const void* g, const void* u, const float* of_r, const float* of_k, \
      const float* slopes, const float* ends, T* dr, T* dk, float* dg, float* du, int sum_blocks, \
      RecurrenceProblem problem) {                                                                \
    finish<T>(r, k, g, u, {of_r, of_k, slopes, ends}, dr, dk, dg, du, sum_blocks, problem);       \
  }
FB_FINISH(float, f32)
FB_FINISH(Bf16, bf16)
FB_FINISH(F16, f16)
