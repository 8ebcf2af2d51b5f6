#include <gtest/gtest.h>

#include <vector>

#include "workloads/latentwire/answer_metrics.h"
#include "workloads/latentwire/paired_statistics.h"

namespace fullbore::latentwire {
namespace {

// Check 9 of the specification.
TEST(AnswerMetrics, AreThoseOfTheSpecification) {
  struct Case {
    const char* predicted;
    const char* reference;
    double exact_match, f1;
  };
  const Case cases[] = {
      {"The Denver Broncos!", "denver broncos", 1, 1},
      {"Denver", "Denver Broncos", 0, .666667},
      {"an apple a day", "Apple day", 1, 1},
      {"the the", "The", 1, 1},
      {"", "Paris", 0, 0},
      {"state-of-the-art", "state of the art", 0, 0},
      {"U.S. Army", "US Army", 1, 1},
      {"10,000", "10000", 1, 1},
      {"York, New", "new york city", 0, .8},
      {"to be to be", "to be to go", 0, .75},
      {"It was the best of times", "the worst of times", 0, .5},
      {"$5.5 million", "5.5 million dollars", 0, .8},
      {"café au lait", "cafe au lait", 0, .666667},
      {"anthem", "the anthem", 1, 1},
  };
  for (const Case& each : cases) {
    const AnswerScore score = answer_score(each.predicted, std::string_view(each.reference));
    EXPECT_EQ(score.exact_match, each.exact_match) << each.predicted;
    EXPECT_NEAR(score.f1, each.f1, 1e-6) << each.predicted;
  }
  EXPECT_EQ(normalised_answer("  The\tBig,  Apple\n"), "big apple");
}

TEST(AnswerMetrics, TakeTheBestReferenceForEachScore) {
  const std::vector<std::string> references = {"red", "dark red", "blue"};
  EXPECT_EQ(answer_score("dark red", references).exact_match, 1);
  EXPECT_NEAR(answer_score("very dark red", references).f1, 0.8, 1e-12);
}

TEST(PairedStatistics, OfADifferenceThatIsTheSameInEachRowLeaveNoDoubt) {
  const std::vector<double> a = {3, 5, 9, 1}, b = {2, 4, 8, 0};
  const Interval interval = paired_interval(a, b);
  EXPECT_EQ(interval.mean, 1);
  EXPECT_EQ(interval.low, 1);
  EXPECT_EQ(interval.high, 1);
  EXPECT_EQ(paired_interval({}, {}).mean, 0);
}

// 100 differences of 0 and 1, evenly: the mean's deviation is 0.05.
TEST(PairedStatistics, IntervalsAreThoseOfTheNormalDistribution) {
  std::vector<double> a, b(100, 0.0);
  for (int i = 0; i < 100; ++i) a.push_back(i % 2);
  const Interval interval = paired_interval(a, b);
  EXPECT_NEAR(interval.low, 0.5 - 1.96 * 0.05, 0.01);
  EXPECT_NEAR(interval.high, 0.5 + 1.96 * 0.05, 0.01);
  const Interval again = paired_interval(a, b);
  EXPECT_EQ(again.low, interval.low);
  EXPECT_NE(paired_interval(a, b, {.resamples = 50, .key = 2}).low,
            paired_interval(a, b, {.resamples = 50, .key = 3}).low);
}

TEST(PairedStatistics, McNemarCountsRowsThatOneSystemAloneAnswers) {
  // 8 against 1 of 9: 2 (1 + 9) / 2^9.
  std::vector<double> a(8, 1.0), b(8, 0.0);
  a.insert(a.end(), {0, 1, 0});
  b.insert(b.end(), {1, 1, 0});
  const McNemar test = mcnemar(a, b);
  EXPECT_EQ(test.only_first, 8);
  EXPECT_EQ(test.only_second, 1);
  EXPECT_NEAR(test.p, 20.0 / 512, 1e-12);
  EXPECT_EQ(mcnemar(a, a).p, 1);
}

}  // namespace
}  // namespace fullbore::latentwire
