#pragma once
#include <cstdint>

#include "fullbore/train/step_function.h"

namespace fullbore {

/// The clipped policy gradient of PPO (Schulman et al. 2017, arXiv:1707.06347, equation 7) as GRPO uses it (Shao et al.
/// 2024, arXiv:2402.03300, equations 3 and 4), with a penalty for leaving a reference.
struct PolicyLossOptions {
  /// How tokens t of completions i are averaged.
  enum class Aggregation : uint8_t {
    sequences,  ///< mean over i of the mean over t: GRPO
    tokens,     ///< mean over all tokens: DAPO, arXiv:2503.14476, equation 8
    fixed  ///< sum over i and t / (completions * longest): Dr. GRPO, arXiv:2503.20783, section 3.2
  };
  enum class Ratio : uint8_t {
    token,    ///< of each token
    sequence  ///< of the whole completion, exp(mean over t): GSPO, arXiv:2507.18071, equation 7
  };
  Aggregation aggregation = Aggregation::sequences;
  Ratio ratio = Ratio::token;
  double clip_low = 0.2;   ///< ratios below 1 - clip_low are clipped
  double clip_high = 0.2;  ///< and above 1 + clip_high
  int64_t longest = 0;     ///< L_max of Aggregation::fixed, in tokens
  double entropy = 0;      ///< coefficient of the entropy that is subtracted
};

/// Completions of B rows, N tokens each at most.
struct PolicyTokens {
  Tensor log_probability;  ///< f32 [B,N] of the policy as it is, with a gradient
  Tensor entropy;          ///< f32 [B,N] of its whole distribution
  Tensor
      counted;  ///< bool [B,N]: is there a token? The other values mean nothing where there is none.
  Tensor old;   ///< f32 [B,N], log-probability by the policy that drew the tokens
  Tensor reference;  ///< f32 [B,N], by the reference; empty: no penalty
  Tensor advantage;  ///< f32 [B]
  Tensor penalty;    ///< f32 []: coefficient beta of the penalty, that of `reference`
};

/// The loss to minimise,
///   - agg[ min(r A, clip(r, 1 - low, 1 + high) A) - beta k3 + entropy H ],  r = exp(new - old),
///   k3 = exp(reference - new) - 1 + new - reference >= 0,
/// whose predictions are the divisor of the aggregation, so that microbatches of rows add up to the whole. Rows without
/// tokens count for nothing. k3 is unbiased for the divergence from the reference on the policy's own tokens
/// (arXiv:2402.03300, equation 4).
/// Metrics, by token: ratio, clipped_low, clipped_high (shares), entropy, kl (k3), kl1, kl2 (means of new - reference and of
/// half its square), and largest_log_ratio, the largest |new - old| of all.
Loss policy_loss(const PolicyTokens& tokens, const PolicyLossOptions& options);

}  // namespace fullbore
