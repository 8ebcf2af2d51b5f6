#include "fullbore/lab/quality/equivalence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fullbore/base/check.h"
#include "fullbore/lab/quality/student_t.h"

namespace fullbore {
namespace {

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation_of(std::span<const double> values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

/// The mean of some values and what is known of its error.
struct Estimate {
  double mean = 0;
  double spread = 0;   ///< of one value
  double error = 0;    ///< of the mean
  double freedom = 1;  ///< degrees of freedom of the spread

  Estimate(std::span<const double> values, int64_t pilot) : mean(mean_of(values)) {
    const size_t telling =
        pilot > 1 ? std::min(values.size(), static_cast<size_t>(pilot)) : values.size();
    spread = deviation_of(values.first(telling));
    error = spread / std::sqrt(static_cast<double>(values.size()));
    freedom = static_cast<double>(telling - 1);
  }
  /// P of a mean this small or smaller, were it 0. Without any spread it is what it is.
  double p_below() const {
    if (error == 0) return mean < 0 ? 0 : 1;
    return student_upper_tail(-mean / error, freedom);
  }
  double p_above() const {
    if (error == 0) return mean > 0 ? 0 : 1;
    return student_upper_tail(mean / error, freedom);
  }
};

double power_at(Better better, double margin, double error, double freedom, double alpha) {
  if (error == 0) return 1;
  const double one =
      noncentral_upper_tail(student_critical(alpha, freedom), freedom, margin / error);
  // Both of two tests: at least that (Bonferroni).
  return better == Better::same ? std::max(0.0, 2 * one - 1) : one;
}

/// What is bad about b - a grows with it, or falls.
double direction(Better better) { return better == Better::higher ? -1 : 1; }

/// By how much more than the margin B is worse, by pair; of a balance in the one direction or, with `sign` -1, the other.
std::vector<double> beyond_margin(const PairedFigures& figures, double sign) {
  std::vector<double> beyond(figures.a.size());
  for (size_t i = 0; i < beyond.size(); ++i)
    beyond[i] = sign * (figures.b[i] - figures.a[i]) -
                figures.metric.margin * (figures.metric.is_relative ? figures.a[i] : 1);
  return beyond;
}

EquivalenceResult undecided(const PairedFigures& figures, std::string reason) {
  EquivalenceResult result;
  result.metric = figures.metric;
  result.pairs = static_cast<int64_t>(figures.a.size());
  if (!figures.a.empty()) {
    result.mean_a = mean_of(figures.a);
    result.mean_b = mean_of(figures.b);
    result.difference = result.mean_b - result.mean_a;
    result.margin = figures.metric.margin * (figures.metric.is_relative ? result.mean_a : 1);
  }
  result.reason = std::move(reason);
  return result;
}

std::string problem_of(const PairedFigures& figures) {
  if (!figures.missing.empty()) return figures.missing;
  const auto finite = [](double value) { return std::isfinite(value); };
  if (!std::ranges::all_of(figures.a, finite) || !std::ranges::all_of(figures.b, finite))
    return "a figure is no number";
  if (figures.a.size() < 2)
    return fmt::format("{} of seeds: at least 2 pairs are needed to know the spread",
                       figures.a.size() == 1 ? "one pair" : "no pair");
  if (figures.metric.is_relative && !(mean_of(figures.a) > 0))
    return "its margin is a share of A's figure, which is not positive";
  return "";
}

/// All but what depends on the other metrics.
EquivalenceResult measure(const PairedFigures& figures, const EquivalenceOptions& options) {
  FB_CHECK(figures.a.size() == figures.b.size(), "{} and {} figures", figures.a.size(),
           figures.b.size());
  if (std::string problem = problem_of(figures); !problem.empty())
    return undecided(figures, std::move(problem));
  EquivalenceResult result = undecided(figures, "");
  const Better better = figures.metric.better;
  const double sign = direction(better);
  std::vector<double> differences(figures.a.size());
  for (size_t i = 0; i < differences.size(); ++i) differences[i] = figures.b[i] - figures.a[i];
  const Estimate difference(differences, options.pilot);
  const Estimate beyond(beyond_margin(figures, sign), options.pilot);
  const double reach = student_critical(options.alpha, difference.freedom) * difference.error;
  result.difference = difference.mean;
  result.low = difference.mean - reach;
  result.high = difference.mean + reach;
  result.spread = difference.spread;
  result.p_margin = beyond.p_below();
  // Of a difference this small or smaller, and this large or larger.
  const double p_less = difference.p_below();
  const double p_larger = difference.p_above();
  result.p_equal = std::min(1.0, 2 * std::min(p_less, p_larger));
  result.p_worse = better == Better::lower ? p_larger : p_less;
  if (better == Better::same) {
    result.p_margin =
        std::max(result.p_margin, Estimate(beyond_margin(figures, -1), options.pilot).p_below());
    result.p_worse = result.p_equal;
  }
  result.power = power_at(better, result.margin, beyond.error, beyond.freedom, options.alpha);
  const int64_t told = static_cast<int64_t>(beyond.freedom) + 1;
  result.seeds_needed = pairs_needed(figures.metric, beyond.spread, result.margin,
                                     options.pilot > 1 ? told : 2, options.pilot > 1, options);
  return result;
}

/// By how much the estimate is worse, whatever the direction.
double worse_by(const EquivalenceResult& result) {
  return result.metric.better == Better::same ? std::abs(result.difference)
                                              : direction(result.metric.better) * result.difference;
}

bool is_better_beyond_doubt(const EquivalenceResult& result) {
  if (result.metric.better == Better::lower) return result.high < 0;
  return result.metric.better == Better::higher && result.low > 0;
}

void judge(EquivalenceResult& result, const EquivalenceOptions& options) {
  if (!result.reason.empty()) return;
  const bool refuted = result.p_margin <= options.alpha;
  if (refuted && is_better_beyond_doubt(result)) {
    result.verdict = Verdict::passed;
    result.reason = "better";
  } else if (refuted && result.power >= options.power) {
    result.verdict = Verdict::passed;
    result.reason =
        result.p_equal <= options.alarm ? "another, by less than the margin" : "no worse";
  } else if (result.p_worse <= options.alarm && worse_by(result) >= result.margin) {
    result.verdict = Verdict::failed;
    result.reason = "worse by the margin or more";
  } else if (result.power < options.power) {
    result.reason =
        result.seeds_needed > 0
            ? fmt::format("too few {}: {} are needed", result.unit, result.seeds_needed)
            : fmt::format("too few {}: more than {} are needed", result.unit, kMostSeeds);
  } else {
    result.reason = fmt::format("neither no worse nor worse is shown: more {} tell", result.unit);
  }
}

}  // namespace

std::string verdict_name(Verdict verdict) {
  if (verdict == Verdict::passed) return "passed";
  return verdict == Verdict::failed ? "failed" : "undecided";
}

std::vector<double> holm(std::span<const double> p) {
  std::vector<size_t> order;
  for (size_t i = 0; i < p.size(); ++i)
    if (!std::isnan(p[i])) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return p[i]; });
  std::vector<double> adjusted(p.begin(), p.end());
  double most = 0;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    most = std::max(most, p[order[rank]] * static_cast<double>(order.size() - rank));
    adjusted[order[rank]] = std::min(1.0, most);
  }
  return adjusted;
}

