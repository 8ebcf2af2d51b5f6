#pragma once
#include <cstdint>
#include <span>

namespace fullbore::latentwire {

struct Interval {
  double mean = 0;
  double low = 0;
  double high = 0;
};

struct ResamplingOptions {
  int64_t resamples = 10'000;  ///< at least 2
  double confidence = 0.95;
  uint64_t key = 1;  ///< of the draws: the same values give the same interval
};

/// Of the mean of a[i] - b[i], by the percentile bootstrap over rows: each resample draws as many rows as there are. Of one
/// row or none, low and high are the mean, which is 0 of none.
/// Source: Efron, Tibshirani 1993, "An Introduction to the Bootstrap", section 13.3.
Interval paired_interval(std::span<const double> a, std::span<const double> b,
                         const ResamplingOptions& options = {});

/// Rows that one of two systems answers and the other does not.
struct McNemar {
  int64_t only_first = 0;
  int64_t only_second = 0;
  double p = 1;  ///< two-sided, exact: of a fair coin that falls as unevenly or more so
};
/// Values above 0.5 are right answers. Source: McNemar 1947, Psychometrika 12, 153-157.
McNemar mcnemar(std::span<const double> first, std::span<const double> second);

}  // namespace fullbore::latentwire
