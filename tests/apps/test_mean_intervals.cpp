#include <gtest/gtest.h>

#include <cmath>

#include "fullbore/app/mean_intervals.h"
#include "fullbore/data/split_mix.h"

namespace fullbore {
namespace {

/// Sums of twelve uniform draws: nearly normal, with this mean and deviation.
std::vector<double> normals(uint64_t key, size_t count, double mean, double deviation) {
  SplitMix64 draws(key);
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i) {
    double sum = -6;
    for (int k = 0; k < 12; ++k) sum += static_cast<double>(draws.bits() >> 11) * 0x1p-53;
    values.push_back(mean + deviation * sum);
  }
  return values;
}

double deviation(const std::vector<double>& values, double mean) {
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

TEST(MeanIntervals, AreThoseOfTheNormalDistributionOfManyValues) {
  const std::vector<std::vector<double>> columns = {normals(7, 400, 3, 2)};
  const MeanInterval interval = mean_intervals(columns)[0];
  const double error = deviation(columns[0], interval.mean) / std::sqrt(400.0);
  EXPECT_NEAR(interval.low, interval.mean - 1.96 * error, 0.1 * error);
  EXPECT_NEAR(interval.high, interval.mean + 1.96 * error, 0.1 * error);
  const MeanInterval narrower = mean_intervals(columns, {.confidence = 0.6827})[0];
  EXPECT_NEAR(narrower.high - narrower.low, 2 * error, 0.1 * error);
}

// What makes examples hard is in both columns: of the difference it is gone.
TEST(MeanIntervals, OfDifferencesArePaired) {
  const std::vector<double> hardness = normals(1, 300, 5, 4), gain = normals(2, 300, 0.2, 0.3);
  std::vector<std::vector<double>> columns(3);
  for (size_t i = 0; i < hardness.size(); ++i) {
    columns[0].push_back(hardness[i] - gain[i]);
    columns[1].push_back(hardness[i]);
    columns[2].push_back(columns[0].back() - columns[1].back());
  }
  const std::vector<MeanInterval> intervals = mean_intervals(columns);
  EXPECT_GT(intervals[0].high, intervals[1].low);  // each by itself tells nothing
  EXPECT_LT(intervals[2].high, 0);
  EXPECT_NEAR(intervals[2].mean, intervals[0].mean - intervals[1].mean, 1e-12);
  // The same rows are drawn of all columns: a column and its double have the same interval twice.
  const std::vector<std::vector<double>> twice = {columns[1], columns[1]};
  const std::vector<MeanInterval> same = mean_intervals(twice);
  EXPECT_EQ(same[0].low, same[1].low);
  EXPECT_EQ(same[0].high, same[1].high);
}

TEST(MeanIntervals, AreTheSameWheneverTheyAreDrawnByTheSameKey) {
  const std::vector<std::vector<double>> columns = {normals(3, 50, 0, 1)};
  const MeanInterval once = mean_intervals(columns)[0], again = mean_intervals(columns)[0];
  EXPECT_EQ(once.low, again.low);
  EXPECT_EQ(once.high, again.high);
  EXPECT_NE(once.low, mean_intervals(columns, {.key = 2})[0].low);
}

// About 19 of 20 intervals hold the true mean.
TEST(MeanIntervals, HoldTheMeanAsOftenAsTheySay) {
  int held = 0;
  for (uint64_t key = 0; key < 200; ++key) {
    const std::vector<std::vector<double>> columns = {normals(1000 + key, 60, 1, 3)};
    const MeanInterval interval = mean_intervals(columns, {.resamples = 400})[0];
    held += interval.low <= 1 && 1 <= interval.high ? 1 : 0;
  }
  EXPECT_GE(held, 180);
  EXPECT_LE(held, 198);
}

TEST(MeanIntervals, OfOneRowAndOfNone) {
  const std::vector<std::vector<double>> one = {{2.5}, {-1}};
  EXPECT_EQ(mean_intervals(one)[0].low, 2.5);
  EXPECT_EQ(mean_intervals(one)[1].high, -1);
  const std::vector<std::vector<double>> none = {{}};
  EXPECT_TRUE(std::isnan(mean_intervals(none)[0].mean));
  const std::vector<std::vector<double>> broken = {{1, NAN}, {1, 2}};
  EXPECT_TRUE(std::isnan(mean_intervals(broken)[0].low));
  EXPECT_EQ(mean_intervals(broken)[1].mean, 1.5);
}

}  // namespace
}  // namespace fullbore
