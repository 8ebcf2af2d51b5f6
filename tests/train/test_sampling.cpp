#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/train/sampling.h"

namespace fullbore {
namespace {

std::vector<int> count_draws(const std::vector<float>& logits, const SamplingOptions& options,
                             int draws) {
  PhiloxStream stream(7);
  std::vector<int> counts(logits.size(), 0);
  for (int i = 0; i < draws; ++i)
    ++counts[static_cast<size_t>(sample_token(logits, options, stream))];
  return counts;
}

TEST(Sampling, FollowsTheSoftmax) {
  const std::vector<float> logits = {0, 1, -1, 2};
  constexpr int kDraws = 40'000;
  for (const double temperature : {0.5, 1.0, 2.0}) {
    const std::vector<int> counts = count_draws(logits, {.temperature = temperature}, kDraws);
    double total = 0;
    for (const float logit : logits) total += std::exp(logit / temperature);
    for (size_t id = 0; id < logits.size(); ++id) {
      const double p = std::exp(logits[id] / temperature) / total;
      EXPECT_NEAR(counts[id], kDraws * p, 5 * std::sqrt(kDraws * p * (1 - p))) << id;
    }
  }
}

TEST(Sampling, TopKDrawsFromTheKLargestAndTiesGoToTheLowerId) {
  const std::vector<float> logits = {3, 5, 5, 5, 1};
  const std::vector<int> counts = count_draws(logits, {.top_k = 2}, 1000);
  EXPECT_EQ(counts[1] + counts[2], 1000);
  EXPECT_GT(counts[1], 400);
  EXPECT_GT(counts[2], 400);
  EXPECT_EQ(count_draws(logits, {.top_k = 1}, 10)[1], 10);
  EXPECT_GT(count_draws(logits, {.top_k = 100}, 2000)[4], 0)
      << "k beyond the vocabulary is all of it";
}

TEST(Sampling, TemperatureZeroTakesTheLargest) {
  EXPECT_EQ(count_draws({0, 3, 2, 3}, {.temperature = 0}, 10)[1], 10);
}

TEST(Sampling, HugeAndMinusInfiniteLogitsAreFine) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(count_draws({1000, -1000, -infinity}, {}, 100)[0], 100);
}

TEST(Sampling, WhatIsNoDistributionIsRefused) {
  PhiloxStream stream(1);
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto draw = [&](std::vector<float> logits) { sample_token(logits, {}, stream); };
  EXPECT_THROW(draw({1, nan}), NumericalError);
  EXPECT_THROW(draw({1, infinity}), NumericalError);
  EXPECT_THROW(draw({-infinity, -infinity}), NumericalError);
}

// Probabilities 0.64, 0.24, 0.09, 0.03.
const std::vector<float> kDescending = {
    static_cast<float>(std::log(0.24)), static_cast<float>(std::log(0.03)),
    static_cast<float>(std::log(0.64)), static_cast<float>(std::log(0.09))};

TEST(Sampling, TopPKeepsTheFewestThatReachIt) {
  const auto drawn = [](double top_p, int64_t top_k = 0) {
    std::vector<int> ids;
    const std::vector<int> counts =
        count_draws(kDescending, {.top_k = top_k, .top_p = top_p}, 4000);
    for (size_t id = 0; id < counts.size(); ++id)
      if (counts[id] > 0) ids.push_back(static_cast<int>(id));
    return ids;
  };
  using Ids = std::vector<int>;
  EXPECT_EQ(drawn(0), (Ids{2}));
  EXPECT_EQ(drawn(0.6), (Ids{2}));
  EXPECT_EQ(drawn(0.7), (Ids{0, 2}));
  EXPECT_EQ(drawn(0.9), (Ids{0, 2, 3}));
  EXPECT_EQ(drawn(1), (Ids{0, 1, 2, 3}));
  // Of the two likeliest the first has 0.64 / 0.88 = 0.727.
  EXPECT_EQ(drawn(0.72, 2), (Ids{2}));
  EXPECT_EQ(drawn(0.74, 2), (Ids{0, 2}));
}

TEST(Sampling, TopPKeepsTheOthersInProportion) {
  constexpr int kDraws = 20'000;
  const std::vector<int> counts = count_draws(kDescending, {.top_p = 0.7}, kDraws);
  const double p = 0.64 / 0.88;
  EXPECT_NEAR(counts[2], kDraws * p, 5 * std::sqrt(kDraws * p * (1 - p)));
}

TEST(Sampling, TheRepetitionPenaltyIsOfTokensSeenOnce) {
  const auto likeliest = [](std::vector<float> logits, double penalty, std::vector<bool> seen) {
    PhiloxStream stream(1);
    return sample_token(logits, {.repetition_penalty = penalty, .temperature = 0}, stream, seen);
  };
  EXPECT_EQ(likeliest({4, 3, 1}, 1, {true}), 0);
  EXPECT_EQ(likeliest({4, 3, 1}, 1.5, {true}), 1) << "4 / 1.5 is below 3";
  EXPECT_EQ(likeliest({4, 3, 1}, 1.5, {false, true}), 0);
  EXPECT_EQ(likeliest({-2, -3, -9}, 2, {true}), 1) << "-2 * 2 is below -3";
  EXPECT_EQ(likeliest({4, 2.5, 1}, 1.5, {true}), 0);
  EXPECT_EQ(likeliest({4, 3, 1}, 0.5, {false, true}), 1) << "below 1 it is a reward";
  EXPECT_EQ(likeliest({4, 3, 1}, 1.5, {false, false, false, true}), 0) << "a token without a logit";
}

TEST(Sampling, SameSeedSameTokens) {
  const std::vector<float> logits = {0, 1, 2, 3};
  PhiloxStream a(5), b(5), c(6);
  std::vector<int32_t> draws_a, draws_b, draws_c;
  for (int i = 0; i < 50; ++i) {
    draws_a.push_back(sample_token(logits, {}, a));
    draws_b.push_back(sample_token(logits, {}, b));
    draws_c.push_back(sample_token(logits, {}, c));
  }
  EXPECT_EQ(draws_a, draws_b);
  EXPECT_NE(draws_a, draws_c);
}

}  // namespace
}  // namespace fullbore
