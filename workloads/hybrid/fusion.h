#pragma once
#include <cstdint>

#include "fullbore/trace/trace.h"

namespace fullbore {

/// How a block joins what its branches made, R of RWKV and M of Mamba, [B,T,C] each. Behind the parameters, within
/// the block: how they start; in parentheses how those of recorded runs did, where that differs.
enum class HybridFusion : uint8_t {
  /// HY: rwkv_gain norm(R) + mamba_gain norm(M). `rwkv_norm.weight`, `mamba_norm.weight` [C] 1, `rwkv_gain` [C] 0.7,
  /// `mamba_gain` [C] 0.3.
  gains,
  /// GF: g R + (1 - g) M, g = sigmoid(w [R;M] + b), a number for each token. `gate.weight` [1,2 C] 0 (normal,
  /// 0.02), `gate.bias` [1] the logit of the gate's start.
  gate,
  /// HGF: the same, a number for each token and channel. `gate.weight` [C,2 C] a tenth of Xavier's (Glorot, Bengio
  /// 2010, section 4.2.1; normal, 0.02), `gate.bias` [C] likewise (0).
  channel_gate,
  /// CP: W [R;M]. `projection.weight` [C,2 C] normal, 0.02.
  projection,
  /// WS: s R + (1 - s) M. `share` [] 0.5.
  weighted_sum,
  /// RF: R + W M. `mamba_projection.weight` [C,C] normal, 0.01 (0.02).
  residual
};

/// A joined pair, and what it was joined by.
struct FusedBranches {
  Tensor y;
  Tensor rwkv;                             ///< R as it was joined: of gains behind the norm
  Tensor mamba;                            ///< M likewise
  Tensor gate = {};                        ///< g [B,T,1] or [B,T,C] of the gated
  Tensor rwkv_gain = {}, mamba_gain = {};  ///< [C], of gains
  Tensor share = {};                       ///< [], of the weighted sum
};
struct FusionOptions {
  HybridFusion rule = HybridFusion::gains;
  double gate_start = 0.5;  ///< UsageError unless it is in (0, 1)
  bool recorded_init = false;
};
FusedBranches fuse_branches(Trace& trace, Tensor rwkv, Tensor mamba, const FusionOptions& options);

}  // namespace fullbore
