#include "fullbore/monitor/sample_statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "fullbore/base/check.h"
#include "fullbore/base/philox.h"

namespace fullbore {
namespace {

double sorted_quantile(std::span<const double> sorted, double fraction) {
  const double place = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - std::floor(place)) * (sorted[above] - sorted[below]);
}

std::vector<double> sorted_copy(std::span<const double> values) {
  FB_CHECK(!values.empty());
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace

double quantile(std::span<const double> values, double fraction) {
  FB_CHECK(fraction >= 0 && fraction <= 1, "fraction {}", fraction);
  return sorted_quantile(sorted_copy(values), fraction);
}

Spread spread_of(std::span<const double> values) {
  const std::vector<double> sorted = sorted_copy(values);
  return {sorted.front(), sorted_quantile(sorted, 0.25), sorted_quantile(sorted, 0.5),
          sorted_quantile(sorted, 0.75), sorted.back()};
}

ConfidenceInterval bootstrap_median(std::span<const double> values, double confidence,
                                    int resamples) {
  FB_CHECK(!values.empty() && confidence > 0 && confidence < 1 && resamples > 0);
  PhiloxStream draws(1);
  std::vector<double> medians;
  std::vector<double> sample(values.size());
  for (int i = 0; i < resamples; ++i) {
    for (double& value : sample) value = values[draws.below(values.size())];
    medians.push_back(median(sample));
  }
  const std::vector<double> sorted = sorted_copy(medians);
  return {sorted_quantile(sorted, (1 - confidence) / 2),
          sorted_quantile(sorted, (1 + confidence) / 2)};
}

}  // namespace fullbore
