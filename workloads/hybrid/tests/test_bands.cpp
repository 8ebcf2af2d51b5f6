#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fullbore/base/philox.h"
#include "workloads/hybrid/bands.h"
#include "workloads/hybrid/state_statistics.h"

namespace fullbore {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

TEST(Bands, OfGradientRatiosAreTheRecords) {
  EXPECT_EQ(gradient_ratio_band(0.05), Band::fail);
  EXPECT_EQ(gradient_ratio_band(0.1), Band::warn);
  EXPECT_EQ(gradient_ratio_band(0.15), Band::warn);
  EXPECT_EQ(gradient_ratio_band(1.0 / 3), Band::ok);
  EXPECT_EQ(gradient_ratio_band(3.0), Band::ok);
  EXPECT_EQ(gradient_ratio_band(3.1), Band::warn);
  EXPECT_EQ(gradient_ratio_band(10), Band::warn);
  EXPECT_EQ(gradient_ratio_band(10.5), Band::fail);
  EXPECT_EQ(gradient_ratio_band(std::numeric_limits<double>::infinity()), Band::fail);
}

TEST(Bands, AreTheRecords) {
  EXPECT_EQ(branch_deviation_band(0.009), Band::fail);
  EXPECT_EQ(branch_deviation_band(0.01), Band::ok);
  EXPECT_EQ(variance_ratio_band(0.87 / 1.08), Band::ok);
  EXPECT_EQ(variance_ratio_band(35), Band::warn);
  EXPECT_EQ(variance_ratio_band(66000), Band::fail);
  EXPECT_EQ(channel_entropy_band(0.5), Band::fail);
  EXPECT_EQ(channel_entropy_band(1.5), Band::warn);
  EXPECT_EQ(channel_entropy_band(std::log(128)), Band::ok);
  EXPECT_EQ(channel_entropy_band(7.1), Band::fail);
  EXPECT_EQ(state_growth_band(1.9), Band::ok);
  EXPECT_EQ(state_growth_band(2.5), Band::warn);
  EXPECT_EQ(state_growth_band(10.5), Band::fail);
  EXPECT_EQ(state_variance_band(1e-6), Band::fail);
  EXPECT_EQ(state_variance_band(2e-6), Band::ok);
  EXPECT_EQ(contribution_band(0.5, 1), Band::ok);
  EXPECT_EQ(contribution_band(1, 8), Band::warn);
  EXPECT_EQ(contribution_band(1, 11), Band::fail);
  EXPECT_EQ(contribution_band(1, -0.1), Band::fail);
  EXPECT_EQ(information_flow_band(0.02), Band::ok);
  EXPECT_EQ(information_flow_band(0.005), Band::warn);
  EXPECT_EQ(information_flow_band(0.0005), Band::fail);
  EXPECT_EQ(state_cosine_band(0.9), Band::ok);
  EXPECT_EQ(state_cosine_band(0.97), Band::warn);
  EXPECT_EQ(state_cosine_band(0.995), Band::fail);
  EXPECT_EQ(singular_share_band(0.6), Band::ok);
  EXPECT_EQ(singular_share_band(0.4), Band::warn);
  EXPECT_EQ(saturation_band(0.1), Band::ok);
  EXPECT_EQ(saturation_band(0.4), Band::warn);
  EXPECT_EQ(longer_segments_band(1.04), Band::ok);
  EXPECT_EQ(longer_segments_band(2), Band::warn);
  EXPECT_EQ(longer_segments_band(3.5), Band::fail);
  EXPECT_EQ(gradient_norm_band(1), Band::ok);
  EXPECT_EQ(gradient_norm_band(2), Band::warn);
  EXPECT_EQ(gradient_norm_band(6), Band::fail);
  EXPECT_EQ(initial_entropy_band(4.575, 97), Band::ok);
  EXPECT_EQ(initial_entropy_band(4, 97), Band::fail);
  EXPECT_STREQ(band_name(Band::warn), "WARN");
}

TEST(Bands, WhatIsNoNumberFails) {
  for (Band (*band)(double) :
       {gradient_ratio_band, branch_deviation_band, variance_ratio_band, channel_entropy_band,
        state_growth_band, state_variance_band, information_flow_band, state_cosine_band,
        singular_share_band, saturation_band, longer_segments_band, gradient_norm_band})
    EXPECT_EQ(band(kNoNumber), Band::fail);
  EXPECT_EQ(contribution_band(kNoNumber, 1), Band::fail);
}

TEST(StateStatistics, AreTheirFormulas) {
  const std::vector<float> a = {3, 4}, b = {4, -3}, c = {6, 8}, none = {0, 0};
  EXPECT_DOUBLE_EQ(norm_of(a), 5);
  EXPECT_DOUBLE_EQ(cosine_of(a, b), 0);
  EXPECT_DOUBLE_EQ(cosine_of(a, c), 1);
  EXPECT_DOUBLE_EQ(cosine_of(a, none), 0);
  const std::span<const float> rows[] = {a, c};
  EXPECT_DOUBLE_EQ(variance_across(rows), (2.25 + 4) / 2);
  EXPECT_DOUBLE_EQ(share_beyond(c, 7), 0.5);
}

// Of a diagonal matrix turned by two rotations the singular values are known.
TEST(StateStatistics, SingularValuesSurviveRotations) {
  const double values[] = {8, 4, 2, 1};
  float matrix[16] = {};
  double turned[16] = {};
  for (int i = 0; i < 4; ++i) turned[5 * i] = values[i];
  const auto turn = [&](int first, int second, double angle, bool rows) {
    for (int k = 0; k < 4; ++k) {
      double& x = rows ? turned[4 * first + k] : turned[4 * k + first];
      double& y = rows ? turned[4 * second + k] : turned[4 * k + second];
      const double before = x;
      x = std::cos(angle) * before - std::sin(angle) * y;
      y = std::sin(angle) * before + std::cos(angle) * y;
    }
  };
  turn(0, 1, 0.7, true);
  turn(1, 3, 1.1, false);
  turn(2, 0, 0.4, true);
  for (int i = 0; i < 16; ++i) matrix[i] = static_cast<float>(turned[i]);
  EXPECT_NEAR(top_singular_share(matrix, 4, 4, 1), 8.0 / 15, 1e-6);
  EXPECT_NEAR(top_singular_share(matrix, 4, 4, 3), 14.0 / 15, 1e-6);
  EXPECT_NEAR(top_singular_share(matrix, 4, 4, 5), 1, 1e-12);
  const float none[4] = {};
  EXPECT_EQ(top_singular_share(none, 2, 2, 1), 0);
  // Of rank one, whatever the shape.
  std::vector<float> thin;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 5; ++j) thin.push_back(static_cast<float>((i + 1) * (j - 2)));
  EXPECT_NEAR(top_singular_share(thin, 3, 5, 1), 1, 1e-6);
}

TEST(StateStatistics, FrequenciesAreToldApart) {
  std::vector<double> slow, fast, both;
  for (int t = 0; t < 64; ++t) {
    slow.push_back(5 + std::sin(2 * M_PI * 3 * t / 64));
    fast.push_back(5 + std::sin(2 * M_PI * 29 * t / 64));
    both.push_back(2 * slow.back() + fast.back());
  }
  EXPECT_GT(low_by_high_frequencies(slow), 1e20);
  EXPECT_LT(low_by_high_frequencies(fast), 1e-20);
  EXPECT_NEAR(low_by_high_frequencies(both), 4, 1e-9);
  EXPECT_EQ(low_by_high_frequencies(std::vector<double>{1, 2}), 0);
}

}  // namespace
}  // namespace fullbore
