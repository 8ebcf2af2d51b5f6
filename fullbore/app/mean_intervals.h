#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace fullbore {

/// Where a mean lies, with a confidence.
struct MeanInterval {
  double mean = 0;
  double low = 0;
  double high = 0;
};

struct BootstrapOptions {
  int64_t resamples = 4000;  ///< at least 2
  double confidence = 0.95;
  uint64_t key = 1;  ///< of the draws: the same values give the same intervals
};

/// Of each column's mean, by the percentile bootstrap. A row is one example and stays whole: every resample draws the same
/// rows of all columns, as many as there are. The interval of a column of differences is therefore a paired one. Columns
/// are equally long; of one row or none, low and high are the mean, which is NaN of none.
/// Source: Efron, Tibshirani 1993, "An Introduction to the Bootstrap", section 13.3.
std::vector<MeanInterval> mean_intervals(std::span<const std::vector<double>> columns,
                                         const BootstrapOptions& options = {});

}  // namespace fullbore
