#pragma once
#include <string>

#include "fullbore/ops/ops.h"
#include "fullbore/trace/trace.h"

/// Multi-head attention with the names, layouts and first values of PyTorch's nn.MultiheadAttention, so that weights go
/// from one to the other. What language models take, with caches and the names of GPT-2, is nn::self_attention()
/// (modules.h).
namespace fullbore::nn {

struct AttentionLayerOptions {
  int64_t heads = 1;
  bool causal = false;  ///< query t sees keys s <= t + S - T
  bool bias = true;
  double dropout = 0;  ///< on the attention probabilities, while training
  Tensor mask =
      {};  ///< as fullbore::attention() has it: bool [B or 1,H or 1,T or 1,S], true: may attend
};
/// Tokens x [B,T,C] that attend to one another -> [B,T,C], C a multiple of heads. Parameters `<name>.in_proj_weight`
/// [3 C,C] (queries, keys, values) and `<name>.out_proj.weight` [C,C], f32, cast to x's dtype where they are used, with
/// `<name>.in_proj_bias` and `<name>.out_proj.bias`. At first xavier_uniform(), kaiming_uniform(), zeros.
///
/// Errors:  UsageError for other ranks, and widths that the heads do not divide.
/// Source:  Vaswani et al. 2017, arXiv:1706.03762, section 3.2.
/// Example: x = x + nn::attention(trace, "attend", nn::layer_norm(trace, "norm", x), {.heads = 4});
Tensor attention(Trace& trace, const std::string& name, Tensor x,
                 const AttentionLayerOptions& options = {}, SourceLoc loc = SourceLoc::here());

/// Queries x [B,T,C] that attend to `memory` [B,S,C] -> [B,T,C]; parameters as of attention().
Tensor cross_attention(Trace& trace, const std::string& name, Tensor x, Tensor memory,
                       const AttentionLayerOptions& options = {},
                       SourceLoc loc = SourceLoc::here());

}  // namespace fullbore::nn
