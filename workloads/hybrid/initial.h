#pragma once
#include "workloads/hybrid/hybrid_model.h"

namespace fullbore {

/// How the time mixing of layer `layer` starts, of `finch`. Shares, decays, bonus and norm as in RWKV-LM, always. The
/// projections:
///
///   rwkv_lm_init   as there: orthogonal, of gain 1 (receptance, value) and 0.1 (key, gate), the output 0, the low-rank
///                  matrices 0 and U(-0.01, 0.01). But with HybridFusion::gains the output is normal, of deviation
///                  0.02 / sqrt(2 layers): a norm behind zeros would amplify their gradients a thousandfold.
///   neither        normal, 0.02, the output as with gains, low-rank matrices likewise
///   recorded_init  every matrix normal, 0.02
nn::TimeMixInitializers time_mix_initializers(const HybridConfig& config, int64_t layer);

}  // namespace fullbore
