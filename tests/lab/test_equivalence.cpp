#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "fullbore/base/philox.h"
#include "fullbore/lab/quality/equivalence.h"

namespace fullbore {
namespace {

const QualityMetric kLoss = {.name = "loss", .unit = "nats", .margin = 0.05};
const std::vector<double> kA = {1.502, 1.497, 1.511, 1.495, 1.506};
const std::vector<double> kB = {1.507, 1.503, 1.512, 1.499, 1.513};

EquivalenceResult of(const PairedFigures& figures, const EquivalenceOptions& options = {}) {
  return test_no_worse({&figures, 1}, options).metrics.front();
}

// Expected values are of SciPy 1.15: stats.ttest_1samp, stats.ttest_rel, stats.t.interval, stats.nct.
TEST(Equivalence, Numbers) {
  QualityMetric metric = kLoss;
  metric.margin = 0.02;
  const EquivalenceResult result = of({metric, kA, kB});
  EXPECT_NEAR(result.difference, 0.0046, 1e-12);
  EXPECT_NEAR(result.spread, 0.0023021728866441586, 1e-12);
  EXPECT_NEAR(result.low, 0.0024051293970729476, 1e-9);
  EXPECT_NEAR(result.high, 0.006794870602926925, 1e-9);
  EXPECT_NEAR(result.p_margin, 5.8186065240216314e-05, 1e-10);
  EXPECT_NEAR(result.p_worse, 0.00554623216309413, 1e-9);
  EXPECT_NEAR(result.p_equal, 0.01109246432618826, 1e-9);
  EXPECT_NEAR(result.power, 1, 1e-6);
  EXPECT_EQ(result.verdict, Verdict::passed);
}

TEST(Equivalence, MoreIsBetterAndSharesOfA) {
  const QualityMetric accuracy = {.name = "accuracy", .better = Better::higher, .margin = 0.005};
  const EquivalenceResult result = of({accuracy, {.90, .91, .92, .89}, {.91, .905, .93, .90}});
  EXPECT_NEAR(result.p_margin, 0.02883444281121868, 1e-9);
  QualityMetric relative = kLoss;
  relative.margin = 0.01;
  relative.is_relative = true;
  const EquivalenceResult share = of({relative, kA, kB});
  EXPECT_NEAR(share.p_margin, 0.000281138625888164, 1e-9);
  EXPECT_NEAR(share.margin, 0.01 * 1.5022, 1e-9);
  EXPECT_EQ(of({relative, {-1, -1.1}, {-1, -1.1}}).verdict, Verdict::undecided);
}

TEST(Equivalence, SeedsNeeded) {
  const EquivalenceOptions options;
  EXPECT_EQ(pairs_needed(kLoss, 0.02, 0.05, 2, false, options), 4);
  EXPECT_EQ(pairs_needed(kLoss, 0.05, 0.05, 2, false, options), 11);
  EXPECT_EQ(pairs_needed(kLoss, 0.2, 0.05, 2, false, options), 139);
  EXPECT_EQ(pairs_needed(kLoss, 0.1, 1, 2, false, options), 2);
  // With the spread of four that were made first.
  EXPECT_EQ(pairs_needed(kLoss, 0.02, 0.05, 4, true, options), 4);
  EXPECT_EQ(pairs_needed(kLoss, 0.05, 0.05, 4, true, options), 16);
  EXPECT_EQ(pairs_needed(kLoss, 0.2, 0.05, 4, true, options), 247);
  EXPECT_EQ(pairs_needed(kLoss, 1e9, 0.05, 4, true, options), 0);
}

TEST(Equivalence, TooFewIsUndecided) {
  EXPECT_EQ(of({kLoss, {}, {}}).verdict, Verdict::undecided);
  const EquivalenceResult one = of({kLoss, {1.5}, {1.5}});
  EXPECT_EQ(one.verdict, Verdict::undecided);
  EXPECT_EQ(one.reason, "one pair of seeds: at least 2 pairs are needed to know the spread");
  // The interval is within the margin by luck: such a spread seldom lets one pass.
  const EquivalenceResult lucky = of({kLoss, {1.50, 1.50, 1.50}, {1.47, 1.51, 1.52}});
  EXPECT_LT(lucky.high, 0.05);
  EXPECT_LT(lucky.power, 0.9);
  EXPECT_EQ(lucky.verdict, Verdict::undecided);
  EXPECT_EQ(lucky.reason, "too few seeds: 5 are needed");
  EXPECT_EQ(of({kLoss, {1.5, NAN}, {1.5, 1.5}}).verdict, Verdict::undecided);
  EXPECT_EQ(of({kLoss, {1.5, 1.5}, {1.5, 1.5}, "is not recorded"}).verdict, Verdict::undecided);
  EXPECT_EQ(test_no_worse({}).verdict, Verdict::undecided);
}

TEST(Equivalence, WorseAndBetter) {
  EXPECT_EQ(of({kLoss, {1.50, 1.51, 1.49}, {1.60, 1.62, 1.595}}).verdict, Verdict::failed);
  // However wide the spread: no better loss fails, and one that is better beyond doubt passes.
  const EquivalenceResult better =
      of({kLoss, {1.5, 1.5, 1.5, 1.5, 1.5}, {1.2, 0.7, 1.3, 0.6, 1.2}});
  EXPECT_LT(better.power, 0.5);
  EXPECT_EQ(better.verdict, Verdict::passed);
  EXPECT_EQ(better.reason, "better");
  // Equal runs, to the bit.
  EXPECT_EQ(of({kLoss, kA, kA}).verdict, Verdict::passed);
  EXPECT_EQ(of({kLoss, kA, kA}).p_equal, 1);
}

TEST(Equivalence, OfABalanceBothDirectionsFail) {
  const QualityMetric balance = {.name = "ratio", .better = Better::same, .margin = 0.1};
  const std::vector<double> a = {1, 1.01, 0.99, 1}, up = {1.2, 1.22, 1.19, 1.21},
                            down = {0.8, 0.81, 0.79, 0.82}, near = {1.01, 1, 1, 0.99};
  EXPECT_EQ(of({balance, a, up}).verdict, Verdict::failed);
  EXPECT_EQ(of({balance, a, down}).verdict, Verdict::failed);
  EXPECT_EQ(of({balance, a, near}).verdict, Verdict::passed);
}

TEST(Equivalence, AllMetricsMustPass) {
  const PairedFigures good{kLoss, kA, kB};
  QualityMetric other = kLoss;
  other.name = "other";
  const PairedFigures bad{other, {1.50, 1.51, 1.49}, {1.60, 1.62, 1.595}};
  const PairedFigures unknown{other, {}, {}, "not recorded"};
  EXPECT_EQ(test_no_worse(std::vector{good, good}).verdict, Verdict::passed);
  EXPECT_EQ(test_no_worse(std::vector{good, unknown}).verdict, Verdict::undecided);
  EXPECT_EQ(test_no_worse(std::vector{good, unknown, bad}).verdict, Verdict::failed);
}

TEST(Equivalence, Holm) {
  EXPECT_EQ(holm(std::vector<double>{0.01, 0.04, 0.03}), (std::vector<double>{0.03, 0.06, 0.06}));
  const std::vector<double> some = holm(std::vector<double>{0.02, NAN, 0.9});
  EXPECT_EQ(some[0], 0.04);
  EXPECT_TRUE(std::isnan(some[1]));
  EXPECT_EQ(some[2], 0.9);
}

class Draws {
 public:
  explicit Draws(uint64_t key) : stream_(key) {}
  double normal() {
    const double u = (static_cast<double>(stream_.below(1U << 30)) + 0.5) / (1U << 30);
    const double v = static_cast<double>(stream_.below(1U << 30)) / (1U << 30);
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
  }
  /// Losses of so many seeds: what a seed does to both, and what is each one's own.
  PairedFigures pairs(int64_t count, double shift, double spread) {
    PairedFigures figures{kLoss, {}, {}};
    for (int64_t i = 0; i < count; ++i) {
      const double seed = 1.5 + 0.03 * normal();
      figures.a.push_back(seed + spread / std::sqrt(2.0) * normal());
      figures.b.push_back(seed + shift + spread / std::sqrt(2.0) * normal());
    }
    return figures;
  }

