#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "fullbore/base/result.h"
#include "fullbore/lab/ablation/arm_plan.h"
#include "fullbore/lab/ablation/measured_run.h"
#include "fullbore/lab/ablation/switches.h"

namespace fullbore {

/// An arm of an ablation and what becomes of it.
struct PlannedArm {
  Arm arm;
  ArmPlan plan;
  int same_as = -1;  ///< an earlier arm whose programs these are, measured in its place; -1: none
  std::string
      dropped;  ///< why it is not measured: refused, failed in the trial, no time; empty: it is
  bool is_measured() const { return dropped.empty() && same_as < 0; }
  bool operator==(const PlannedArm&) const = default;
};

/// What an ablation is going to do: decided before it begins, kept in its folder, so that it goes on as it began.
struct AblationPlan {
  std::string
      identity;  ///< of configuration, switches and build: another's results are not mixed in
  std::vector<Switch> switches;
  std::vector<std::string> unused;  ///< names of switches that change nothing in this job
  std::vector<std::string>
      alone;  ///< names of those that do not go together with the others, with why
  std::vector<PlannedArm> arms;  ///< the base first
  int64_t seeds = 0;             ///< 0: not decided yet
  int64_t cut_seeds =
      0;              ///< of those decided on, how many time did not reach; `seeds` is without them
  int64_t steps = 0;  ///< of each run; 0: not decided yet
  int64_t evaluation_interval = 0;
  double estimated_seconds = 0;  ///< of all that follows the trial
  std::vector<std::vector<size_t>>
      groups;  ///< arms that take turns, the base first; it stands in twice as a control in the first
  bool operator==(const AblationPlan&) const = default;
};

/// Sealed. Failure: the disk is full, say.
Status write_ablation_plan(const std::string& path, const AblationPlan& plan);
/// Failure: there is none, or it is damaged.
Result<AblationPlan> read_ablation_plan(const std::string& path);
Result<AblationPlan> parse_ablation_plan(const std::string& text, const std::string& path);

/// What a trial told of an arm's costs, in seconds.
struct ArmCost {
  double start = 0;  ///< with filled caches
  double step = 0;
  double finish = 0;  ///< an evaluation and the end
};

struct AblationBudget {
  double seconds = 0;      ///< for all runs
  int64_t steps = 0;       ///< of each run; 0: as many as there is time for
  int64_t most_steps = 0;  ///< train.steps of the job
  double turn_seconds = 0.25;
  int64_t memory_bytes = 0;  ///< for all runs of a group together
};

/// For people, before the long part begins: what is going to be done, and what there is no time for.
std::string text(const AblationPlan& plan);

/// Groups of arms that take turns, so that their memory fits and rounds stay short; the base is in every one, and once more, as the
/// control, in the first, where memory allows it. An arm that does not fit beside the base is in a group of its own, which tells its
/// memory and its quality, and its time less surely.
std::vector<std::vector<size_t>> group_arms(std::span<const PlannedArm> arms, int64_t memory_bytes);

/// Decides seeds, where the plan leaves them open, steps, groups and estimated_seconds by the costs, by arm. Where there is no time for enough steps of all, arms are dropped
/// from the end, each with its reason. UsageError: there is not enough for two.
void spend(AblationPlan& plan, std::span<const ArmCost> costs, const AblationBudget& budget);

}  // namespace fullbore
