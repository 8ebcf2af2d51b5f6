#include "workloads/latentwire/paired_statistics.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "fullbore/app/mean_intervals.h"
#include "fullbore/base/check.h"

namespace fullbore::latentwire {

Interval paired_interval(std::span<const double> a, std::span<const double> b,
                         const ResamplingOptions& options) {
  FB_CHECK(a.size() == b.size() && options.resamples >= 2, "{} and {} rows, {} resamples", a.size(),
           b.size(), options.resamples);
  if (a.empty()) return {};
  std::vector<std::vector<double>> columns(1);
  for (size_t i = 0; i < a.size(); ++i) columns[0].push_back(a[i] - b[i]);
  const MeanInterval interval =
      mean_intervals(columns, {options.resamples, options.confidence, options.key})[0];
  return {interval.mean, interval.low, interval.high};
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
