#include "fullbore/lab/ablation/ablation_claim.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/base/json.h"
#include "fullbore/base/printable.h"
#include "fullbore/base/program_name.h"
#include "fullbore/monitor/sample_statistics.h"

namespace fullbore {
namespace {

size_t recommended_arm(const AblationPlan& plan, const std::string& name) {
  for (size_t i = 0; i < plan.arms.size(); ++i)
    if (plan.arms[i].arm.name == name) return i;
  throw DataError(fmt::format("lab: the report recommends {}, which is no arm of its plan",
                              printable_name(name)));
}

/// What the report claims, and of which arm.
Confirmation read_claim(const std::string& folder) {
  const std::string path = folder + "/report.json";
  const Result<nlohmann::json> json = parse_json(read_file(path).take_or_throw());
  if (!json.ok()) throw DataError(fmt::format("{}: {}", path, json.error()));
  try {
    Confirmation claim;
    claim.arm = json.value().at("recommended").get<std::string>();
    for (const nlohmann::json& arm : json.value().at("arms")) {
      if (arm.at("name") != claim.arm || claim.arm == "base") continue;
      const nlohmann::json& time = arm.at("log_time");
      claim.claimed = std::exp(-time.at("difference").get<double>());
      claim.claimed_low = std::exp(-time.at("high").get<double>());
      claim.claimed_high = std::exp(-time.at("low").get<double>());
    }
    return claim;
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace

std::string recommended_yaml(const AblationReport& report, const AblationPlan& plan,
                             const AblationRequest& request) {
  const auto index = static_cast<size_t>(report.recommended);
  const ArmReport& arm = report.arms[index];
  std::string yaml;
  const auto say = [&](const std::string& text) {
    yaml += fmt::format("# {}\n", printable_name(text));
  };
  say(fmt::format("Recommended by `{} lab ablate {}`, of {} arms.", program_name(), request.config,
                  report.arms.size()));
  if (report.recommended == 0) {
    // What nobody has shown to be better stays as it is.
    say("Nothing is shown to be faster than the base with quality that is no worse: this is the "
        "configuration as it was.");
    return yaml + config_yaml(request.settings);
  }
  say(fmt::format(
      "Claim: {:.3f} times the base's speed (95 % interval {:.3f} to {:.3f}), quality no worse;",
      arm.speed(), arm.speed_low(), arm.speed_high()));
  say(fmt::format("from {} runs of {} steps. Machine: {}.", arm.seeds, arm.steps, report.machine));
  say(fmt::format("Arm: {}; on: {}.", arm.name, fmt::join(arm.on, ", ")));
  say(fmt::format("`{} lab ablate CONFIG --confirm` measures it again.", program_name()));
  std::vector<std::string> settings = request.overrides;
  for (std::string& setting : arm_settings(plan.arms[index].arm, plan.switches, request.settings))
    settings.push_back(std::move(setting));
  return yaml + config_yaml(load_config(request.config, settings));
}

Confirmation confirm_claim(const AblationRequest& request, const StopRequest& stop,
                           const TellDoing& progress) {
  Confirmation result = read_claim(request.folder);
  const AblationPlan plan = read_ablation_plan(request.folder + "/plan.json").take_or_throw();
  if (result.arm == "base")
    throw UsageError(
        fmt::format("lab: {} recommends nothing: there is nothing to confirm", request.folder));
  const PlannedArm& claimed = plan.arms[recommended_arm(plan, result.arm)];
  AblationRequest again = request;
  again.folder = request.folder + "/confirm";
  again.resume = false;
  again.arms = {plan.arms[0].arm, claimed.arm};
  again.given_switches = plan.switches;
  again.first_seed = plan.seeds;
  // Of two arms alone, fewer tell too little of how processes differ.
  again.seeds = std::max<int64_t>(request.seeds, 4);
  if (again.steps == 0) again.steps = plan.steps;
  FileStatus there;
  if (system_files().status(again.folder, there) == 0)
    remove_folder_with_contents(again.folder).take_or_throw();
  const Ablation ablation = ablate(again, stop, progress);
  result.interrupted = ablation.interrupted;
  if (result.interrupted) return result;
  const ArmReport arm = report_ablation(ablation, again, {}).arms[1];
  if (!arm.reason.empty())
    throw DataError(fmt::format("lab: {} could not be measured again: {}", result.arm, arm.reason));
  result.found = arm.speed();
  result.found_low = arm.speed_low();
  result.found_high = arm.speed_high();
  result.holds = result.found_low > 1 && result.found_high >= result.claimed_low &&
                 result.found_low <= result.claimed_high;
  return result;
}

nlohmann::ordered_json to_json(const Confirmation& confirmation) {
  return {{"arm", confirmation.arm},
          {"claimed", confirmation.claimed},
          {"claimed_low", confirmation.claimed_low},
          {"claimed_high", confirmation.claimed_high},
          {"found", confirmation.found},
          {"found_low", confirmation.found_low},
          {"found_high", confirmation.found_high},
          {"holds", confirmation.holds}};
}

std::string text(const Confirmation& confirmation) {
  return fmt::format(
      "{}\nclaimed  {:.3f} times the base's speed ({:.3f} to {:.3f})\n"
      "found    {:.3f} times ({:.3f} to {:.3f})\n{}\n",
      printable_name(confirmation.arm), confirmation.claimed, confirmation.claimed_low,
      confirmation.claimed_high, confirmation.found, confirmation.found_low,
      confirmation.found_high,
      confirmation.holds ? "The claim holds." : "The claim is not confirmed.");
}

}  // namespace fullbore
