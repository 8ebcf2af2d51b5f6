#pragma once
// What host and kernels know of one call of attention: plain numbers, which are passed by value.

namespace fullbore::cuda {

/// Elements from one batch, head or token to the next.
struct AttentionStrides {
  long batch = 0, head = 0, token = 0;
};

/// How an operand is stored whose dtype is not that of q.
enum AttentionStorage : int {
  kStoredNone,
  kStoredBool,
  kStoredF64,
  kStoredF32,
  kStoredBf16,
  kStoredF16
};

/// y = dropout(softmax(q k^T scale + mask)) v: fullbore/ops/attention.h. Heads of one group share keys and values.
struct AttentionProblem {
  int batch = 0, heads = 0, groups = 1, queries = 0, keys = 0, width = 0;
  int is_causal = 0;
  float scale = 1;
  AttentionStrides q, k, v, y;  ///< of dq, dk, dv and dy too
  int mask = kStoredNone;
  AttentionStrides mask_strides;
  // Row statistics; delta is of the gradient alone.
  int log_sum_exp = kStoredF32, delta = kStoredF32;
  AttentionStrides log_sum_exp_strides, delta_strides;
  // Dropout: a weight whose draw is below the threshold is dropped, others are multiplied by the factor.
  int drops = 0, threshold = 0;
  float kept_factor = 1;
  long site = 0;
};

}  // namespace fullbore::cuda
