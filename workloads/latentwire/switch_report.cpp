#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fullbore/base/text.h"
#include "workloads/latentwire/switch_bench.h"

namespace fullbore::latentwire {

std::string switch_table(const std::vector<SwitchStage>& stages) {
  std::string text =
      fmt::format("{:<24} {:>12} {:>11} {:>9} {:>9} {:>7} {:>10}\n", "switch", "loss differs",
                  "first right", "ms a step", "ms models", "wait", "memory");
  for (const SwitchStage& each : stages) {
    const std::string name =
        each.added == nullptr ? "all off" : fmt::format("+ {}", each.added->name);
    if (each.losses.empty())
      text += fmt::format("{:<24} not measured\n", name);
    else
      text +=
          fmt::format("{:<24} {:>12} {:>11.3f} {:>9.2f} {:>9.2f} {:>5.1f} % {:>10}\n", name,
                      each.added == nullptr ? "" : fmt::format("{:.1e}", each.loss_difference),
                      each.first_accuracy, 1e3 * each.step_seconds, 1e3 * each.model_seconds,
                      100 * each.wait_share, bytes_text(static_cast<double>(each.planned_bytes)));
    if (!each.kept) text += fmt::format("  TURNED OFF: {}\n", each.reason);
  }
  text += "\nwithout two paths to measure:\n";
  for (const Switch& each : all_switches())
    if (!each.has_two_paths()) text += fmt::format("  {:<22} {}\n", each.name, each.about);
  return text;
}

nlohmann::ordered_json switch_json(const std::vector<SwitchStage>& stages) {
  auto list = nlohmann::ordered_json::array();
  for (const SwitchStage& each : stages) {
    nlohmann::ordered_json stage;
    stage["switch"] = each.added == nullptr ? "" : std::string(each.added->name);
    stage["number"] = each.added == nullptr ? 0 : each.added->number;
    stage["kept"] = each.kept;
    stage["reason"] = each.reason;
    stage["loss_difference"] = each.loss_difference;
    stage["first_accuracy"] = each.first_accuracy;
    stage["step_seconds"] = each.step_seconds;
    stage["model_seconds"] = each.model_seconds;
    stage["wait_share"] = each.wait_share;
    stage["planned_bytes"] = each.planned_bytes;
    stage["resident_bytes"] = each.resident_bytes;
    stage["growth_bytes"] = each.growth_bytes;
    stage["losses"] = each.losses;
    list.push_back(std::move(stage));
  }
  return list;
}

}  // namespace fullbore::latentwire
