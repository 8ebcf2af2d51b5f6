#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "fullbore/ir/op_def.h"
#include "fullbore/ir/tensor.h"
#include "fullbore/ops/ops.h"
#include "fullbore/ops/random.h"

/// What attention and its gradient share. Both end in the same optional operands, `attention` after
/// q, k, v, `attention_gradient` after q, k, v, dy, log_sum_exp, delta:
///   mask    if attribute `masked`: [B or 1, H or 1, T or 1, S], bool or floating
///   source  if attribute `dropout` is not 0: seed, step, [iteration], i64 scalars
/// and have the same attributes: causal, masked, scale, dropout (a probability), site.
namespace fullbore {

inline constexpr size_t kAttentionOperands = 3;
inline constexpr size_t kAttentionGradientOperands = 6;

/// The extents and options of one node.
struct AttentionShape {
  int64_t batch, heads, groups, queries, keys, width;
  bool causal, masked;
  double scale, dropout;
  size_t mask;    ///< index of the mask among the inputs, if there is one
  size_t source;  ///< index of the seed, if there is one

  /// `operands`: how many the op always has.
  AttentionShape(std::span<const TensorType> inputs, const Attributes& attributes, size_t operands);

  /// Queries of all heads that share keys: the rows of one matmul.
  int64_t rows() const { return heads / groups * queries; }
  Shape by_head() const { return {batch, heads, queries, keys}; }
  /// Draws of dropout for one query: so many keys share one.
  int64_t draws_of_row() const { return (keys + kDrawElements - 1) / kDrawElements; }
  Shape by_group() const { return {batch, groups, rows(), keys}; }
  /// How many of the keys, from the first on, query t may see.
  int64_t visible(int64_t t) const {
    return causal ? std::clamp<int64_t>(t + 1 + keys - queries, 0, keys) : keys;
  }
  /// Pairs of a query and a key that it may see, of all heads; a mask is not counted.
  double pairs() const;
};

/// Throws UsageError for operands and attributes that fit neither op.
AttentionShape require_attention(const OpCall& call, size_t operands);

/// One call's operands, for decompositions and gradients.
struct AttentionCall {
  std::span<const Tensor> inputs;
  const Attributes& attributes;
  AttentionShape shape;

  AttentionCall(std::span<const Tensor> inputs, const Attributes& attributes, size_t operands);

  /// q k^T scale + mask [B,H,T,S] in the compute dtype, -inf where a query does not see a key.
  Tensor scores() const;
  /// 1 / (1 - probability) or 0 for each weight [B,H,T,S]; invalid without dropout.
  Tensor dropout_factors() const;
};

/// With weights w = exp(scores - log_sum_exp) and their cotangents dw = dropout(dy v^T).
struct AttentionSlopes {
  Tensor dropped;  ///< dropout(w) [B,H,T,S]
  Tensor scores;   ///< cotangents of the scores, w (dw - delta)
};
/// log_sum_exp and delta [B,H,T], delta = sum(dy y) less the cotangent of log_sum_exp.
AttentionSlopes attention_slopes(const AttentionCall& call, Tensor dy, Tensor log_sum_exp,
                                 Tensor delta);

/// `operands` and the optional ones that the options ask for. Throws UsageError, in the name of `op`, where
/// dropout lacks its source.
std::vector<Tensor> attention_operands(const char* op, std::vector<Tensor> operands,
                                       const AttentionOptions& options, SourceLoc loc);
/// For heads as wide as the last axis of q.
Attributes attention_attributes(Tensor q, const AttentionOptions& options);

/// The cotangent of a mask that is added to the scores: summed along the axes along which it was
/// repeated. dy [B,H,T,D].
Tensor mask_cotangent(const AttentionCall& call, Tensor dy, Tensor log_sum_exp, Tensor delta);

/// The definitions in plain loops, independent of the decompositions.
void attention_reference(ReferenceCall& call);
void attention_gradient_reference(ReferenceCall& call);
std::vector<Sample> attention_samples();
std::vector<Sample> attention_gradient_samples();
std::vector<ErrorSample> attention_error_samples();
std::vector<ErrorSample> attention_gradient_error_samples();

}  // namespace fullbore
