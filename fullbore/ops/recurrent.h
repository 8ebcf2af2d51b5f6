#pragma once
#include "fullbore/ops/ops.h"

/// What recurrent language models mix tokens with: the builders of `wkv6`, `ssd` and `causal_convolution`.
/// All are given a segment of a stream at a time, of any length: what is remembered before its first
/// token goes in, what is behind the last one comes out, and gradients flow through both.
namespace fullbore {

struct RecurrenceOptions {
  Tensor initial = {};  ///< the state before the first token, floating; none: zero
  Tensor resets = {};   ///< bool [B,T]: true where the state becomes zero before the token
  /// Tokens that are treated together by matmuls. No matter for the result but for rounding.
  int64_t chunk = 64;
};
struct RecurrenceResult {
  Tensor y;
  Tensor state;  ///< behind the last token, f32 (f64 for f64) whatever the operands are
};

/// RWKV-6 time mixing, per head with S [K,V]:
///   y_t = r_t (S_{t-1} + diag(bonus) k_t^T v_t),  S_t = diag(exp(log_decay_t)) S_{t-1} + k_t^T v_t
///
/// r, k       [B,T,H,K]  floating
/// v          [B,T,H,V]  as r
/// log_decay  [B,T,H,K]  as r, or what that is computed in; limited to [-20, 0], with gradient 0 beyond
/// bonus      [H,K]      likewise
/// -> y       [B,T,H,V]  as r;  state [B,H,K,V], as is options.initial
///
/// Whole chunks are matmuls, two-level so that every exponential is of a number <= 0:
/// sub-chunks of 16 tokens meet through their common border. Gradient: of all operands but the resets;
/// it makes the states at the borders of chunks anew. Cost: 4 K V + chunk (K + V) flops per token and
/// head, about 2.5 times that in the gradient.
/// Source: Peng et al. 2024, arXiv:2404.05892, section 4; chunks: Yang et al. 2023, arXiv:2312.06635.
/// Errors: UsageError for operands that do not fit one another, and a chunk below 1.
RecurrenceResult wkv6(Tensor r, Tensor k, Tensor v, Tensor log_decay, Tensor bonus,
                      RecurrenceOptions options = {}, SourceLoc loc = SourceLoc::here());

/// State-space duality of Mamba-2, per head with h [N,P]:
///   h_t = exp(dt_t a) h_{t-1} + b_t^T (dt_t x_t),  y_t = c_t h_t + skip x_t
///
/// x     [B,T,H,P]  floating
/// dt    [B,T,H]    > 0 (behind its softplus); as x, or what that is computed in
/// a     [H]        < 0; dt a is limited to [-20, 0], with gradient 0 beyond; dtype as that of dt
/// b, c  [B,T,G,N]  as x, H a multiple of G: heads share them
/// skip  [H]        likewise
/// -> y  [B,T,H,P]  as x;  state [B,H,N,P], as is options.initial
///
/// Cost and errors as of wkv6; the products c b^T of a chunk are made once for all heads of a group.
/// Source: Dao, Gu 2024, arXiv:2405.21060, sections 5 and 6.
RecurrenceResult ssd(Tensor x, Tensor dt, Tensor a, Tensor b, Tensor c, Tensor skip,
                     RecurrenceOptions options = {}, SourceLoc loc = SourceLoc::here());

struct ConvolutionOptions {
  Tensor history = {};  ///< [B,W-1,C] as x: the tokens before the first one; none: zero
  Tensor resets = {};   ///< bool [B,T]: true where what lies before the token reads as zero
};
struct ConvolutionResult {
  Tensor y;
  Tensor history;  ///< of the next segment; zero before a reset
};

/// Depthwise causal convolution: y_t = bias + sum over i < W of weight_i x_{t-(W-1)+i}, so that the last
/// weight is the token's own. x [B,T,C], weight [C,W], bias [C] (these two as x, or what it is computed
/// in) -> y [B,T,C]. Summed in f32 (f64 for f64). Cost: 2 W flops per element; memory bound.
/// Errors: UsageError for operands that do not fit one another.
ConvolutionResult causal_convolution(Tensor x, Tensor weight, Tensor bias,
                                     ConvolutionOptions options = {},
                                     SourceLoc loc = SourceLoc::here());

}  // namespace fullbore
