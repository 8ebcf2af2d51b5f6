#include "fullbore/monitor/sample_statistics.h"

#include <gtest/gtest.h>

#include <vector>

#include "fullbore/base/philox.h"

namespace fullbore {
namespace {

TEST(SampleStatistics, QuantilesLieBetweenTheValues) {
  const std::vector<double> values = {4, 1, 3, 2};
  EXPECT_EQ(quantile(values, 0), 1);
  EXPECT_EQ(quantile(values, 1), 4);
  EXPECT_DOUBLE_EQ(median(values), 2.5);
  EXPECT_DOUBLE_EQ(quantile(values, 0.25), 1.75);  // numpy.quantile([1, 2, 3, 4], 0.25)
  const Spread spread = spread_of(values);
  EXPECT_EQ(spread.least, 1);
  EXPECT_DOUBLE_EQ(spread.upper_quartile, 3.25);
  EXPECT_EQ(spread.most, 4);
  EXPECT_EQ(median(std::vector<double>{7}), 7);
}

TEST(SampleStatistics, BootstrapOfEqualValuesIsThatValue) {
  const ConfidenceInterval interval = bootstrap_median(std::vector<double>(9, 1.25));
  EXPECT_EQ(interval.low, 1.25);
  EXPECT_EQ(interval.high, 1.25);
}

// Of 400 samples of 21 normal draws each, the interval must hold the true median about 95 times in a
// hundred: between 90 and 99, six standard deviations of a binomial away from chance.
TEST(SampleStatistics, BootstrapCoversTheMedianAsOftenAsItSays) {
  PhiloxStream draws(5);
  int covered = 0;
  constexpr int kSamples = 400;
  for (int i = 0; i < kSamples; ++i) {
    std::vector<double> values(21);
    for (double& value : values) value = 3 + draws.normal();
    const ConfidenceInterval interval = bootstrap_median(values, 0.95, 400);
    EXPECT_LE(interval.low, median(values));
    EXPECT_GE(interval.high, median(values));
    covered += interval.low <= 3 && 3 <= interval.high ? 1 : 0;
  }
  EXPECT_GE(covered, kSamples * 90 / 100);
  EXPECT_LE(covered, kSamples * 99 / 100);
}

TEST(SampleStatistics, LessConfidenceIsANarrowerInterval) {
  PhiloxStream draws(6);
  std::vector<double> values(30);
  for (double& value : values) value = draws.normal();
  const ConfidenceInterval wide = bootstrap_median(values, 0.99);
  const ConfidenceInterval narrow = bootstrap_median(values, 0.5);
  EXPECT_LT(wide.low, narrow.low);
  EXPECT_LT(narrow.high, wide.high);
}

}  // namespace
}  // namespace fullbore
