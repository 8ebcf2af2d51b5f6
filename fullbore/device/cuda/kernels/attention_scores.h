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
    return problem.mask == fullbore::cuda::kStoredNone ? scaled : scaled + bias(query, key);
  }
  /// What a mask adds to a score: of truth values 0 or -inf.
  FB_DEVICE float bias(int query, int key) const {
    const long at = offset_of(problem.mask_strides, batch, head, query) + key;
    if (problem.mask == fullbore::cuda::kStoredBool)
      return static_cast<const unsigned char*>(mask)[at] != 0 ? 0 : minus_infinity();
    return read(mask, problem.mask, at);
  }
  /// The draw of eight keys of a query, of which the first is a multiple of eight.
  FB_DEVICE Draw draw(int query, int of_eight) const {
    const long row = (static_cast<long>(batch) * problem.heads + head) * problem.queries + query;
    return draws.at(static_cast<unsigned long>(row * ((problem.keys + 7) / 8) + of_eight));
  }
  /// 0 for a weight that is dropped.
  FB_DEVICE float factor(int query, int key) const {
    if (problem.drops == 0) return 1;
    const int eighth = static_cast<int>(draw(query, key / 8).eighth(key % 8));
    return eighth >= problem.threshold ? problem.kept_factor : 0;
  }
  /// A bit for each of eight keys: is its weight kept?
  FB_DEVICE unsigned char kept(int query, int of_eight) const {
    const Draw bits = draw(query, of_eight);
    // An eighth is compared where it lies, or is moved to: in the upper half of a word.
    const unsigned least_kept = static_cast<unsigned>(problem.threshold) << 16;
    unsigned result = 0;
    for (int word = 0; word < 4; ++word) {
      const auto two = static_cast<unsigned>(bits.half[word / 2] >> 32 * (word % 2));
      if (two << 16 >= least_kept) result |= 1U << 2 * word;
      if (two >= least_kept) result |= 2U << 2 * word;
    }
    return static_cast<unsigned char>(result);
  }
};
