#pragma once
#include <functional>
#include <string>
#include <vector>

#include "fullbore/lab/ablation/ablation_plan.h"

namespace fullbore {

/// Plans a job with the switches that are on. The ArmPlan says so where it is refused.
using ArmPlanner = std::function<ArmPlan(const Arm& arm, const std::vector<Switch>& switches)>;

/// Does a switch change nothing but what is compiled, so that equal programs are equal runs?
bool is_of_program(const Switch& each);

/// Fills in the switches, arms, unused and alone of a plan by planning arms: which switches change a program, alone or left out of
/// all; which of them go together; and which arms have the same programs, to be measured once. UsageError: the base is refused, or
/// no switch changes anything.
void find_arms(AblationPlan& plan, std::vector<Switch> candidates, const ArmPlanner& planner);

/// The same of arms that are given, the base first: only those that are refused, or equal, are told.
void take_arms(AblationPlan& plan, std::vector<Switch> switches, std::vector<Arm> arms,
               const ArmPlanner& planner);

}  // namespace fullbore
