#include "fullbore/lab/ablation/ablation_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "fullbore/base/counted.h"
#include "fullbore/base/files.h"
#include "fullbore/base/text.h"
#include "fullbore/lab/process/kept_json.h"

namespace fullbore {
namespace {

/// Rounds of more arms take so long that the machine changes within them.
constexpr size_t kMostInGroup = 8;
constexpr int64_t kLeastSteps = 24;
/// Turns that times are told by.
constexpr double kLeastTurns = 6;
constexpr int64_t kLeastSeeds = 2;
/// Effects are found by runs that differ, so that time goes to more of them first; beyond so many to longer ones too.
constexpr int64_t kGoodSeeds = 6;
constexpr int64_t kMostSeeds = 16;
constexpr int64_t kEvaluations = 4;  ///< beside that of step 0

int64_t memory_of(const PlannedArm& arm) { return arm.plan.planned_bytes + arm.plan.process_bytes; }

nlohmann::ordered_json to_json(const PlannedArm& arm) {
  return {{"name", arm.arm.name},
          {"on", arm.arm.on},
          {"same_as", arm.same_as},
          {"dropped", arm.dropped},
          {"refused", arm.plan.refused},
          {"fingerprint", arm.plan.fingerprint},
          {"planned_bytes", arm.plan.planned_bytes},
          {"process_bytes", arm.plan.process_bytes},
          {"roofline_seconds", arm.plan.roofline_seconds},
          {"flops", arm.plan.flops},
          {"unit", arm.plan.unit}};
}

PlannedArm arm_of(const nlohmann::json& json) {
  PlannedArm arm;
  arm.arm = {json.at("name").get<std::string>(), json.at("on").get<std::vector<bool>>()};
  const int64_t same = json.at("same_as").get<int64_t>();
  arm.same_as = same >= -1 && same <= std::numeric_limits<int>::max() ? static_cast<int>(same) : -2;
  arm.dropped = json.at("dropped").get<std::string>();
  arm.plan = {json.at("refused").get<std::string>(),     json.at("fingerprint").get<std::string>(),
              json.at("planned_bytes").get<int64_t>(),   json.at("process_bytes").get<int64_t>(),
              json.at("roofline_seconds").get<double>(), json.at("flops").get<double>(),
              json.at("unit").get<std::string>()};
  return arm;
}

/// In which group an arm is measured; the base, which is in many, counts once.
size_t groups_with(const AblationPlan& plan, size_t arm) {
  size_t count = 0;
  for (const std::vector<size_t>& group : plan.groups)
    count += std::ranges::find(group, arm) != group.end() ? 1 : 0;
  return arm == 0 ? std::min<size_t>(count, 1) : count;
}

/// What a reader relies on. The text of the first thing that does not hold, or "".
std::string problem_of(const AblationPlan& plan) {
  if (plan.arms.empty()) return "there is no arm";
  for (size_t i = 0; i < plan.arms.size(); ++i) {
    const PlannedArm& arm = plan.arms[i];
    if (arm.arm.on.size() != plan.switches.size()) return "an arm has other switches";
    if (arm.same_as < -1 || arm.same_as >= static_cast<int>(i))
      return "an arm is said to be one that does not come before it";
    if (arm.same_as >= 0 && plan.arms[static_cast<size_t>(arm.same_as)].same_as >= 0)
      return "an arm is said to be one that is another";
    if (plan.steps > 0 && groups_with(plan, i) != (arm.is_measured() ? 1U : 0U))
      return "an arm is not measured once";
  }
  constexpr int64_t kMostRuns = 1'000'000;
  if (plan.seeds < (plan.steps > 0 ? 1 : 0) || plan.seeds > kMostRuns || plan.steps < 0 ||
      plan.steps > 1'000'000'000 || plan.cut_seeds < 0 || plan.cut_seeds > kMostRuns)
    return "seeds or steps are none";
  for (const std::vector<size_t>& group : plan.groups) {
    if (group.empty() || group.size() > kMostInGroup) return "a group has no arms, or too many";
    for (const size_t arm : group)
      if (arm >= plan.arms.size()) return "a group has an arm that there is not";
  }
  if (plan.steps > 0 && !plan.arms[0].is_measured()) return "the base is not measured";
  return "";
}

/// Of one seed: all that does not depend on the number of steps, and what each step adds.
struct SeedCost {
  double fixed = 0;
  double per_step = 0;
};

SeedCost seed_cost(const std::vector<std::vector<size_t>>& groups, std::span<const ArmCost> costs) {
  SeedCost cost;
  for (const std::vector<size_t>& group : groups)
    for (const size_t arm : group) {
      cost.fixed += costs[arm].start + costs[arm].finish * static_cast<double>(kEvaluations + 1);
      cost.per_step += costs[arm].step;
    }
  return cost;
}

int64_t least_steps(const AblationPlan& plan, std::span<const ArmCost> costs,
                    const AblationBudget& budget) {
  double fastest = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < plan.arms.size(); ++i)
    if (plan.arms[i].is_measured() && costs[i].step > 0) fastest = std::min(fastest, costs[i].step);
  const double turns = kLeastTurns * std::max(1.0, budget.turn_seconds / fastest);
  const int64_t wanted = std::max<int64_t>(kLeastSteps, std::llround(turns));
  return std::min(wanted, budget.most_steps);
}

/// Of each run, where `seeds` of all arms may take so long.
double affordable_steps(const SeedCost& cost, double seconds, int64_t seeds) {
  const auto runs = static_cast<double>(seeds);
  return cost.per_step > 0 ? (seconds - cost.fixed * runs) / (cost.per_step * runs) : 0;
}

void settle_steps(AblationPlan& plan, const SeedCost& cost, const AblationBudget& budget) {
  const auto most = static_cast<double>(budget.most_steps);
  const double affordable = affordable_steps(cost, budget.seconds, plan.seeds);
  const int64_t steps =
      budget.steps > 0
          ? budget.steps
          : static_cast<int64_t>(budget.seconds > 0 ? std::min(affordable, most) : most);
  plan.evaluation_interval = std::max<int64_t>(1, steps / kEvaluations);
  plan.steps =
      budget.steps > 0 || steps < kEvaluations ? steps : plan.evaluation_interval * kEvaluations;
  plan.estimated_seconds = static_cast<double>(plan.seeds) *
                           (cost.fixed + cost.per_step * static_cast<double>(plan.steps));
}

/// As many as there is time for: six of twice the least steps, then more of eight times as many.
int64_t seeds_for(const SeedCost& cost, const AblationBudget& budget, int64_t least) {
  for (int64_t seeds = kMostSeeds; seeds > kLeastSeeds; --seeds) {
    const int64_t wanted = budget.steps > 0
                               ? budget.steps
                               : std::min(budget.most_steps, (seeds > kGoodSeeds ? 8 : 2) * least);
    if (affordable_steps(cost, budget.seconds, seeds) >= static_cast<double>(wanted)) return seeds;
  }
  return kLeastSeeds;
}

}  // namespace

std::vector<std::vector<size_t>> group_arms(std::span<const PlannedArm> arms,
                                            int64_t memory_bytes) {
  std::vector<std::vector<size_t>> groups;
  const int64_t base = memory_of(arms[0]);
  int64_t taken = 0;
  const auto begin_group = [&] {
    groups.push_back({0});
    taken = base;
  };
  begin_group();
  if (taken + base <= memory_bytes) {
    groups.back().push_back(0);
    taken += base;
  }
  for (size_t i = 1; i < arms.size(); ++i) {
    if (!arms[i].is_measured()) continue;
    const int64_t own = memory_of(arms[i]);
    if (base + own > memory_bytes) {
      groups.push_back({i});
      taken = memory_bytes;  // nobody joins it
      continue;
    }
    if (groups.back().size() == kMostInGroup || taken + own > memory_bytes) begin_group();
    groups.back().push_back(i);
    taken += own;
  }
  return groups;
}

void spend(AblationPlan& plan, std::span<const ArmCost> costs, const AblationBudget& budget) {
  const bool seeds_are_free = plan.seeds == 0;
  if (seeds_are_free) plan.seeds = kLeastSeeds;
  for (;;) {
    plan.groups = group_arms(plan.arms, budget.memory_bytes);
    const SeedCost cost = seed_cost(plan.groups, costs);
    const auto seeds = static_cast<double>(plan.seeds);
    const int64_t least = budget.steps > 0 ? budget.steps : least_steps(plan, costs, budget);
    if (affordable_steps(cost, budget.seconds, plan.seeds) >= static_cast<double>(least) ||
        budget.seconds <= 0) {
      if (seeds_are_free) plan.seeds = seeds_for(cost, budget, least);
      settle_steps(plan, cost, budget);
      return;
    }
    size_t last = plan.arms.size();
    while (last > 1 && !plan.arms[last - 1].is_measured()) --last;
    size_t measured = 0;
    for (const PlannedArm& arm : plan.arms) measured += arm.is_measured() ? 1 : 0;
    if (measured <= 2)
      throw UsageError(fmt::format(
          "lab: the time that is left, {}, is not enough for {} steps of two arms over {} seeds, "
          "which take "
          "about {}; raise --minutes, or lower --steps",
          duration_text(std::max(budget.seconds, 0.0)), least, plan.seeds,
          duration_text(seeds * (cost.fixed + cost.per_step * static_cast<double>(least)))));
    plan.arms[last - 1].dropped = "no time for it: raise --minutes";
  }
}

std::string text(const AblationPlan& plan) {
  int64_t measured = 0;
  int64_t same = 0;
  for (const PlannedArm& arm : plan.arms) {
    measured += arm.is_measured() ? 1 : 0;
    same += arm.same_as >= 0 ? 1 : 0;
  }
  std::string words = fmt::format(
      "{}, {}: {} to measure, {} with programs that others have; {}, {} each, in {}: about {}",
      counted(std::ssize(plan.switches), "switch"), counted(std::ssize(plan.arms), "arm"), measured,
      same, counted(plan.seeds, "seed"), counted(plan.steps, "step"),
      counted(std::ssize(plan.groups), "group"), duration_text(plan.estimated_seconds));
  for (const PlannedArm& arm : plan.arms)
    if (!arm.dropped.empty())
      words += fmt::format("\nnot measured: {}: {}", arm.arm.name, arm.dropped);
  return words;
}

Status write_ablation_plan(const std::string& path, const AblationPlan& plan) {
  auto arms = nlohmann::ordered_json::array();
  for (const PlannedArm& arm : plan.arms) arms.push_back(to_json(arm));
  auto switches = nlohmann::ordered_json::array();
  for (const Switch& each : plan.switches)
    switches.push_back(
        {{"name", each.name}, {"key", each.key}, {"value", each.value}, {"off", each.off}});
  const nlohmann::ordered_json json = {{"identity", plan.identity},
                                       {"switches", switches},
                                       {"unused", plan.unused},
                                       {"alone", plan.alone},
                                       {"arms", arms},
                                       {"seeds", plan.seeds},
                                       {"cut_seeds", plan.cut_seeds},
                                       {"steps", plan.steps},
                                       {"evaluation_interval", plan.evaluation_interval},
                                       {"estimated_seconds", plan.estimated_seconds},
                                       {"groups", plan.groups}};
  return write_kept_json(path, json);
}

Result<AblationPlan> parse_ablation_plan(const std::string& text, const std::string& path) {
  const Result<nlohmann::json> parsed = parse_kept_json(text, path);
  if (!parsed.ok()) return Failure{parsed.error()};
  try {
    const nlohmann::json& json = parsed.value();
    AblationPlan plan;
    plan.identity = json.at("identity").get<std::string>();
    for (const nlohmann::json& each : json.at("switches"))
      plan.switches.push_back(
          {each.at("name").get<std::string>(), each.at("key").get<std::string>(),
           each.at("value").get<std::string>(), each.at("off").get<std::string>()});
    plan.unused = json.at("unused").get<std::vector<std::string>>();
    plan.alone = json.at("alone").get<std::vector<std::string>>();
    for (const nlohmann::json& each : json.at("arms")) plan.arms.push_back(arm_of(each));
    plan.seeds = json.at("seeds").get<int64_t>();
    plan.cut_seeds = json.at("cut_seeds").get<int64_t>();
    plan.steps = json.at("steps").get<int64_t>();
    plan.evaluation_interval = json.at("evaluation_interval").get<int64_t>();
    plan.estimated_seconds = json.at("estimated_seconds").get<double>();
    for (const nlohmann::json& group : json.at("groups")) {
      std::vector<size_t>& arms = plan.groups.emplace_back();
      // A negative or broken number is none that there is an arm of.
      for (const nlohmann::json& arm : group)
        arms.push_back(arm.is_number_unsigned() ? arm.get<size_t>() : plan.arms.size());
    }
    if (const std::string problem = problem_of(plan); !problem.empty())
      return Failure{fmt::format("{}: {}", path, problem)};
    return plan;
  } catch (const nlohmann::json::exception& error) {
    return Failure{fmt::format("{}: {}", path, error.what())};
  }
}

Result<AblationPlan> read_ablation_plan(const std::string& path) {
  const Result<std::string> text = read_file(path);
  if (!text.ok()) return Failure{text.error()};
  return parse_ablation_plan(text.value(), path);
}

}  // namespace fullbore
