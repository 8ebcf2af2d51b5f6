#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fullbore/lab/quality/gate.h"

namespace fullbore {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

constexpr size_t kNameWidth = 18;

/// As many digits as the margin has use for.
std::string figure(double value, double margin, bool with_sign = false) {
  if (!std::isfinite(value)) return "-";
  const double least = std::isfinite(margin) && margin > 0 ? margin : 1e-3;
  const int digits = std::clamp(static_cast<int>(std::ceil(2 - std::log10(least))), 0, 8);
  return with_sign ? fmt::format("{:+.{}f}", value, digits) : fmt::format("{:.{}f}", value, digits);
}

std::string chance(double p) {
  if (!std::isfinite(p)) return "-";
  constexpr double kLeast = 1e-4;
  return p < kLeast ? "<0.0001" : fmt::format("{:.4f}", p);
}

std::string share(double power) {
  if (!std::isfinite(power)) return "-";
  constexpr double kMost = 0.999;
  return power > kMost ? ">0.999" : fmt::format("{:.3f}", power);
}

std::string margin_text(const EquivalenceResult& result) {
  const QualityMetric& metric = result.metric;
  const std::string unit = metric.unit.empty() ? "" : " " + metric.unit;
  const char* const sign = metric.better == Better::same     ? "+-"
                           : metric.better == Better::higher ? "-"
                                                             : "+";
  if (metric.is_relative) return fmt::format("{}{:.3g} %", sign, 100 * metric.margin);
  return fmt::format("{}{:.3g}{}", sign, metric.margin, unit);
}

}  // namespace

std::string result_header(const EquivalenceOptions& options) {
  return fmt::format("{:<18}{:>9}{:>9}{:>11}  {:<20} {}\n", "", "A", "B", "B - A",
                     fmt::format("{:.0f} % interval", 100 * (1 - 2 * options.alpha)), "verdict");
}

std::string result_text(const EquivalenceResult& result) {
  const auto shown = [&](double value, bool with_sign = false) {
    return figure(value, result.margin, with_sign);
  };
  std::string name = result.metric.name;
  if (name.size() >= kNameWidth) name += "\n" + std::string(kNameWidth, ' ');
  std::string text =
      fmt::format("{:<18}{:>9}{:>9}{:>11}  {:<20} {}\n", name, shown(result.mean_a),
                  shown(result.mean_b), shown(result.difference, true),
                  std::isfinite(result.low)
                      ? fmt::format("[{}, {}]", shown(result.low, true), shown(result.high, true))
                      : "",
                  verdict_name(result.verdict));
  text += fmt::format("  margin {}", margin_text(result));
  if (!std::isfinite(result.power)) return fmt::format("{}; {}\n", text, result.reason);
  return fmt::format(
      "{}; p {} at it, {} of none\n  power {}, {} {} needed: {}\n", text, chance(result.p_margin),
      chance(result.p_equal), share(result.power),
      result.seeds_needed > 0 ? fmt::format("{}", result.seeds_needed) : std::string("too many"),
      result.unit, result.reason);
}

nlohmann::ordered_json result_json(const EquivalenceResult& result) {
  return {{"metric", result.metric.name},
          {"unit", result.metric.unit},
          {"better", better_name(result.metric.better)},
          {"pairs", result.pairs},
          {"a", number(result.mean_a)},
          {"b", number(result.mean_b)},
          {"difference", number(result.difference)},
          {"low", number(result.low)},
          {"high", number(result.high)},
          {"spread", number(result.spread)},
          {"margin", result.metric.margin},
          {"margin_is_relative", result.metric.is_relative},
          {"margin_source", result.metric.source},
          {"p_margin", number(result.p_margin)},
          {"p_worse", number(result.p_worse)},
          {"p_equal", number(result.p_equal)},
          {"power", number(result.power)},
          {"seeds_needed", result.seeds_needed > 0 ? Json(result.seeds_needed) : Json()},
          {"verdict", verdict_name(result.verdict)},
          {"reason", result.reason}};
}

std::string gate_text(const GateReport& report) {
  std::string text = fmt::format("A  {}\nB  {}\n", report.a, report.b);
  for (const SettingDifference& each : report.differences)
    text += fmt::format("   {}: {} -> {}\n", each.key, each.a, each.b);
  if (report.differences.empty() && !report.seeds.empty()) text += "   no setting differs\n";
  text += fmt::format("{} pair{} by seed{}{}{}, of {} steps\n\n", report.seeds.size(),
                      report.seeds.size() == 1 ? "" : "s", report.seeds.size() == 1 ? "" : "s",
                      report.seeds.empty() ? "" : " ", fmt::join(report.seeds, " "), report.steps);
  text += result_header(report.options);
  for (const EquivalenceResult& each : report.test.metrics) text += result_text(each);
  for (const std::string& note : report.notes) text += fmt::format("note: {}\n", note);
  const char* meaning = report.test.verdict == Verdict::passed ? "B is no worse than A"
                        : report.test.verdict == Verdict::failed
                            ? "B is worse than A"
                            : "whether B is worse than A is open";
  return fmt::format("{}\n{}: {} (alpha {:g}, power {:g})\n", text,
                     verdict_name(report.test.verdict), meaning, report.options.alpha,
                     report.options.power);
}

nlohmann::ordered_json gate_json(const GateReport& report) {
  Json json = {{"a", report.a},
               {"b", report.b},
               {"verdict", verdict_name(report.test.verdict)},
               {"seeds", report.seeds},
               {"steps", report.steps},
               {"alpha", report.options.alpha},
               {"power", report.options.power},
               {"alarm", report.options.alarm},
               {"pilot", report.options.pilot > 0 ? Json(report.options.pilot) : Json()},
               {"differences", Json::array()},
               {"metrics", Json::array()},
               {"notes", report.notes}};
  for (const SettingDifference& each : report.differences)
    json["differences"].push_back({{"key", each.key}, {"a", each.a}, {"b", each.b}});
  for (const EquivalenceResult& each : report.test.metrics)
    json["metrics"].push_back(result_json(each));
  return json;
}

}  // namespace fullbore
