#include "fullbore/lab/quality/item_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fullbore/base/error.h"
#include "fullbore/base/philox.h"
#include "fullbore/lab/quality/gate.h"
#include "fullbore/lab/quality/student_t.h"
#include "fullbore/monitor/sample_statistics.h"

namespace fullbore {
namespace {

constexpr int kResamples = 4000;
constexpr double kMuchFreedom = 1e6;  // a normal distribution

const ItemColumn* column_of(const MeasuredItems& items, const QualityMetric& metric) {
  const std::string& name = metric.recorded.empty() ? metric.name : metric.recorded;
  const auto found = std::ranges::find(items.columns, name, &ItemColumn::metric);
  return found == items.columns.end() ? nullptr : &*found;
}

/// The figure of items that count as often as `times` says.
double figure_of(const QualityMetric& metric, const ItemColumn& column,
                 const std::vector<uint32_t>& times) {
  double sum = 0, weight = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    const double of = times[i] * column.weights[i];
    if (of > 0) sum += of * column.values[i];
    weight += of;
  }
  return scaled(metric, sum / weight);
}

/// By how much more than the margin `b` is worse than `a`; of a balance in either direction.
double beyond_margin(const QualityMetric& metric, double a, double b) {
  const double difference = metric.better == Better::same    ? std::abs(b - a)
                            : metric.better == Better::lower ? b - a
                                                             : a - b;
  return difference - metric.margin * (metric.is_relative ? a : 1);
}

/// One metric of both, and what resampling has made of it.
struct Measure {
  EquivalenceResult result;
  const ItemColumn* a = nullptr;
  const ItemColumn* b = nullptr;
  std::vector<double> differences, beyond;

  void draw(const std::vector<uint32_t>& times) {
    const double of_a = figure_of(result.metric, *a, times);
    const double of_b = figure_of(result.metric, *b, times);
    if (!std::isfinite(of_a) || !std::isfinite(of_b)) return;  // nothing of it was drawn
    differences.push_back(of_b - of_a);
    beyond.push_back(beyond_margin(result.metric, of_a, of_b));
  }

  /// Share of resamples for which it holds, never quite 0.
  template <class Holds>
  static double chance(const std::vector<double>& values, const Holds& holds) {
    const auto count = static_cast<double>(std::ranges::count_if(values, holds));
    return (count + 1) / (static_cast<double>(values.size()) + 1);
  }

  void conclude(const EquivalenceOptions& options) {
    if (!result.reason.empty()) return;
    if (differences.size() < kResamples / 2) return void(result.reason = "too few items have it");
    result.low = quantile(differences, options.alpha);
    result.high = quantile(differences, 1 - options.alpha);
    result.p_margin = chance(beyond, [](double value) { return value >= 0; });
    const double less = chance(differences, [](double value) { return value <= 0; });
    const double more = chance(differences, [](double value) { return value >= 0; });
    result.p_equal = std::min(1.0, 2 * std::min(less, more));
    result.p_worse = result.metric.better == Better::lower    ? less
                     : result.metric.better == Better::higher ? more
                                                              : result.p_equal;
    double mean = 0, squares = 0;
    for (const double each : beyond) mean += each / static_cast<double>(beyond.size());
    for (const double each : beyond) squares += (each - mean) * (each - mean);
    const double error = std::sqrt(squares / static_cast<double>(beyond.size() - 1));
    const auto items = static_cast<double>(result.pairs);
    result.spread = error * std::sqrt(items);
    if (error == 0) {
      result.power = 1;
      result.seeds_needed = kLeastItems;
      return;
    }
    const double critical = student_critical(options.alpha, kMuchFreedom);
    result.power = student_upper_tail(critical - result.margin / error, kMuchFreedom);
    const double wanted = (critical + student_critical(1 - options.power, kMuchFreedom)) *
                          result.spread / result.margin;
    result.seeds_needed =
        std::max(kLeastItems, static_cast<int64_t>(std::ceil(std::min(wanted * wanted, 1e15))));
  }
};

Measure measure_of(const MeasuredItems& subject, const MeasuredItems& baseline,
                   const QualityMetric& metric) {
  Measure measure;
  EquivalenceResult& result = measure.result;
  result.metric = metric;
  result.unit = subject.unit;
  result.pairs = static_cast<int64_t>(subject.keys.size());
  measure.a = column_of(baseline, metric);
  measure.b = column_of(subject, metric);
  if (measure.a == nullptr || measure.b == nullptr) {
    result.reason = fmt::format("{} does not tell it", (measure.a ? subject : baseline).subject);
    return measure;
  }
  const std::vector<uint32_t> once(subject.keys.size(), 1);
  result.mean_a = figure_of(metric, *measure.a, once);
  result.mean_b = figure_of(metric, *measure.b, once);
  result.difference = result.mean_b - result.mean_a;
  result.margin = metric.margin * (metric.is_relative ? result.mean_a : 1);
  if (!std::isfinite(result.difference))
    result.reason = "a figure is no number";
  else if (result.pairs < kLeastItems)
    result.reason =
        fmt::format("{} {}: at least {} are needed", result.pairs, result.unit, kLeastItems);
  else if (metric.is_relative && !(result.mean_a > 0))
    result.reason = "its margin is a share of the baseline's figure, which is not positive";
  return measure;
}

/// The same items in the same order, or it is told which are not.
void check_items(const MeasuredItems& subject, const MeasuredItems& baseline) {
  const auto refuse = [&](const std::string& what) {
    throw UsageError(fmt::format(
        "{} and {} were not measured on the same {}: {}. The one's are of {}, the other's of {}",
        subject.subject, baseline.subject, subject.unit, what, subject.data, baseline.data));
  };
  if (subject.keys.size() != baseline.keys.size())
    refuse(fmt::format("there are {} and {}", subject.keys.size(), baseline.keys.size()));
  for (size_t i = 0; i < subject.keys.size(); ++i)
    if (subject.keys[i] != baseline.keys[i]) refuse(fmt::format("number {} differs", i + 1));
}

}  // namespace

