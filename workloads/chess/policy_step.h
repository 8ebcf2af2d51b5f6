#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "fullbore/data/batch_source.h"
#include "fullbore/text/completion_scores.h"
#include "fullbore/train/group_advantage.h"
#include "fullbore/train/penalty_controller.h"
#include "fullbore/train/policy_loss.h"
#include "fullbore/train/rollout.h"
#include "workloads/chess/chess_keys.h"
#include "workloads/chess/reward_scheme.h"

namespace fullbore::chess {

/// What the reference's parameters are called: this before the policy's.
inline constexpr const char* kReferenceScope = "reference";

/// What the configuration asks of policy gradients, `auto` resolved by grpo.algorithm.
struct PolicyOptions {
  PolicyLossOptions loss;
  Advantage advantage = Advantage::sample;
  PenaltyOptions penalty;
  bool has_reference = true;
  bool resamples = false;  ///< groups of equal rewards
  bool masks_overlong = false;
};
PolicyOptions policy_options(const Config& config);
RewardOptions reward_options(const Config& config);
RolloutSizes policy_rollout_sizes(const Config& config, int64_t vocabulary);
/// N: tokens of a completion, at most.
int64_t completion_tokens(const Config& config);

/// Fields of a batch of completions:
///   tokens i32 [B,T], first i32 [B], targets i32 [B,N]   CompletionInputs
///   old f32 [B,N], advantage f32 [B], penalty f32 []     PolicyTokens
///   reference f32 [B,N]                                  where there is one
/// B completions group after group, T of chess_lengths().
enum class PolicyField : uint8_t { tokens, first, targets, old, advantage, penalty, reference };
std::vector<std::vector<BatchField>> policy_shapes(const Config& config);
/// Of a batch of that shape, what the policy, or the reference (parameters below kReferenceScope, frozen), says of its
/// completions: result `log_probability` f32 [B,N].
Graph policy_scoring(const HiddenFunction& hidden, const std::vector<BatchField>& fields,
                     int64_t classes, bool reference);
LossFunction policy_step_loss(const Config& config, const HiddenFunction& hidden, int64_t classes);

}  // namespace fullbore::chess
