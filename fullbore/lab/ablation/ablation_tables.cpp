#include "fullbore/lab/ablation/ablation_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "fullbore/base/counted.h"
#include "fullbore/base/text.h"

namespace fullbore {
namespace {

constexpr const char* kNothing = "-";

std::string number(double value, const char* format) {
  return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : kNothing;
}

std::string p_text(double p) {
  if (!std::isfinite(p)) return kNothing;
  return p < 0.001 ? "<0.001" : fmt::format("{:.3f}", p);
}

std::string milliseconds(double seconds) {
  const double ms = seconds * 1e3;
  return number(ms, ms < 10 ? "{:.3f}" : ms < 100 ? "{:.2f}" : "{:.1f}");
}

std::string percent(double ratio) { return number((ratio - 1) * 100, "{:+.1f}"); }

/// "passed", "=" where all is equal to the bit, "" of the base.
std::string verdict(const ArmReport& arm, bool is_base) {
  if (is_base) return "";
  if (arm.metrics.empty()) return kNothing;
  Verdict worst = Verdict::passed;
  bool judged = false;
  for (const ArmMetric& metric : arm.metrics) {
    judged = judged || metric.against_base.pairs > 0;
    if (metric.against_base.verdict == Verdict::failed) worst = Verdict::failed;
    if (metric.against_base.verdict == Verdict::undecided && worst == Verdict::passed)
      worst = Verdict::undecided;
  }
  if (arm.no_worse && (!judged || worst != Verdict::passed)) return "equal";
  if (!judged) return "not judged";
  return worst == Verdict::passed ? "no worse" : worst == Verdict::failed ? "worse" : "undecided";
}

ReportTable speed_table(const AblationReport& report) {
  ReportTable table{.title = "Speed and quality",
                    .header = {"arm", "ms/step", "speed", "from", "to", "p", "loss", "quality"},
                    .rows = {}};
  if (!report.arms[0].metrics.empty()) table.header[6] = report.arms[0].metrics[0].name;
  for (const ArmReport& arm : report.arms) {
    if (!arm.reason.empty()) {  // which is told in the notes: it is longer than a line
      table.rows.push_back({arm.name, kNothing, kNothing, "", "", "", "", "not measured"});
      continue;
    }
    if (!arm.same_as.empty()) continue;
    const bool is_base = &arm == report.arms.data();
    std::vector<std::string> row = {
        arm.name, milliseconds(arm.step_seconds), number(arm.speed(), "{:.3f}x"), "", "", "", "",
        ""};
    if (!is_base) {
      row[3] = number(arm.speed_low(), "{:.3f}");
      row[4] = number(arm.speed_high(), "{:.3f}");
      row[5] = p_text(arm.time.p_corrected);
    }
    if (!arm.metrics.empty()) row[6] = number(arm.metrics[0].at_equal_steps, "{:.4f}");
    row[7] = verdict(arm, is_base);
    table.rows.push_back(std::move(row));
  }
  return table;
}

bool has_figures(const ArmReport& arm) { return arm.reason.empty() && arm.same_as.empty(); }

ReportTable memory_table(const AblationReport& report) {
  ReportTable table{
      .title = "Rate, share of its own roofline, memory, and the start to the first step",
      .header = {"arm", report.unit + "/s", "roofline", "planned", "resident", "cold", "warm"},
      .rows = {}};
  const auto mebibytes = [](int64_t bytes) {
    return fmt::format("{:.1f}M", static_cast<double>(bytes) / (1 << 20));
  };
  for (const ArmReport& arm : report.arms)
    if (has_figures(arm))
      table.rows.push_back(
          {arm.name, std::isfinite(arm.throughput) ? count_text(arm.throughput) : kNothing,
           number(arm.roofline_share * 100, "{:.0f}%"), mebibytes(arm.planned_bytes),
           mebibytes(arm.resident_bytes), number(arm.first_step_cold, "{:.2f}s"),
           number(arm.first_step_warm, "{:.2f}s")});
  return table;
}

ReportTable run_table(const AblationReport& report) {
  ReportTable table{
      .title =
          fmt::format("The whole run of {} steps, with its cold start", report.configured_steps),
      .header = {"arm", "time", "saved", "J/sample", "kWh", "kWh saved", "pays from step"},
      .rows = {}};
  const auto time = [](double hours) {
    return std::isfinite(hours) ? duration_text(std::abs(hours) * 3600) : kNothing;
  };
  for (const ArmReport& arm : report.arms) {
    if (!has_figures(arm)) continue;
    const bool is_base = &arm == report.arms.data();
    const std::string saved = (arm.saved_hours < 0 ? "-" : "") + time(arm.saved_hours);
    const std::string pays = std::isinf(arm.payback_step) ? "never"
                             : std::isfinite(arm.ahead_until_step)
                                 ? number(arm.ahead_until_step, "until {:.0f}")
                                 : number(arm.payback_step, "{:.0f}");
    table.rows.push_back({arm.name, time(arm.run_hours), is_base ? "" : saved,
                          number(arm.joules_per_sample, "{:.3g}"), number(arm.run_kwh, "{:.3g}"),
                          is_base ? "" : number(arm.saved_kwh, "{:.3g}"), is_base ? "" : pays});
  }
  return table;
}

ReportTable metric_table(const AblationReport& report, size_t index) {
  ReportTable table{.title = report.arms[0].metrics[index].name +
                             " after equal steps, samples and seconds of training",
                    .header = {"arm", "steps", "samples", "time", "difference", "from", "to"},
                    .rows = {}};
  for (const ArmReport& arm : report.arms) {
    if (!has_figures(arm) || index >= arm.metrics.size()) continue;
    const ArmMetric& metric = arm.metrics[index];
    table.rows.push_back(
        {arm.name, number(metric.at_equal_steps, "{:.4f}"),
         number(metric.at_equal_samples, "{:.4f}"), number(metric.at_equal_time, "{:.4f}"),
         number(metric.against_base.difference, "{:+.4f}"),
         number(metric.against_base.low, "{:+.4f}"), number(metric.against_base.high, "{:+.4f}")});
  }
  return table;
}

std::string recommendation(const AblationReport& report) {
  if (report.recommended == 0)
    return "Recommended: nothing. No arm is shown to be faster than the base with quality that is "
           "shown to be no "
           "worse.";
  const ArmReport& arm = report.arms[static_cast<size_t>(report.recommended)];
  return fmt::format(
      "Recommended: {} (recommended.yaml), {:.3f} times the base's speed ({:.3f} to {:.3f}), "
      "quality no worse; on: {}. "
      "--confirm measures the two again.",
      arm.name, arm.speed(), arm.speed_low(), arm.speed_high(), fmt::join(arm.on, ", "));
}

}  // namespace

std::vector<ReportTable> ablation_tables(const AblationReport& report) {
  std::vector<ReportTable> tables = {speed_table(report), memory_table(report), run_table(report)};
  for (size_t i = 0; i < report.arms[0].metrics.size(); ++i)
    tables.push_back(metric_table(report, i));
  return tables;
}

std::string ablation_headline(const AblationReport& report) {
  size_t measured = 0;
  for (const ArmReport& arm : report.arms)
    measured += arm.reason.empty() && arm.same_as.empty() ? 1 : 0;
  return fmt::format(
      "{}: {}, {} measured, {}, {} per arm and seed of the configuration's {}, evaluated on {}. "
      "{}. "
      "Speed is per sample against the base in the same turns, with its 95 % interval over seeds; "
      "p is corrected for "
      "the number of arms.",
      report.config, counted(std::ssize(report.switches), "switch"),
      counted(static_cast<int64_t>(measured), "arm"), counted(report.seeds, "seed"),
      counted(report.steps, "step"), report.configured_steps,
      report.eval_batches == 0 ? "all batches"
                               : fmt::format("{} batches at most", report.eval_batches),
      report.machine);
}

std::vector<std::string> ablation_notes(const AblationReport& report) {
  std::vector<std::string> notes;
  if (std::isfinite(report.control.difference))
    notes.push_back(fmt::format(
        "The base against itself: {} % of time ({} to {}). The least effect on time that this "
        "ablation finds four times of "
        "five: {} %.",
        percent(std::exp(report.control.difference)), percent(std::exp(report.control.low)),
        percent(std::exp(report.control.high)), number(report.detectable * 100, "{:.1f}")));
  if (report.cut_seeds > 0)
    notes.push_back(fmt::format(
        "Runs took longer than their trials told: time was over before {} of {}; raise --minutes.",
        report.cut_seeds, counted(report.seeds + report.cut_seeds, "seed")));
  for (const ArmReport& arm : report.arms)
    if (has_figures(arm) && arm.roofline_share > 1) {
      notes.push_back(
          "A share of the roofline above 100 % is an error of the measurement: the machine's peaks "
          "were measured "
          "too low, or operands came from caches, which the roofline counts as memory.");
      break;
    }
  notes.push_back("Energy: " +
                  (report.energy.empty() ? "of " + report.energy_of + " while steps are made"
                                         : "no sensor: " + report.energy) +
                  ".");
  for (const ArmReport& arm : report.arms)
    if (!arm.reason.empty())
      notes.push_back(fmt::format("Not measured: {}: {}", arm.name, arm.reason));
  std::string same;
  for (const ArmReport& arm : report.arms)
    if (!arm.same_as.empty() && arm.reason.empty())
      same += fmt::format("{}{} is {}", same.empty() ? "" : "; ", arm.name, arm.same_as);
  if (!same.empty()) notes.push_back("Equal programs, measured once: " + same + ".");
  if (!report.unused.empty())
    notes.push_back(fmt::format("These change nothing here: {}.", fmt::join(report.unused, ", ")));
  for (const std::string& text : report.alone)
    notes.push_back("Measured alone only: " + text + ".");
  for (const std::string& text : report.undecided)
    notes.push_back("Faster, but not recommended: " + text + ".");
  notes.push_back(recommendation(report));
  return notes;
}

}  // namespace fullbore
