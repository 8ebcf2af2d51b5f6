#include "fullbore/lab/ablation/ablation_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

namespace fullbore {
namespace {

constexpr double kUnknown = Effect::kUnknown;
constexpr double kSecondsPerHour = 3600;
constexpr double kJoulesPerKilowattHour = 3.6e6;

/// The value at x of the points, which ascend, by a line between two; unknown beyond them.
double value_at(const std::vector<std::pair<double, double>>& points, double x) {
  for (size_t i = 0; i < points.size(); ++i) {
    if (points[i].first < x) continue;
    if (i == 0 || points[i].first == x) return points[i].first == x ? points[i].second : kUnknown;
    const auto& [x0, y0] = points[i - 1];
    return y0 + (points[i].second - y0) * (x - x0) / (points[i].first - x0);
  }
  return kUnknown;
}

double mean(const std::vector<double>& values) {
  if (values.empty()) return kUnknown;
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// The figures of a metric over a run, by what `at` makes of a step.
template <class At>
std::vector<std::pair<double, double>> curve_of(const MeasuredRun& run, const QualityMetric& metric,
                                                const At& at) {
  const std::string& recorded = metric.recorded.empty() ? metric.name : metric.recorded;
  std::vector<std::pair<double, double>> points;
  for (const RunEvaluation& each : run.evaluations)
    points.emplace_back(at(each.step), scaled(metric, each.metric(recorded)));
  return points;
}

bool same_evaluations(const MeasuredRun& a, const MeasuredRun& b) {
  return std::ranges::equal(a.evaluations, b.evaluations,
                            [](const RunEvaluation& x, const RunEvaluation& y) {
                              return x.step == y.step && x.metrics == y.metrics;
                            });
}

/// An ablation's runs, asked by arm.
class Runs {
 public:
  explicit Runs(const Ablation& ablation) : ablation_(ablation) {}

  size_t seeds() const { return ablation_.runs.size(); }
  const std::vector<std::vector<size_t>>& groups() const { return ablation_.plan.groups; }
  const MeasuredRun& at(size_t seed, size_t group, size_t place) const {
    return ablation_.runs[seed][group][place];
  }
  /// Of every seed the first run of this arm, which is measured.
  std::vector<const MeasuredRun*> of(size_t arm) const {
    for (size_t group = 0; group < groups().size(); ++group) {
      const auto found = std::ranges::find(groups()[group], arm);
      if (found == groups()[group].end()) continue;
      std::vector<const MeasuredRun*> runs;
      for (size_t seed = 0; seed < seeds(); ++seed)
        runs.push_back(&at(seed, group, static_cast<size_t>(found - groups()[group].begin())));
      return runs;
    }
    return {};
  }

  /// log(seconds per sample / the base's in the same turns); where the base is in another group, of the medians.
  double time_difference(size_t seed, size_t group, size_t place) const {
    const bool beside = groups()[group][0] == 0;
    const MeasuredRun& base = beside ? at(seed, group, 0) : *of(0)[seed];
    const MeasuredRun& run = at(seed, group, place);
    if (!base.ok() || !run.ok()) return kUnknown;
    const double samples = std::log(base.samples_per_step / run.samples_per_step);
    if (!beside) return std::log(run.median_step_seconds() / base.median_step_seconds()) + samples;
    const std::vector<double> ratios =
        log_time_ratios(base.step_seconds, base.turns, run.step_seconds);
    return ratios.empty() ? kUnknown : median(ratios) + samples;
  }

 private:
  const Ablation& ablation_;
};

/// By group, those with the base: arms by place, seeds.
std::vector<SeedTable> time_tables(const Runs& runs) {
  std::vector<SeedTable> tables;
  for (size_t group = 0; group < runs.groups().size(); ++group) {
    SeedTable table;
    for (size_t place = 0; place < runs.groups()[group].size(); ++place) {
      std::vector<double>& row = table.emplace_back();
      for (size_t seed = 0; seed < runs.seeds(); ++seed)
        row.push_back(place == 0 && runs.groups()[group][0] == 0
                          ? 0.0
                          : runs.time_difference(seed, group, place));
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

/// Of an arm and the base of its group, by seed; alone in a group an arm has its figures from the base already.
std::vector<double> differences_of(const SeedTable& table, size_t place, bool is_beside_base) {
  std::vector<double> differences = table[place];
  for (size_t seed = 0; is_beside_base && seed < differences.size(); ++seed)
    differences[seed] -= table[0][seed];
  return differences;
}

/// Where the arm that ends first does, in what `at` makes of a run's last evaluation.
template <class At>
double common_end(const Runs& runs, const std::vector<size_t>& arms, size_t seed, const At& at) {
  double end = std::numeric_limits<double>::infinity();
  for (const size_t arm : arms) {
    const MeasuredRun& run = *runs.of(arm)[seed];
    if (run.ok() && !run.evaluations.empty())
      end = std::min(end, at(run, run.evaluations.back().step));
  }
  return end;
}

double seconds_at(const MeasuredRun& run, int64_t step) { return run.seconds_until(step); }
double samples_at(const MeasuredRun& run, int64_t step) {
  return run.samples_per_step * static_cast<double>(step);
}

/// Figures of a metric at the common end, one for each seed.
template <class At>
std::vector<double> figures_at(const Runs& runs, const std::vector<size_t>& arms, size_t arm,
                               const QualityMetric& metric, const At& at) {
  std::vector<double> figures;
  for (size_t seed = 0; seed < runs.seeds(); ++seed) {
    const MeasuredRun& run = *runs.of(arm)[seed];
    const double end = common_end(runs, arms, seed, at);
    figures.push_back(
        value_at(curve_of(run, metric, [&](int64_t step) { return at(run, step); }), end));
  }
  return figures;
}

void add_metrics(ArmReport& report, const Runs& runs, const std::vector<size_t>& arms, size_t arm,
                 const QualityMetrics& quality, bool is_declared) {
  std::vector<PairedFigures> figures;
  bool equal = true;
  for (size_t seed = 0; seed < runs.seeds(); ++seed)
    equal = equal && same_evaluations(*runs.of(0)[seed], *runs.of(arm)[seed]);
  const auto last = [&](size_t of, const QualityMetric& metric) {
    std::vector<double> values;
    for (const MeasuredRun* run : runs.of(of)) {
      const auto points =
          curve_of(*run, metric, [](int64_t step) { return static_cast<double>(step); });
      values.push_back(points.empty() ? kUnknown : points.back().second);
    }
    return values;
  };
  for (const QualityMetric& metric : quality) {
    const std::vector<double> own = last(arm, metric);
    ArmMetric& shown = report.metrics.emplace_back();
    shown.name = metric.name;
    shown.at_equal_steps = mean(own);
    shown.at_equal_samples = mean(figures_at(runs, arms, arm, metric, samples_at));
    shown.at_equal_time = mean(figures_at(runs, arms, arm, metric, seconds_at));
    const bool known = std::ranges::all_of(own, [](double value) { return std::isfinite(value); });
    figures.push_back({.metric = metric,
                       .a = last(0, metric),
                       .b = own,
                       .missing = known ? "" : "its evaluations do not tell it"});
  }
  report.no_worse = equal;
  if (arm == 0 || !is_declared) return;
  const EquivalenceReport judged = test_no_worse(figures);
  for (size_t i = 0; i < judged.metrics.size(); ++i)
    report.metrics[i].against_base = judged.metrics[i];
  report.no_worse = equal || judged.verdict == Verdict::passed;
}

void add_times(ArmReport& report, const std::vector<const MeasuredRun*>& runs,
               const ArmPlan& plan) {
  std::vector<double> medians;
  std::vector<double> warm;
  std::vector<double> joules;
  for (const MeasuredRun* run : runs) {
    const std::vector<double> own = turn_medians(run->step_seconds, run->turns);
    medians.insert(medians.end(), own.begin(), own.end());
    warm.push_back(run->seconds_to_first_step);
    joules.push_back(run->joules_per_sample);
    report.resident_bytes = std::max(report.resident_bytes, run->resident_peak_bytes);
    report.planned_bytes = std::max(report.planned_bytes, run->planned_peak_bytes);
  }
  report.first_step_warm = mean(warm);
  report.joules_per_sample = mean(joules);
  if (medians.empty()) return;
  report.step_seconds = median(medians);
  report.step_interval = bootstrap_median(medians, 0.95, 1000);
  report.roofline_share = plan.roofline_seconds / report.step_seconds;
  const double work = plan.unit == "tokens" ? runs[0]->tokens_per_step : runs[0]->samples_per_step;
  report.throughput = work / report.step_seconds;
}

/// What the whole run takes, and when a longer start is made up for: the arm's by its steps, or the base's.
void add_savings(ArmReport& report, const ArmReport& base, double samples_ratio,
                 int64_t configured_steps) {
  const double step = report.step_seconds * samples_ratio;  // for as many samples
  const auto steps = static_cast<double>(configured_steps);
  report.run_hours = (report.first_step_cold + step * steps) / kSecondsPerHour;
  report.saved_hours = base.run_hours - report.run_hours;
  const double start = report.first_step_cold - base.first_step_cold;
  const double gain = base.step_seconds * (1 - std::exp(report.time.difference));
  if (start < 0 && gain < 0) report.ahead_until_step = std::ceil(start / gain);
  if (start <= 0)
    report.payback_step = gain >= 0 ? 0 : kUnknown;
  else
    report.payback_step =
        gain > 0 ? std::ceil(start / gain) : std::numeric_limits<double>::infinity();
}

/// Switches that tell an arm from the configuration: passes off, settings on.
size_t changes(const Arm& arm, const std::vector<Switch>& switches) {
  size_t count = 0;
  for (size_t i = 0; i < switches.size(); ++i)
    count += switches[i].key.empty() != static_cast<bool>(arm.on[i]) ? 1 : 0;
  return count;
}

bool is_faster(const ArmReport& arm) { return arm.time.is_shown() && arm.time.difference < 0; }

void recommend(AblationReport& report, const AblationPlan& plan) {
  int best = 0;
  const auto difference = [&](int arm) {
    return arm == 0 ? 0.0 : report.arms[static_cast<size_t>(arm)].time.difference;
  };
  const auto may_be = [&](const ArmReport& arm) {
    return arm.reason.empty() && arm.same_as.empty() && is_faster(arm) && arm.no_worse;
  };
  for (size_t i = 1; i < report.arms.size(); ++i)
    if (may_be(report.arms[i]) && difference(static_cast<int>(i)) < difference(best))
      best = static_cast<int>(i);
  report.recommended = best;
  if (best == 0) return;
  // Of those that may be as fast, the one that changes the configuration least.
  const double bound = report.arms[static_cast<size_t>(best)].time.high;
  size_t fewest = changes(plan.arms[static_cast<size_t>(best)].arm, plan.switches);
  for (size_t i = 1; i < report.arms.size(); ++i) {
    const size_t own = changes(plan.arms[i].arm, plan.switches);
    if (!may_be(report.arms[i]) || report.arms[i].time.difference > bound || own >= fewest)
      continue;
    fewest = own;
    report.recommended = static_cast<int>(i);
  }
}

void tell_undecided(AblationReport& report) {
  const ArmReport& chosen = report.arms[static_cast<size_t>(report.recommended)];
  for (const ArmReport& arm : report.arms) {
    const double bar = report.recommended == 0 ? 0 : chosen.time.difference;
    if (!arm.reason.empty() || !arm.same_as.empty() || !is_faster(arm) || arm.no_worse ||
        arm.time.difference >= bar)
      continue;
    std::string why = "no metric is declared to judge it by";
    for (const ArmMetric& metric : arm.metrics)
      if (metric.against_base.verdict != Verdict::passed && !metric.against_base.reason.empty())
        why = fmt::format("{}: {}", metric.name, metric.against_base.reason);
    report.undecided.push_back(fmt::format("{} ({:.2f}x): {}", arm.name, arm.speed(), why));
  }
}

}  // namespace

double ArmReport::speed() const { return std::exp(-time.difference); }
double ArmReport::speed_low() const { return std::exp(-time.high); }
double ArmReport::speed_high() const { return std::exp(-time.low); }

AblationReport report_ablation(const Ablation& ablation, const AblationRequest& request,
                               const QualityMetrics& quality) {
  const AblationPlan& plan = ablation.plan;
  const Runs runs(ablation);
  AblationReport report;
  report.config = request.config;
  report.unit = plan.arms[0].plan.unit;
  report.seeds = plan.seeds;
  report.cut_seeds = plan.cut_seeds;
  report.steps = plan.steps;
  report.configured_steps = request.settings.train.steps;
  report.eval_batches = evaluation_batches(request, plan);
  for (const Switch& each : plan.switches) report.switches.push_back(each.name);
  for (const PlannedArm& arm : plan.arms)
    if (arm.arm.name == "all" || (arm.arm.name == "as configured" && report.ladder.empty())) {
      report.ladder.clear();
      for (size_t s = 0; s < plan.switches.size(); ++s)
        if (arm.arm.on[s]) report.ladder.push_back(plan.switches[s].name);
    }
  report.unused = plan.unused;
  report.alone = plan.alone;
  QualityMetrics judged;
  for (const QualityMetric& each : quality)
    if (!each.is_of_training) judged.push_back(each);
  const QualityMetrics shown = judged.empty() ? QualityMetrics{{.name = "loss"}} : judged;

  const std::vector<SeedTable> tables = time_tables(runs);
  const ClippedTables clipped = clip_outliers(tables);
  ErrorVariance error = error_variance(clipped.tables);
  error.variance *= clipped.variance_factor;
  std::vector<size_t> complete;  // arms with a run for every seed
  report.arms.resize(plan.arms.size());
  for (size_t i = 0; i < plan.arms.size(); ++i) {
    ArmReport& arm = report.arms[i];
    arm.name = plan.arms[i].arm.name;
    arm.reason = plan.arms[i].dropped;
    for (size_t s = 0; s < plan.switches.size(); ++s)
      if (plan.arms[i].arm.on[s]) arm.on.push_back(plan.switches[s].name);
    if (!plan.arms[i].is_measured()) continue;
    for (const MeasuredRun* run : runs.of(i))
      if (!run->ok() && arm.reason.empty()) arm.reason = run->reason;
    if (arm.reason.empty()) complete.push_back(i);
  }
  const int tests = std::max<int>(1, static_cast<int>(complete.size()) - 1);
  std::vector<Effect*> effects;
  for (size_t group = 0; group < runs.groups().size(); ++group)
    for (size_t place = 0; place < runs.groups()[group].size(); ++place) {
      const size_t index = runs.groups()[group][place];
      ArmReport& arm = report.arms[index];
      if (index == 0) {
        if (group > 0 || place != 1) continue;
        report.control_log_times = tables[0][1];
        report.control = effect(differences_of(clipped.tables[0], 1, true), error, tests);
        continue;
      }
      if (!arm.reason.empty()) continue;
      arm.log_times = tables[group][place];
      const bool is_beside_base = runs.groups()[group][0] == 0;
      arm.time = effect(differences_of(clipped.tables[group], place, is_beside_base), error, tests);
      effects.push_back(&arm.time);
    }
  correct(effects);
  for (const Effect* each : effects)
    if (!(report.detectable >= each->detectable)) report.detectable = each->detectable;
  for (const size_t i : complete) {
    ArmReport& arm = report.arms[i];
    const std::vector<const MeasuredRun*> own = runs.of(i);
    arm.seeds = std::ssize(own);
    arm.steps = plan.steps;
    arm.first_step_cold = ablation.trials[i].seconds_to_first_step;
    add_times(arm, own, plan.arms[i].plan);
    add_metrics(arm, runs, complete, i, shown, !judged.empty());
    arm.curve =
        curve_of(*own[0], shown[0], [&](int64_t step) { return own[0]->seconds_until(step); });
    if (i == 0) arm.time.difference = arm.time.low = arm.time.high = 0;
    add_savings(arm, report.arms[0],
                own[0]->samples_per_step > 0
                    ? runs.of(0)[0]->samples_per_step / own[0]->samples_per_step
                    : 1,
                report.configured_steps);
    if (i == 0) arm.saved_hours = 0;
    arm.run_kwh = arm.joules_per_sample * runs.of(0)[0]->samples_per_step *
                  static_cast<double>(report.configured_steps) / kJoulesPerKilowattHour;
    arm.saved_kwh = report.arms[0].run_kwh - arm.run_kwh;
  }
  for (size_t i = 0; i < plan.arms.size(); ++i) {
    if (plan.arms[i].same_as < 0) continue;
    std::string name = report.arms[i].name;
    std::vector<std::string> on = report.arms[i].on;
    report.arms[i] = report.arms[measured_arm(plan, i)];
    report.arms[i].same_as = std::exchange(report.arms[i].name, std::move(name));
    report.arms[i].on = std::move(on);
  }
  recommend(report, plan);
  tell_undecided(report);
  return report;
}

}  // namespace fullbore
