#include "fullbore/optim/schedule.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>

#include "tests/optim/replayed.h"
#include "tests/support/evaluate.h"

namespace fullbore {
namespace {

double rate_at(double step, const ScheduleOptions& options) {
  const Literal result = evaluate({integers(DType::i64, {}, {step})},
                                  [&](GraphBuilder&, const std::vector<Tensor>& inputs) {
                                    const Tensor rate = scheduled_learning_rate(inputs[0], options);
                                    EXPECT_EQ(rate.type().text(), "f64[]");
                                    return rate;
                                  });
  return result.at(0);
}

constexpr double kRounding = 1e-15;

TEST(Schedule, CosineRisesThenFallsByHalfACosine) {
  const ScheduleOptions options{"cosine", 1.0, 0.1, 4, 12};
  // Warm-up never starts from zero, and the step after it has the full rate.
  EXPECT_NEAR(rate_at(0, options), 0.2, kRounding);
  EXPECT_NEAR(rate_at(1, options), 0.4, kRounding);
  EXPECT_NEAR(rate_at(3, options), 0.8, kRounding);
  EXPECT_NEAR(rate_at(4, options), 1.0, kRounding);
  EXPECT_NEAR(rate_at(6, options), 0.1 + 0.45 * (1 + std::sqrt(0.5)), kRounding);
  EXPECT_NEAR(rate_at(8, options), 0.55, kRounding);
  EXPECT_NEAR(rate_at(10, options), 0.1 + 0.45 * (1 - std::sqrt(0.5)), kRounding);
  EXPECT_NEAR(rate_at(12, options), 0.1, kRounding);
  EXPECT_NEAR(rate_at(13, options), 0.1, kRounding);
  EXPECT_NEAR(rate_at(1e9, options), 0.1, kRounding);
}

TEST(Schedule, ConstantStaysAfterWarmUp) {
  const ScheduleOptions options{"constant", 2e-3, 1e-4, 1, 12};
  EXPECT_NEAR(rate_at(0, options), 1e-3, kRounding);
  EXPECT_NEAR(rate_at(1, options), 2e-3, kRounding);
  EXPECT_NEAR(rate_at(12, options), 2e-3, kRounding);
  EXPECT_NEAR(rate_at(1000, options), 2e-3, kRounding);
}

TEST(Schedule, StartsAtTheFullRateWithoutWarmUp) {
  for (const char* name : {"cosine", "constant"})
    EXPECT_NEAR(rate_at(0, {name, 3e-4, 0, 0, 10}), 3e-4, kRounding) << name;
}

// A run that ends within or right after its warm-up has no cosine to follow; the rates stay finite.
TEST(Schedule, SurvivesAWarmUpAsLongAsTheRun) {
  for (const int64_t total : {5, 3}) {
    const ScheduleOptions options{"cosine", 0.6, 0.1, 5, total};
    EXPECT_NEAR(rate_at(4, options), 0.5, kRounding);
    EXPECT_NEAR(rate_at(5, options), 0.6, kRounding);
    EXPECT_NEAR(rate_at(6, options), 0.1, kRounding);
  }
}

// In f32 the steps 2^24 and 2^24 + 1 are the same number.
TEST(Schedule, TellsLateStepsApart) {
  const ScheduleOptions options{"cosine", 1, 0, 0, 1 << 25};
  const double step = 1 << 24;
  EXPECT_NEAR(rate_at(step, options) - rate_at(step + 1, options), std::acos(-1) / (1 << 26),
              2e-16);
}

// PyTorch's schedulers, and warm-up stable decay by its formula (tools/golden/optimizers.py).
TEST(Schedule, EqualsPyTorch) {
  const nlohmann::json golden = read_golden("optimizers.json");
  ASSERT_EQ(golden["schedules"].size(), 4U);
  for (const auto& schedule : golden["schedules"]) {
    const ScheduleOptions options{
        schedule["schedule"],     schedule["learning_rate"], schedule["minimum_learning_rate"],
        schedule["warmup_steps"], schedule["total_steps"],   schedule.value("decay_fraction", 0.2)};
    for (size_t step = 0; step < schedule["rates"].size(); ++step)
      EXPECT_NEAR(rate_at(static_cast<double>(step), options), schedule["rates"][step], 1e-14)
          << options.schedule << " step " << step;
  }
}

TEST(Schedule, OneCycleWithoutARiseBeginsAtTheTop) {
  for (const int64_t warmup : {0, 1})
    EXPECT_NEAR(rate_at(0, {"one_cycle", 0.5, 0.1, warmup, 10}), 0.5, kRounding);
  EXPECT_NEAR(rate_at(1000, {"one_cycle", 0.5, 0.1, 3, 10}), 0.1, kRounding);
}

TEST(Schedule, EveryoneEndsAtTheFloorAndStaysThere) {
  for (const std::string& name : schedule_names()) {
    if (name == "constant" || name == "plateau") continue;
    for (const double step : {50.0, 51.0, 1e6})
      EXPECT_NEAR(rate_at(step, {name, 0.5, 0.125, 5, 50}), 0.125, kRounding) << name;
  }
}

TEST(Schedule, UnknownNameSuggestsTheNearest) {
  EXPECT_EQ(usage_error([] { rate_at(0, {.schedule = "cosin"}); }),
            "unknown schedule 'cosin'. Did you mean 'cosine'?");
  EXPECT_EQ(usage_error([] { rate_at(0, {.schedule = "constan"}); }),
            "unknown schedule 'constan'. Did you mean 'constant'?");
  EXPECT_EQ(usage_error([] { rate_at(0, {.schedule = "zigzag"}); }), "unknown schedule 'zigzag'.");
}

}  // namespace
}  // namespace fullbore
