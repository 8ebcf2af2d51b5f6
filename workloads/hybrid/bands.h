#pragma once
#include <cstdint>

/// What is thought of the figures that a hybrid model is examined by.
namespace fullbore {

enum class Band : uint8_t { ok, warn, fail };
const char* band_name(Band band);  ///< "OK", "WARN", "FAIL"

/// Norm of the RWKV branches' gradients by that of Mamba's: OK in [1/3, 3], WARN in [0.1, 10].
Band gradient_ratio_band(double ratio);
/// Standard deviation of what a branch makes: FAIL below 0.01.
Band branch_deviation_band(double deviation);
/// Variance of RWKV's by that of Mamba's: OK in [0.1, 10], WARN in [0.01, 100]; beyond, one of them is dead.
Band variance_ratio_band(double ratio);
/// Entropy in nats of the softmax over channels of both branches' sum: OK in [2, 5], WARN from 1 to 7.
Band channel_entropy_band(double entropy);
/// Norm of a state at the end by that at the start: OK below 2, WARN to 10.
Band state_growth_band(double ratio);
/// Mean variance across texts of the state behind them: OK above 1e-6, else it has collapsed.
Band state_variance_band(double variance);
/// What the loss rises by without the one and the other branch: OK if each is at least a hundredth of the larger and
/// they differ by less than 5 times, WARN to 10 times.
Band contribution_band(double rwkv, double mamba);
/// Relative change of the last logits when the first token is another: OK above 0.01, WARN from 0.001.
Band information_flow_band(double change);
/// Cosine of the states behind a token and the next: OK below 0.95, WARN to 0.99.
Band state_cosine_band(double cosine);
/// Share of the five largest of a state's singular values in their sum: OK above 0.5, else WARN.
Band singular_share_band(double share);
/// Share of a state's values beyond 5: OK below 0.3, else WARN.
Band saturation_band(double share);
/// Perplexity over stretches of 512 tokens by that over 64: OK below 1.5, WARN to 3.
Band longer_segments_band(double ratio);
/// Norm of a step's gradient: OK in [0.5, 1.5], WARN to 5.
Band gradient_norm_band(double norm);
/// Entropy in nats of an untrained model's next token: OK within a tenth of log(vocabulary), else FAIL.
Band initial_entropy_band(double entropy, int64_t vocabulary);

}  // namespace fullbore
