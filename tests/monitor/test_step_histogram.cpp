#include "fullbore/monitor/step_histogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace fullbore {
namespace {

TEST(StepHistogram, TellsPercentilesOfSingleSteps) {
  StepHistogram times;
  EXPECT_TRUE(std::isnan(times.quantile(0.5)));
  for (int i = 0; i < 95; ++i) times.add(0.1);
  for (int i = 0; i < 5; ++i) times.add(3);
  for (const double none : {0.0, -1.0, std::nan("")}) times.add(none);
  EXPECT_EQ(times.steps(), 100);
  EXPECT_NEAR(times.seconds(), 24.5, 1e-9);
  EXPECT_NEAR(times.quantile(0.5), 0.1, 0.0011);
  EXPECT_NEAR(times.quantile(0.95), 0.1, 0.0011);
  EXPECT_NEAR(times.quantile(0.96), 3, 0.033) << "the few long ones are no mean";
  times.add(1e-30);
  times.add(1e30);
  EXPECT_LT(times.quantile(0), 1e-5);
  EXPECT_GT(times.quantile(1), 1e5);
}

TEST(StepHistogram, IsReadAndMerged) {
  StepHistogram times;
  times.add(0.5);
  times.add(0.01);
  StepHistogram again =
      StepHistogram::from_json(nlohmann::json::parse(times.to_json().dump())).take_or_throw();
  EXPECT_EQ(again.to_json(), times.to_json());
  again.merge(times);
  EXPECT_EQ(again.steps(), 4);
  const auto refused = [](const char* text) {
    return !StepHistogram::from_json(nlohmann::json::parse(text)).ok();
  };
  EXPECT_TRUE(refused("[]"));
  EXPECT_TRUE(refused(R"({"seconds": 1, "bins": [[1, 2, 3]]})"));
  EXPECT_TRUE(refused(R"({"seconds": 1, "bins": [[99999, 2]]})"));
  EXPECT_TRUE(refused(R"({"seconds": 1, "bins": [[1, -2]]})"));
  EXPECT_TRUE(refused(R"({"seconds": 1, "bins": [[1, 9007199254740992], [2, 9007199254740992]]})"));
  EXPECT_TRUE(refused(R"({"seconds": -1, "bins": []})"));
}

}  // namespace
}  // namespace fullbore
