#include <gtest/gtest.h>

#include <cmath>

#include "fullbore/optim/optimizer.h"
#include "fullbore/optim/schedule.h"
#include "tests/support/evaluate.h"
#include "workloads/peptide/tests/traced.h"

namespace fullbore::peptide {
namespace {

using testing::literal;

TEST(Recipe, TheRateFallsByHalfACosine) {
  const ScheduleOptions options{"cosine", 1e-4, 1e-6, 0, 50'000};
  const auto rate_at = [&](double step) {
    return evaluate({integers(DType::i64, {}, {step})},
                    [&](GraphBuilder&, const std::vector<Tensor>& inputs) {
                      return scheduled_learning_rate(inputs[0], options);
                    })
        .at(0);
  };
  EXPECT_NEAR(rate_at(0), 1e-4, 1e-15);
  EXPECT_NEAR(rate_at(12'500), 8.550179e-5, 5e-12);
  EXPECT_NEAR(rate_at(25'000), 5.05e-5, 1e-15);
  EXPECT_NEAR(rate_at(50'000), 1e-6, 1e-15);
}

/// One update of a parameter of ones whose gradient is `slope`, without a learning rate: what becomes of the average.
std::map<std::string, Literal> update(double average, double slope, bool warms_up) {
  Trace trace("train", true);
  const Tensor parameter = trace.parameter("w", {1}, Initializer::ones());
  const Tensor loss = reduce_sum(parameter * slope, {0});
  const OptimizerResult result = optimize(trace, loss,
                                          {.schedule = {"constant", 0, 0, 0, 1},
                                           .clip_norm = 1,
                                           .ema_decay = 0.999,
                                           .ema_warms_up = warms_up});
  trace.result("norm", result.gradient_norm);
  return interpret_by_name(trace.finish(),
                           {{"w", literal({DType::f32, {1}}, {1})},
                            {ema_name("w"), literal({DType::f32, {1}}, {average})}});
}

TEST(Recipe, TheAverageHasNoWarmUp) {
  double average = 0;
  for (int step = 0; step < 1000; ++step)
    average = update(average, 1, false).at(ema_name("w")).at(0);
  EXPECT_NEAR(average, 0.6323046, 5e-6);  // 0.999 is an f32
  // With one it follows at once: its decay is a tenth in the first step.
  EXPECT_GT(update(0, 1, true).at(ema_name("w")).at(0), 0.85);
}

TEST(Recipe, ClippingDividesByALittleMoreThanTheNorm) {
  const double slope = 5;
  EXPECT_NEAR(1 / (slope + 1e-6), 0.2, 1e-7);
  EXPECT_NEAR(update(0, slope, false).at("norm").at(0), slope, 1e-6);
  // The first moment is what is left of the gradient, times 1 - beta1.
  const auto results = update(0, slope, false);
  bool found = false;
  for (const auto& [name, value] : results)
    if (name.find("moment") != std::string::npos && std::abs(value.at(0) - 0.1) < 1e-4)
      found = true;
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace fullbore::peptide
