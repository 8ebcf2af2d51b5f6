#include "fullbore/app/mean_intervals.h"

#include <algorithm>
#include <cmath>

#include "fullbore/base/check.h"
#include "fullbore/data/split_mix.h"

namespace fullbore {
namespace {

/// Between neighbours in a line, so that few resamples make no steps. `sorted` is not empty.
double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

}  // namespace

std::vector<MeanInterval> mean_intervals(std::span<const std::vector<double>> columns,
                                         const BootstrapOptions& options) {
  FB_CHECK(options.resamples >= 2, "{} resamples", options.resamples);
  const size_t rows = columns.empty() ? 0 : columns[0].size();
  std::vector<MeanInterval> intervals;
  for (const std::vector<double>& column : columns) {
    FB_CHECK(column.size() == rows, "columns of {} and {} rows", rows, column.size());
    double sum = 0;
    for (const double value : column) sum += value;
    const double mean = sum / static_cast<double>(rows);
    intervals.push_back({mean, mean, mean});
  }
  if (rows < 2) return intervals;
  SplitMix64 draws(options.key);
  std::vector<std::vector<double>> means(columns.size());
  std::vector<double> sums(columns.size());
  for (int64_t resample = 0; resample < options.resamples; ++resample) {
    std::ranges::fill(sums, 0);
    for (size_t i = 0; i < rows; ++i) {
      const size_t row = draws.below(rows);
      for (size_t column = 0; column < columns.size(); ++column)
        sums[column] += columns[column][row];
    }
    for (size_t column = 0; column < columns.size(); ++column)
      means[column].push_back(sums[column] / static_cast<double>(rows));
  }
  const double tail = (1 - options.confidence) / 2;
  for (size_t column = 0; column < columns.size(); ++column) {
    // A value that is no number has no place in an order.
    if (!std::isfinite(intervals[column].mean)) {
      intervals[column].low = intervals[column].high = intervals[column].mean;
      continue;
    }
    std::ranges::sort(means[column]);
    intervals[column].low = quantile(means[column], tail);
    intervals[column].high = quantile(means[column], 1 - tail);
  }
  return intervals;
}

}  // namespace fullbore
