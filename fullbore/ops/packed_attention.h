#pragma once
#include <vector>

#include "fullbore/ops/attention.h"
#include "fullbore/ops/ops.h"

/// Self-attention on heads as projections make and read them, positions first, so that nothing is
/// transposed, cut out or put together around it.
///
/// The operands of `packed_attention` are qkv [B,T,N,D], whose N heads are H of queries, then G of keys,
/// then G of values, and the optional ones of attention.h; its results y [B,T,H,D] and log_sum_exp
/// [B,H,T]. `packed_attention_gradient` has qkv, dy [B,T,H,D], log_sum_exp, delta [B,T,H] and the same
/// optional operands, and gives dqkv. Attributes are attention's and `heads`, H.
namespace fullbore {

inline constexpr size_t kPackedOperands = 1;
inline constexpr size_t kPackedGradientOperands = 4;

bool is_packed_attention(const Node& node);

/// As attention knows it, but with mask and source where the packed op has them.
AttentionShape packed_attention_shape(std::span<const TensorType> inputs,
                                      const Attributes& attributes, size_t operands);

/// qkv [B,T,H + 2 G,D] -> [B,T,H,D], each query head with the keys of its group. Options as of
/// `attention`; the mask is [B or 1, H or 1, T or 1, T]. Throws UsageError naming operand and shape.
Tensor packed_attention(Tensor qkv, int64_t heads, AttentionOptions options = {},
                        SourceLoc loc = SourceLoc::here());

std::vector<Sample> packed_attention_samples();
std::vector<Sample> packed_attention_gradient_samples();
std::vector<ErrorSample> packed_attention_error_samples();

}  // namespace fullbore
