#include "workloads/latentwire/paired_statistics.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "fullbore/base/check.h"
#include "fullbore/data/split_mix.h"

namespace fullbore::latentwire {
namespace {

/// Between neighbours in a line. `sorted` is not empty.
double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

}  // namespace

Interval paired_interval(std::span<const double> a, std::span<const double> b,
                         const ResamplingOptions& options) {
  FB_CHECK(a.size() == b.size() && options.resamples >= 2, "{} and {} rows, {} resamples", a.size(),
           b.size(), options.resamples);
  const size_t rows = a.size();
  std::vector<double> differences(rows);
  double sum = 0;
  for (size_t i = 0; i < rows; ++i) sum += differences[i] = a[i] - b[i];
  Interval interval;
  interval.mean = rows == 0 ? 0 : sum / static_cast<double>(rows);
  interval.low = interval.high = interval.mean;
  if (rows < 2) return interval;
  SplitMix64 draws(options.key);
  std::vector<double> means;
  for (int64_t resample = 0; resample < options.resamples; ++resample) {
    double resampled = 0;
    for (size_t i = 0; i < rows; ++i) resampled += differences[draws.below(rows)];
    means.push_back(resampled / static_cast<double>(rows));
  }
  std::ranges::sort(means);
  const double tail = (1 - options.confidence) / 2;
  interval.low = quantile(means, tail);
  interval.high = quantile(means, 1 - tail);
  return interval;
}

McNemar mcnemar(std::span<const double> first, std::span<const double> second) {
  FB_CHECK(first.size() == second.size(), "{} and {} rows", first.size(), second.size());
  McNemar result;
  for (size_t i = 0; i < first.size(); ++i) {
    const bool a = first[i] > 0.5, b = second[i] > 0.5;
    if (a && !b) ++result.only_first;
    if (b && !a) ++result.only_second;
  }
  const int64_t rows = result.only_first + result.only_second;
  const int64_t least = std::min(result.only_first, result.only_second);
  const auto log_choose = [&](int64_t k) {
    return std::lgamma(static_cast<double>(rows) + 1) - std::lgamma(static_cast<double>(k) + 1) -
           std::lgamma(static_cast<double>(rows - k) + 1);
  };
  double tail = 0;
  for (int64_t k = 0; k <= least; ++k)
    tail += std::exp(log_choose(k) - static_cast<double>(rows) * std::numbers::ln2);
  result.p = std::min(1.0, 2 * tail);
  return result;
}

}  // namespace fullbore::latentwire
