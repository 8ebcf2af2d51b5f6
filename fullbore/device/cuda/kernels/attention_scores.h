#pragma once
// What the attention kernels share: where rows lie, and what stands between a product of a query and a key and its score.
#include "fullbore/device/cuda/kernels/attention_problem.h"
#include "fullbore/device/cuda/kernels/elements.h"
#include "fullbore/device/cuda/kernels/philox.h"

using fullbore::cuda::AttentionProblem;
using fullbore::cuda::AttentionStrides;

constexpr float kLog2E = 1.4426950408889634F;
constexpr float kLn2 = 0.6931471805599453F;
FB_DEVICE float minus_infinity() { return -__builtin_inff(); }
FB_DEVICE float exponential(float x) { return __nvvm_ex2_approx_f(x * kLog2E); }
FB_DEVICE float logarithm(float x) { return __nvvm_lg2_approx_f(x) * kLn2; }

FB_DEVICE long offset_of(const AttentionStrides& strides, int batch, int head, int token) {
  return batch * strides.batch + head * strides.head + token * strides.token;
}
FB_DEVICE float read(const void* from, int stored, long at) {
  switch (stored) {
    case fullbore::cuda::kStoredF64:
      return static_cast<float>(static_cast<const double*>(from)[at]);
    case fullbore::cuda::kStoredBf16: return load(static_cast<const Bf16*>(from)[at]);
    case fullbore::cuda::kStoredF16: return load(static_cast<const F16*>(from)[at]);
    default: return static_cast<const float*>(from)[at];
  }
}

/// How many of the keys, from the first on, query t may see.
FB_DEVICE int visible_keys(const AttentionProblem& problem, int t) {
  if (problem.is_causal == 0) return problem.keys;
  return most(0, least(problem.keys, t + 1 + problem.keys - problem.queries));
}

/// The optional operands of one call, for one head.
struct ScoreRules {
  const AttentionProblem& problem;
  const void* mask;
  int batch, head;
  Draws draws;

  FB_DEVICE ScoreRules(const AttentionProblem& of, const void* of_mask, const unsigned long* seed,
                       const unsigned long* step, const unsigned long* iteration, int b, int h)
      : problem(of), mask(of_mask), batch(b), head(h) {
    if (of.drops != 0) draws = Draws(seed, step, iteration, static_cast<unsigned long>(of.site));
  }

  /// Of a product: -inf where the query does not see the key.
  FB_DEVICE float score(float product, int query, int key) const {
    if (query >= problem.queries || key >= visible_keys(problem, query)) return minus_infinity();
    const float scaled = product * problem.scale;
    if (problem.mask == fullbore::cuda::kStoredNone) return scaled;
    const long at = offset_of(problem.mask_strides, batch, head, query) + key;
    if (problem.mask == fullbore::cuda::kStoredBool)
      return static_cast<const unsigned char*>(mask)[at] != 0 ? scaled : minus_infinity();
    return scaled + read(mask, problem.mask, at);
  }
  /// 0 for a weight that is dropped.
  FB_DEVICE float factor(int query, int key) const {
    if (problem.drops == 0) return 1;
    const long row = (static_cast<long>(batch) * problem.heads + head) * problem.queries + query;
    const long draw = row * ((problem.keys + 7) / 8) + key / 8;
    const int eighth = static_cast<int>(draws.at(static_cast<unsigned long>(draw)).eighth(key % 8));
    return eighth >= problem.threshold ? problem.kept_factor : 0;
  }
};