 private:
  PhiloxStream stream_;
};

TEST(Equivalence, WhatIsWorseByTheMarginPassesSeldom) {
  constexpr int kTrials = 1000;
  Draws draws(1);
  int passed = 0;
  for (int i = 0; i < kTrials; ++i)
    passed += of(draws.pairs(5, kLoss.margin, 0.01)).verdict == Verdict::passed ? 1 : 0;
  EXPECT_NEAR(passed, 50, 28);  // alpha of them, by four standard deviations
}

// However many seeds the first four ask for, the chance stays what it is.
TEST(Equivalence, ChoosingSeedsByTheSpreadKeepsAlpha) {
  constexpr int kTrials = 1000;
  EquivalenceOptions options;
  options.pilot = 4;
  Draws draws(2);
  int passed = 0;
  for (int i = 0; i < kTrials; ++i) {
    PairedFigures figures = draws.pairs(4, kLoss.margin, 0.03);
    const int64_t needed = of(figures, options).seeds_needed;
    const PairedFigures more = draws.pairs(needed - 4, kLoss.margin, 0.03);
    figures.a.insert(figures.a.end(), more.a.begin(), more.a.end());
    figures.b.insert(figures.b.end(), more.b.begin(), more.b.end());
    passed += of(figures, options).verdict == Verdict::passed ? 1 : 0;
  }
  EXPECT_NEAR(passed, 50, 28);
}

TEST(Equivalence, TwinsRaiseFewAlarms) {
  constexpr int kTrials = 500;
  Draws draws(3);
  int worse = 0, failed = 0, passed = 0;
  for (int i = 0; i < kTrials; ++i) {
    const std::vector<PairedFigures> all = {draws.pairs(6, 0, 0.02), draws.pairs(6, 0, 0.02)};
    const EquivalenceReport report = test_no_worse(all);
    worse += report.metrics[0].p_worse <= 0.01 || report.metrics[1].p_worse <= 0.01 ? 1 : 0;
    failed += report.verdict == Verdict::failed ? 1 : 0;
    passed += report.verdict == Verdict::passed ? 1 : 0;
  }
  EXPECT_LE(worse, kTrials / 50);
  EXPECT_LE(failed, kTrials / 500);
  EXPECT_GE(passed, kTrials * 8 / 10);
}

TEST(Equivalence, AFiftiethOfANatIsFound) {
  constexpr int kTrials = 200;
  Draws draws(4);
  int found = 0, passed = 0;
  for (int i = 0; i < kTrials; ++i) {
    const EquivalenceResult result = of(draws.pairs(8, 0.02, 0.01));
    found += result.p_worse <= 0.01 ? 1 : 0;
    passed += result.verdict == Verdict::passed ? 1 : 0;
  }
  EXPECT_GE(found, kTrials * 19 / 20);
  EXPECT_GE(passed, kTrials * 9 / 10);  // within 0.05 it is no worse all the same
}

}  // namespace
}  // namespace fullbore
