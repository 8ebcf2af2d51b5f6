#include "fullbore/train/group_advantage.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fullbore/train/penalty_controller.h"

/// Values that were worked out apart from this code.
namespace fullbore {
namespace {

void expect_near(const std::vector<float>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << i;
}

const std::vector<double> kRewards = {1.0, 0.22, -0.3, 0.56};

TEST(GroupAdvantages, AreTheTables) {
  expect_near(group_advantages(kRewards, 4, Advantage::centred), {0.63, -0.15, -0.67, 0.19});
  expect_near(group_advantages(kRewards, 4, Advantage::sample),
              {1.14720706, -0.27314454, -1.22004560, 0.34598308});
  expect_near(group_advantages(kRewards, 4, Advantage::population),
              {1.32464329, -0.31539126, -1.40874762, 0.39949560});
  expect_near(group_advantages(kRewards, 4, Advantage::leave_one),
              {0.84, -0.2, -0.89333333, 0.25333333});
}

// 0.1 is no sum of powers of two: a mean of equal rewards need not be the reward.
TEST(GroupAdvantages, OfEqualRewardsAreExactlyNothing) {
  const std::vector<double> rewards = {0.1, 0.1, 0.1, 1, 0, 2};
  for (const Advantage kind : {Advantage::centred, Advantage::sample, Advantage::population,
                               Advantage::batch, Advantage::leave_one}) {
    const std::vector<float> found = group_advantages(rewards, 3, kind);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(found[i], 0);
    EXPECT_GT(found[5], 0);
    EXPECT_EQ(group_advantages(std::vector<double>{3.0, 4.0}, 1, kind), (std::vector<float>{0, 0}));
  }
}

// Groups are centred each for itself and scaled together: a group that is spread more keeps its weight.
TEST(GroupAdvantages, OfABatchShareADeviation) {
  const std::vector<double> rewards = {0, 1, 10, 14};
  const double s = std::sqrt((0.25 + 0.25 + 4 + 4) / 3.0) + 1e-4;
  expect_near(group_advantages(rewards, 2, Advantage::batch), {-0.5 / s, 0.5 / s, -2 / s, 2 / s});
}

TEST(PenaltyController, FollowsTheTables) {
  const std::vector<double> values = {0, .02, .04, .1, .01, .5};
  const auto follows = [&](PenaltyControl control, const std::vector<double>& expected) {
    PenaltyController controller({.control = control, .initial = 0.02, .target = 0.04});
    for (size_t i = 0; i < values.size(); ++i) {
      controller.observe(values[i]);
      EXPECT_NEAR(controller.coefficient(), expected[i], 1e-9) << i;
    }
  };
  follows(PenaltyControl::step, {.018, .018, .018, .0198, .01782, .019602});
  follows(PenaltyControl::window, {.016, .0128, .0128, .0128, .0128, .0192});
  follows(PenaltyControl::proportional,
          {.0196, .019208, .019208, .01959216, .0192003168, .019584323136});
  follows(PenaltyControl::exponential,
          {.0163746151, .0134064009, .0134064009, .0163746151, .0134064009, .0163746151});
  follows(PenaltyControl::none, {.02, .02, .02, .02, .02, .02});
}

TEST(PenaltyController, StaysWithinBoundsAndGoesOnFromItsNumbers) {
  const PenaltyOptions options = {
      .control = PenaltyControl::window, .initial = 0.02, .target = 0.04, .warmup = 2};
  PenaltyController whole(options);
  EXPECT_EQ(whole.coefficient(), 0) << "warm-up";
  for (int i = 0; i < 150; ++i) whole.observe(i % 7 == 0 ? 0.9 : 0.001 * i);
  PenaltyController resumed(options);
  resumed.restore(whole.numbers());
  for (int i = 0; i < 60; ++i) {
    whole.observe(0.01);
    resumed.observe(0.01);
    EXPECT_EQ(whole.coefficient(), resumed.coefficient());
  }
  for (int i = 0; i < 300; ++i) whole.observe(0);
  EXPECT_EQ(whole.coefficient(), 0.001);
  whole.observe(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(whole.coefficient(), 0.001);
  for (int i = 0; i < 300; ++i) whole.observe(9);
  EXPECT_EQ(whole.coefficient(), 1);
}

}  // namespace
}  // namespace fullbore
