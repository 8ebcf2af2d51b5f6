#include "fullbore/lab/quality/gate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "fullbore/base/error.h"

namespace fullbore {
namespace {

using BySeed = std::map<int64_t, const CompletedRun*>;

/// UsageError where they are not runs of one setting.
BySeed by_seed(const GateSide& side) {
  BySeed runs;
  for (const CompletedRun& run : side.runs) {
    const auto [place, is_new] = runs.emplace(run.seed(), &run);
    if (!is_new)
      throw UsageError(
          fmt::format("{} and {} have the same run.seed, {}: repeats of a seed are no "
                      "samples; leave one of them out",
                      place->second->folder, run.folder, run.seed()));
    for (const SettingDifference& each : setting_differences(side.runs.front().config, run.config))
      if (each.key != "run.seed")
        throw UsageError(
            fmt::format("{} and {} are of several settings: {}; runs of one setting "
                        "by several seeds were expected",
                        side.runs.front().folder, run.folder, text(each)));
  }
  return runs;
}

/// What has to be equal for a pair to be one; "" if it is.
std::string mismatch(const CompletedRun& a, const CompletedRun& b) {
  if (a.steps != b.steps)
    return fmt::format("{} made {} steps and {} made {}", a.folder, a.steps, b.folder, b.steps);
  if (a.data() != b.data())
    return fmt::format("{} learned from '{}' and {} from '{}'", a.folder, a.data(), b.folder,
                       b.data());
  return "";
}

void note_unpaired(const BySeed& own, const BySeed& other, const std::string& name,
                   GateReport& report) {
  std::vector<int64_t> lonely;
  for (const auto& [seed, run] : own)
    if (!other.contains(seed)) lonely.push_back(seed);
  if (!lonely.empty())
    report.notes.push_back(fmt::format("no pair for seed{} {} of {}", lonely.size() > 1 ? "s" : "",
                                       fmt::join(lonely, ", "), name));
}

void note_failed(const GateSide& side, GateReport& report) {
  for (const auto& [seed, reason] : side.failed)
    report.notes.push_back(fmt::format("{}, seed {}: {}", side.name, seed, reason));
}

/// Missing runs are no accident: what fails is seldom what is good.
std::string failures_of(const GateSide& a, const GateSide& b) {
  for (const GateSide* side : {&b, &a})
    if (!side->failed.empty())
      return fmt::format("{} of {} failed (seed {})", side->failed.size() == 1 ? "a run" : "runs",
                         side->name, side->failed.front().first);
  return "";
}

}  // namespace

GateReport gate(const GateSide& a, const GateSide& b, const QualityMetrics& metrics,
                const EquivalenceOptions& options, bool despite) {
  const BySeed runs_a = by_seed(a), runs_b = by_seed(b);
  GateReport report;
  report.a = a.name;
  report.b = b.name;
  report.options = options;
  if (!a.runs.empty() && !b.runs.empty()) {
    report.differences = setting_differences(a.runs.front().config, b.runs.front().config);
    std::erase_if(report.differences,
                  [](const SettingDifference& each) { return each.key == "run.seed"; });
    report.steps = a.runs.front().steps;
  }
  std::vector<PairedFigures> figures;
  const std::string failures = failures_of(a, b);
  for (const QualityMetric& metric : metrics) figures.push_back({metric, {}, {}, failures});
  for (const auto& [seed, run] : runs_a) {
    const auto other = runs_b.find(seed);
    if (other == runs_b.end()) continue;
    if (std::string wrong = mismatch(*run, *other->second); !wrong.empty()) {
      if (!despite) throw UsageError(wrong + ": such runs are compared only --despite that");
      report.notes.push_back(std::move(wrong));
    }
    report.seeds.push_back(seed);
    const std::vector<RunFigure> of_a = figures_of_run(*run, metrics);
    const std::vector<RunFigure> of_b = figures_of_run(*other->second, metrics);
    for (size_t i = 0; i < metrics.size(); ++i) {
      figures[i].a.push_back(of_a[i].value);
      figures[i].b.push_back(of_b[i].value);
      for (const RunFigure* each : {&of_a[i], &of_b[i]})
        if (figures[i].missing.empty()) figures[i].missing = each->missing;
    }
  }
  note_unpaired(runs_a, runs_b, a.name, report);
  note_unpaired(runs_b, runs_a, b.name, report);
  note_failed(a, report);
  note_failed(b, report);
  report.test = test_no_worse(figures, options);
  return report;
}

}  // namespace fullbore