ItemComparison compare_items(const MeasuredItems& subject, const MeasuredItems& baseline,
                             const QualityMetrics& metrics, const EquivalenceOptions& options) {
  check_items(subject, baseline);
  ItemComparison comparison{subject.subject,
                            baseline.subject,
                            subject.data,
                            subject.unit,
                            static_cast<int64_t>(subject.keys.size()),
                            options,
                            {}};
  std::vector<Measure> measures;
  for (const QualityMetric& metric : metrics) {
    if (metric.is_of_training)
      comparison.notes.push_back(metric.name + " is of training steps: it is not measured here");
    else
      measures.push_back(measure_of(subject, baseline, metric));
  }
  std::vector<uint32_t> times(subject.keys.size());
  for (int resample = 0; resample < kResamples; ++resample) {
    if (std::ranges::all_of(measures,
                            [](const Measure& each) { return !each.result.reason.empty(); }))
      break;
    PhiloxStream draws(1, static_cast<uint64_t>(resample));
    std::ranges::fill(times, 0U);
    for (size_t i = 0; i < times.size(); ++i) ++times[draws.below(times.size())];
    for (Measure& each : measures)
      if (each.result.reason.empty()) each.draw(times);
  }
  std::vector<EquivalenceResult> results;
  for (Measure& each : measures) {
    each.conclude(options);
    results.push_back(std::move(each.result));
  }
  comparison.test = conclude(std::move(results), options);
  return comparison;
}

std::string comparison_text(const ItemComparison& comparison) {
  std::string text =
      fmt::format("A  {} (baseline)\nB  {}\n{} {} of {}\n\n", comparison.baseline,
                  comparison.subject, comparison.items, comparison.unit, comparison.data);
  text += result_header(comparison.options);
  for (const EquivalenceResult& each : comparison.test.metrics) text += result_text(each);
  for (const std::string& note : comparison.notes) text += fmt::format("note: {}\n", note);
  const char* meaning = comparison.test.verdict == Verdict::passed ? "B is no worse than A"
                        : comparison.test.verdict == Verdict::failed
                            ? "B is worse than A"
                            : "whether B is worse than A is open";
  return fmt::format(
      "{}note: of these two models, not of what other seeds make of them\n\n{}: {}\n", text,
      verdict_name(comparison.test.verdict), meaning);
}

nlohmann::ordered_json comparison_json(const ItemComparison& comparison) {
  nlohmann::ordered_json json = {{"subject", comparison.subject},
                                 {"baseline", comparison.baseline},
                                 {"data", comparison.data},
                                 {"items", comparison.items},
                                 {"unit", comparison.unit},
                                 {"verdict", verdict_name(comparison.test.verdict)},
                                 {"alpha", comparison.options.alpha},
                                 {"power", comparison.options.power},
                                 {"metrics", nlohmann::ordered_json::array()},
                                 {"notes", comparison.notes}};
  for (const EquivalenceResult& each : comparison.test.metrics)
    json["metrics"].push_back(result_json(each));
  return json;
}

}  // namespace fullbore
