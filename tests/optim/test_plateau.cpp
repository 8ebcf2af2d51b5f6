// The schedule "plateau": when it lowers the rate, and that skipped steps do not count.
#include <gtest/gtest.h>

#include <limits>

#include "fullbore/optim/optimizer.h"
#include "tests/optim/replayed.h"

namespace fullbore {
namespace {

constexpr double kRate = 0.5;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One parameter that does not move the loss, which is the batch input "loss".
Graph step_of(const PlateauOptions& plateau, double floor = 0, int64_t warmup = 0) {
  Trace trace("step", true);
  const Tensor w = trace.parameter("w", {1}, Initializer::zeros());
  const Tensor loss = trace.batch("loss", {DType::f32, {}});
  const OptimizerResult result =
      optimize(trace, loss + reduce_sum(w * 0.0, {0}),
               {.schedule = {"plateau", kRate, floor, warmup, 100}, .plateau = plateau});
  trace.result("rate", result.learning_rate);
  trace.result("skipped", result.skipped);
  return trace.finish();
}

Literals start() {
  Literals result;
  result["plateau.best"] = Literal::scalar(DType::f64, kInfinity);
  result["plateau.factor"] = Literal::scalar(DType::f64, 1);
  return result;
}

std::vector<double> rates(Replayed& replayed, const std::vector<double>& losses) {
  std::vector<double> found;
  for (const double loss : losses) {
    Literals batch;
    batch["loss"] = Literal::scalar(DType::f32, loss);
    found.push_back(replayed.step(batch).at("rate").at(0));
  }
  return found;
}

// torch.optim.lr_scheduler.ReduceLROnPlateau(factor=0.5, patience=2), stepped once for each loss: the rates that the
// steps after it have. 4.9997 is no better than 5 by the threshold of 1e-4, 4.99 is.
TEST(Plateau, LowersTheRateAsPyTorchDoes) {
  const std::vector<double> losses = {5, 4.9997, 5, 5, 5, 4.99, 5, 5, 5, 5, 5, 5, 1};
  const std::vector<double> expected = {0.5,  0.5,  0.5,   0.5,   0.25,  0.25,  0.25,
                                        0.25, 0.25, 0.125, 0.125, 0.125, 0.0625};
  const PlateauOptions options{.factor = 0.5, .patience = 2, .interval = 1};
  EXPECT_EQ(rates(*interpreted(step_of(options), start()), losses), expected);
  EXPECT_EQ(rates(*compiled(step_of(options), start()), losses), expected);
}

TEST(Plateau, ComparesMeansOfIntervals) {
  // Means of three: 2, 2, 1.9, 2, 2.
  const std::vector<double> losses = {1, 2, 3, 3, 2, 1, 1.9, 1.9, 1.9, 2, 2, 2, 1, 1, 4, 9};
  std::vector<double> expected(16, 0.5);
  expected[6] = expected[7] = expected[8] =
      0.05;  // after the second mean, no better than the first
  expected[9] = expected[10] = expected[11] = 0.05;  // after a better one
  expected[12] = expected[13] = expected[14] = 0.005;
  expected[15] = 0.0005;
  const auto replayed = compiled(step_of({.factor = 0.1, .patience = 0, .interval = 3}), start());
  const std::vector<double> found = rates(*replayed, losses);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-7) << i;
}

TEST(Plateau, StopsAtTheFloorAndLeavesTheWarmUpAlone) {
  const auto replayed = compiled(
      step_of({.factor = 0.5, .patience = 0, .interval = 1}, /*floor=*/0.2, /*warmup=*/1), start());
  const std::vector<double> expected = {0.25, 0.5, 0.25, 0.2, 0.2};
  const std::vector<double> found = rates(*replayed, {1, 1, 1, 1, 1});
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-7) << i;
}

TEST(Plateau, SkippedStepsDoNotCount) {
  const PlateauOptions options{.factor = 0.5, .patience = 0, .interval = 2};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto replayed = compiled(step_of(options), start());
  EXPECT_EQ(rates(*replayed, {3, nan, 3, kInfinity, nan, 3, nan, 3, 3}),
            (std::vector<double>{0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25}));
}

}  // namespace
}  // namespace fullbore
