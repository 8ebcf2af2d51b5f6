#include "workloads/chess/step_completions.h"

#include <vector>

#include "fullbore/train/group_advantage.h"
#include "workloads/chess/answer_measures.h"

namespace fullbore::chess {

bool is_equal_group(std::span<const StepCompletion> completions, size_t group, size_t samples) {
  std::vector<double> rewards;
  for (const StepCompletion& each : completions.subspan(group * samples, samples))
    rewards.push_back(each.reward);
  return is_constant(rewards);
}

StepResults completion_figures(std::span<const StepCompletion> completions, size_t samples,
                               const ChessTokens& tokens) {
  std::vector<ScoredAnswer> policy, arbiter;
  double reward = 0, length = 0, cut = 0, equal = 0;
  for (const StepCompletion& each : completions) {
    reward += each.reward;
    length += static_cast<double>(each.row.tokens.size());
    cut += each.row.reason == FinishReason::length ? 1 : 0;
    (each.score.task == ChessTask::policy ? policy : arbiter)
        .push_back({each.score, tokens.text(each.row.tokens)});
  }
  const size_t groups = completions.size() / samples;
  for (size_t group = 0; group < groups; ++group)
    equal += is_equal_group(completions, group, samples) ? 1 : 0;
  const auto count = static_cast<double>(completions.size());
  StepResults figures = {{"reward", reward / count},
                         {"completion_tokens", length / count},
                         {"truncated", cut / count},
                         {"equal_groups", equal / static_cast<double>(groups)}};
  if (!policy.empty()) {
    const PolicyMeasures own = measure_policy(policy);
    figures.insert(figures.end(), {{"policy/reward", own.reward},
                                   {"policy/format", own.format},
                                   {"policy/legal_best", own.legal_best},
                                   {"policy/legal_moves", own.legal_moves},
                                   {"policy/best_move", own.best_move},
                                   {"policy/top_moves", own.top_moves},
                                   {"policy/distinct_best", own.distinct_best},
                                   {"policy/unique_completions", own.unique_completions}});
  }
  if (!arbiter.empty()) {
    const ArbiterMeasures own = measure_arbiter(arbiter);
    figures.insert(figures.end(), {{"arbiter/reward", own.reward},
                                   {"arbiter/format", own.format},
                                   {"arbiter/exact", own.exact},
                                   {"arbiter/core", own.core},
                                   {"arbiter/similarity", own.similarity}});
  }
  return figures;
}

}  // namespace fullbore::chess
