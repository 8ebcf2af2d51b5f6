#pragma once
#include <cstdint>
#include <span>

namespace fullbore {

/// What stands at share `fraction` of the sorted values, in [0, 1], between two of them by linear
/// interpolation (Hyndman and Fan 1996, definition 7). There must be a value.
double quantile(std::span<const double> values, double fraction);
inline double median(std::span<const double> values) { return quantile(values, 0.5); }

/// Measured times are not normal: other work on the machine makes the long ones. So quartiles, not
/// standard deviations.
struct Spread {
  double least = 0;
  double lower_quartile = 0;
  double median = 0;
  double upper_quartile = 0;
  double most = 0;
};
/// There must be a value.
Spread spread_of(std::span<const double> values);

struct ConfidenceInterval {
  double low = 0;
  double high = 0;
};

/// Where the median of what `values` are a sample of lies, at this confidence in (0, 1): percentiles
/// of the medians of `resamples` samples drawn from the values with replacement, each as large as they
/// are. The same for the same values. There must be a value.
/// Source: Efron and Tibshirani 1993, "An introduction to the bootstrap", section 13.3.
ConfidenceInterval bootstrap_median(std::span<const double> values, double confidence = 0.95,
                                    int resamples = 10'000);

}  // namespace fullbore