int64_t pairs_needed(const QualityMetric& metric, double spread, double margin, int64_t pilot,
                     bool keeps_spread, const EquivalenceOptions& options) {
  FB_CHECK(pilot >= 2, "{} pairs tell no spread", pilot);
  const auto is_enough = [&](int64_t pairs) {
    const double freedom = static_cast<double>((keeps_spread ? pilot : pairs) - 1);
    const double error = spread / std::sqrt(static_cast<double>(pairs));
    return power_at(metric.better, margin, error, freedom, options.alpha) >= options.power;
  };
  if (!(margin > 0) || !std::isfinite(spread)) return 0;
  int64_t low = pilot, high = pilot;  // power grows with the pairs
  while (!is_enough(high)) {
    if (high >= kMostSeeds) return 0;
    low = high + 1;
    high = std::min(2 * high, kMostSeeds);
  }
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (is_enough(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

EquivalenceReport conclude(std::vector<EquivalenceResult> results,
                           const EquivalenceOptions& options) {
  EquivalenceReport report;
  report.verdict = results.empty() ? Verdict::undecided : Verdict::passed;
  report.metrics = std::move(results);
  std::vector<double> worse;
  for (const EquivalenceResult& each : report.metrics) worse.push_back(each.p_worse);
  const std::vector<double> adjusted = holm(worse);
  for (size_t i = 0; i < adjusted.size(); ++i) {
    EquivalenceResult& result = report.metrics[i];
    result.p_worse = adjusted[i];
    judge(result, options);
    if (result.verdict == Verdict::failed) report.verdict = Verdict::failed;
    if (result.verdict == Verdict::undecided && report.verdict == Verdict::passed)
      report.verdict = Verdict::undecided;
  }
  return report;
}

EquivalenceReport test_no_worse(std::span<const PairedFigures> figures,
                                const EquivalenceOptions& options) {
  std::vector<EquivalenceResult> results;
  for (const PairedFigures& each : figures) results.push_back(measure(each, options));
  return conclude(std::move(results), options);
}

}  // namespace fullbore
