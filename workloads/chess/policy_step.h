#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "fullbore/data/batch_source.h"
#include "fullbore/text/completion_scores.h"
#include "fullbore/text/text_model.h"
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

/// How a step's completions stand in the rows of its batch, group after group.
struct PolicyLayout {
  int64_t rows = 0;              ///< R
  int64_t completions = 1;       ///< G of each row: all of a prompt's behind it, or one
  int64_t longest = 0;           ///< N: tokens of a completion, at most
  std::vector<int64_t> lengths;  ///< that rows may have, ascending: T is one of them

  bool shares_prompts() const { return completions > 1; }
};
/// grpo.share_prompts, where the model reads such rows.
PolicyLayout policy_layout(const Config& config);

/// What a batch is given to. One of them is empty.
struct PolicyHidden {
  HiddenFunction of_texts;
  BranchedHiddenFunction of_groups;
};
PolicyHidden policy_hidden(const Config& config, int64_t tokens);

/// Fields of a batch of completions, which are as PolicyLayout says:
///   tokens i32 [R,T], before and targets i32 [R,G,N]        CompletionInputs
///   old f32 [R,G,N], advantage f32 [R,G], penalty f32 []    PolicyTokens
///   reference f32 [R,G,N]                                   where there is one
///   branches and positions i32 [R,T]                        BranchedTokens, where prompts are shared
enum class PolicyField : uint8_t {
  tokens,
  before,
  targets,
  old,
  advantage,
  penalty,
  reference,
  branches,
  positions
};
std::vector<std::vector<BatchField>> policy_shapes(const Config& config);
/// Its index among them; -1: this batch has none.
int policy_field(const std::vector<BatchField>& fields, PolicyField field);
/// Of a batch of that shape, what the policy, or the reference (parameters below kReferenceScope, frozen), says of its
/// completions: result `log_probability` f32 [R G,N].
Graph policy_scoring(const PolicyHidden& hidden, const std::vector<BatchField>& fields,
                     int64_t classes, bool reference);
LossFunction policy_step_loss(const Config& config, const PolicyHidden& hidden, int64_t classes);

}  // namespace fullbore::chess
