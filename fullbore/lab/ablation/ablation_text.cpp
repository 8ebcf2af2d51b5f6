#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "fullbore/base/printable.h"
#include "fullbore/lab/ablation/ablation_report.h"
#include "fullbore/lab/ablation/ablation_tables.h"

namespace fullbore {
namespace {

nlohmann::ordered_json to_json(const Effect& effect) {
  return {{"difference", effect.difference},
          {"low", effect.low},
          {"high", effect.high},
          {"p", effect.p},
          {"p_corrected", effect.p_corrected},
          {"detectable", effect.detectable}};
}

nlohmann::ordered_json to_json(const ArmMetric& metric) {
  const EquivalenceResult& judged = metric.against_base;
  return {{"name", metric.name},
          {"at_equal_steps", metric.at_equal_steps},
          {"at_equal_samples", metric.at_equal_samples},
          {"at_equal_time", metric.at_equal_time},
          {"difference", judged.difference},
          {"low", judged.low},
          {"high", judged.high},
          {"p_equal", judged.p_equal},
          {"margin", judged.margin},
          {"seeds_needed", judged.seeds_needed},
          {"verdict", judged.pairs > 0 ? verdict_name(judged.verdict) : "not judged"}};
}

nlohmann::ordered_json to_json(const ArmReport& arm) {
  nlohmann::ordered_json json = {{"name", arm.name}, {"on", arm.on}};
  if (!arm.same_as.empty()) json["same_as"] = arm.same_as;
  if (!arm.reason.empty()) {
    json["reason"] = arm.reason;
    return json;
  }
  auto metrics = nlohmann::ordered_json::array();
  for (const ArmMetric& metric : arm.metrics) metrics.push_back(to_json(metric));
  // JSON has no infinity.
  const bool never = std::isinf(arm.payback_step);
  json.update(
      nlohmann::ordered_json{{"seeds", arm.seeds},
                             {"steps", arm.steps},
                             {"step_seconds", arm.step_seconds},
                             {"step_seconds_low", arm.step_interval.low},
                             {"step_seconds_high", arm.step_interval.high},
                             {"throughput", arm.throughput},
                             {"roofline_share", arm.roofline_share},
                             {"planned_bytes", arm.planned_bytes},
                             {"resident_bytes", arm.resident_bytes},
                             {"first_step_cold_seconds", arm.first_step_cold},
                             {"first_step_warm_seconds", arm.first_step_warm},
                             {"speed", arm.speed()},
                             {"log_time", to_json(arm.time)},
                             {"log_time_by_seed", arm.log_times},
                             {"metrics", metrics},
                             {"no_worse", arm.no_worse},
                             {"run_hours", arm.run_hours},
                             {"saved_hours", arm.saved_hours},
                             {"payback_step", never ? ArmReport::kUnknown : arm.payback_step},
                             {"ahead_until_step", arm.ahead_until_step},
                             {"joules_per_sample", arm.joules_per_sample},
                             {"run_kwh", arm.run_kwh},
                             {"saved_kwh", arm.saved_kwh}});
  return json;
}

}  // namespace

nlohmann::ordered_json to_json(const AblationReport& report) {
  auto arms = nlohmann::ordered_json::array();
  for (const ArmReport& arm : report.arms) arms.push_back(to_json(arm));
  return {{"config", report.config},
          {"machine", report.machine},
          {"unit", report.unit},
          {"energy", report.energy},
          {"energy_of", report.energy.empty() ? report.energy_of : ""},
          {"seeds", report.seeds},
          {"cut_seeds", report.cut_seeds},
          {"steps", report.steps},
          {"configured_steps", report.configured_steps},
          {"eval_batches", report.eval_batches},
          {"switches", report.switches},
          {"unused", report.unused},
          {"alone", report.alone},
          {"control_log_time", to_json(report.control)},
          {"control_log_time_by_seed", report.control_log_times},
          {"detectable", report.detectable},
          {"recommended", report.arms[static_cast<size_t>(report.recommended)].name},
          {"undecided", report.undecided},
          {"arms", arms}};
}

std::string ablation_text(const AblationReport& report) {
  std::string out = wrapped_text(printable_name(ablation_headline(report)));
  for (const ReportTable& table : ablation_tables(report)) out += '\n' + table_text(table);
  for (const std::string& note : ablation_notes(report))
    out += '\n' + wrapped_text(printable_name(note));
  return out;
}

std::string ablation_markdown(const AblationReport& report) {
  std::string out = fmt::format("# Ablation\n\n{}\n", ablation_headline(report));
  for (const ReportTable& table : ablation_tables(report)) out += '\n' + table_markdown(table);
  out += "\n## Notes\n\n";
  for (const std::string& note : ablation_notes(report))
    out += fmt::format("- {}\n", printable_name(note));
  return out;
}

}  // namespace fullbore
