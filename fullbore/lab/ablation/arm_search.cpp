#include "fullbore/lab/ablation/arm_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/train/config_schema.h"

namespace fullbore {
namespace {

/// Plans each combination once. What is no program's business is part of the fingerprint.
class PlannedArms {
 public:
  PlannedArms(std::vector<Switch> switches, const ArmPlanner& planner)
      : switches_(std::move(switches)), planner_(planner) {}

  const ArmPlan& of(const std::vector<bool>& on) {
    const auto known = plans_.find(on);
    if (known != plans_.end()) return known->second;
    ArmPlan plan = planner_(Arm{"", on}, switches_);
    for (size_t i = 0; i < switches_.size(); ++i)
      if (on[i] && !is_of_program(switches_[i])) plan.fingerprint += ' ' + switches_[i].name;
    return plans_.emplace(on, std::move(plan)).first->second;
  }

  std::vector<bool> none() const { return std::vector<bool>(switches_.size(), false); }
  std::vector<bool> only(size_t i) const {
    std::vector<bool> on = none();
    on[i] = true;
    return on;
  }
  const std::vector<Switch>& switches() const { return switches_; }

 private:
  std::vector<Switch> switches_;
  const ArmPlanner& planner_;
  std::map<std::vector<bool>, ArmPlan> plans_;
};

/// Those that can be on together: all that are first of their keys, or where that is refused as many as can be added one by one.
std::vector<bool> find_together(PlannedArms& arms, std::vector<std::string>& alone) {
  const std::vector<Switch>& switches = arms.switches();
  std::vector<bool> first = first_of_each_key(switches);
  for (size_t i = 0; i < switches.size(); ++i)
    if (!first[i])
      alone.push_back(fmt::format("{}: another value of {} is on in its place", switches[i].name,
                                  switches[i].key));
  if (arms.of(first).refused.empty()) return first;
  std::vector<bool> together = arms.none();
  for (size_t i = 0; i < switches.size(); ++i) {
    if (!first[i]) continue;
    together[i] = true;
    const std::string& refused = arms.of(together).refused;
    if (refused.empty()) continue;
    together[i] = false;
    alone.push_back(fmt::format("{}: {}", switches[i].name, refused));
  }
  return together;
}

bool changes_something(PlannedArms& arms, size_t i, const std::vector<bool>& together) {
  if (!is_of_program(arms.switches()[i])) return true;
  if (arms.of(arms.only(i)).fingerprint != arms.of(arms.none()).fingerprint) return true;
  if (!together[i]) return false;
  std::vector<bool> left_out = together;
  left_out[i] = false;
  return arms.of(left_out).fingerprint != arms.of(together).fingerprint;
}

void add_arms(AblationPlan& plan, std::vector<Arm> arms, PlannedArms& planner) {
  std::map<std::string, int> seen;
  for (Arm& arm : arms) {
    PlannedArm planned{.arm = std::move(arm), .plan = {}, .same_as = -1, .dropped = {}};
    planned.plan = planner.of(planned.arm.on);
    if (!planned.plan.refused.empty()) {
      planned.dropped = planned.plan.refused;
    } else {
      const auto [first, is_new] =
          seen.emplace(planned.plan.fingerprint, static_cast<int>(plan.arms.size()));
      if (!is_new) planned.same_as = first->second;
    }
    plan.arms.push_back(std::move(planned));
  }
}

}  // namespace

bool is_of_program(const Switch& each) {
  if (each.key.empty()) return true;
  const ConfigField* field = find_config_field(each.key);
  if (!field || field->section() != "engine" || field->is_list()) return false;
  Config config;
  return !field->choices.empty() || std::holds_alternative<bool*>(field->place(config));
}

void find_arms(AblationPlan& plan, std::vector<Switch> candidates, const ArmPlanner& planner) {
  PlannedArms all(std::move(candidates), planner);
  if (const std::string& refused = all.of(all.none()).refused; !refused.empty())
    throw UsageError(
        fmt::format("lab: the base, with all switches off, cannot be planned: {}", refused));
  std::vector<std::string> not_together;
  const std::vector<bool> whole = find_together(all, not_together);
  for (size_t i = 0; i < all.switches().size(); ++i)
    (changes_something(all, i, whole) ? plan.switches.push_back(all.switches()[i])
                                      : plan.unused.push_back(all.switches()[i].name));
  if (plan.switches.empty())
    throw UsageError("lab: none of these switches changes anything in this job");
  PlannedArms used(plan.switches, planner);
  const std::vector<bool> together = find_together(used, plan.alone);
  add_arms(plan, ablation_arms(plan.switches, together), used);
}

void take_arms(AblationPlan& plan, std::vector<Switch> switches, std::vector<Arm> arms,
               const ArmPlanner& planner) {
  plan.switches = std::move(switches);
  PlannedArms planned(plan.switches, planner);
  add_arms(plan, std::move(arms), planned);
  if (const std::string& refused = plan.arms[0].dropped; !refused.empty())
    throw UsageError(fmt::format("lab: the base cannot be planned: {}", refused));
}

}  // namespace fullbore
