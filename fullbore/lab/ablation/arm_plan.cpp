#include "fullbore/lab/ablation/arm_plan.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fullbore/base/files.h"
#include "fullbore/base/json.h"

namespace fullbore {
namespace {

constexpr double kMostSeconds = 600;

}  // namespace

ArmPlan parse_arm_plan(const std::string& text) {
  ArmPlan plan;
  const Result<nlohmann::json> json = parse_json(text);
  if (!json.ok()) {
    plan.refused = fmt::format("its plan cannot be read: {}", json.error());
    return plan;
  }
  try {
    const nlohmann::json& all = json.value();
    const nlohmann::json& step = all.at("train");
    plan.fingerprint = all.at("fingerprint").get<std::string>();
    plan.unit = all.at("unit").get<std::string>();
    plan.planned_bytes = all.at("planned_peak_bytes").get<int64_t>();
    plan.process_bytes = all.at("process_bytes").get<int64_t>();
    plan.roofline_seconds = step.at("roofline_seconds").get<double>();
    plan.flops = step.at("flops").get<double>();
  } catch (const nlohmann::json::exception& error) {
    plan.refused = fmt::format("its plan lacks a figure: {}", error.what());
  }
  return plan;
}

ArmPlan plan_arm(const std::string& config, const std::vector<std::string>& settings,
                 const std::string& file, const StopRequest& stop) {
  ChildCommand command;
  command.words = {"plan", config};
  command.words.insert(command.words.end(), settings.begin(), settings.end());
  command.words.emplace_back("--json");
  command.output = file;
  command.errors = file + ".err";
  const ChildEnd end = run_child(command, kMostSeconds, stop);
  if (!end.ok()) {
    ArmPlan refused;
    refused.refused = end.reason();
    return refused;
  }
  return parse_arm_plan(read_file(file).take_or_throw());
}

}  // namespace fullbore
