// The scale of the loss: how it moves, and that it leaves the update alone.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fullbore/optim/optimizer.h"
#include "tests/optim/replayed.h"

namespace fullbore {
namespace {

const std::map<std::string, Shape> kShapes = {{"w", {2, 3}}};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Graph step_of(const LossScaling& scaling) {
  Trace trace("step", true);
  const OptimizerResult result =
      optimize(trace, loss_of_given_gradients(trace, kShapes),
               {.schedule = {"constant", 0.1, 0.1, 0, 9}, .clip_norm = 1, .loss_scaling = scaling});
  trace.result("skipped", result.skipped);
  trace.result("gradient_norm", result.gradient_norm);
  for (const auto& [name, metric] : result.metrics) trace.result(name + " metric", metric);
  return trace.finish();
}

Literals start(double scale) {
  Literals result;
  result["w"] = Literal::of({DType::f32, {2, 3}}, {1, -2, 3, -4, 5, -6});
  if (scale > 0) result["loss_scale"] = Literal::scalar(DType::f32, scale);
  return result;
}

Literals batch(double gradient) {
  Literals result;
  result["gradient.w"] = Literal::of({DType::f32, {2, 3}}, {1, 2, 3, gradient, 5, 6});
  return result;
}

TEST(LossScaling, FallsWhenAStepIsSkippedAndGrowsAfterAnInterval) {
  const LossScaling scaling{.initial = 1024, .growth = 4, .backoff = 0.5, .interval = 3};
  const auto replayed = compiled(step_of(scaling), start(1024));
  struct Step {
    double gradient, scale_after, finite_steps_after;
  };
  const Step steps[] = {{1, 1024, 1}, {kInfinity, 512, 0}, {kInfinity, 256, 0},
                        {1, 256, 1},  {1, 256, 2},         {1, 1024, 0},
                        {1, 1024, 1}, {kInfinity, 512, 0}};
  double scale = 1024;
  for (const Step& step : steps) {
    const Literals found = replayed->step(batch(step.gradient));
    EXPECT_EQ(found.at("loss_scale metric").at(0), scale) << "the step's own";
    EXPECT_EQ(found.at("loss_scale").at(0), step.scale_after);
    EXPECT_EQ(found.at("finite_steps").at(0), step.finite_steps_after);
    EXPECT_EQ(found.at("skipped").at(0), step.gradient == kInfinity);
    scale = step.scale_after;
  }
}

TEST(LossScaling, NeverFallsBelowOne) {
  const LossScaling scaling{.initial = 2, .backoff = 0.5};
  const auto replayed = compiled(step_of(scaling), start(2));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(replayed->step(batch(kInfinity)).at("loss_scale").at(0), 1);
}

// Of a loss that no parameter changes any more every step is finite.
TEST(LossScaling, StaysFinite) {
  const LossScaling scaling{.initial = 65536, .growth = 65536, .backoff = 0.5, .interval = 1};
  const auto replayed = compiled(step_of(scaling), start(65536));
  Literals nothing;
  nothing["gradient.w"] = Literal({DType::f32, {2, 3}});
  for (int i = 0; i < 10; ++i) {
    const Literals found = replayed->step(nothing);
    EXPECT_EQ(found.at("skipped").at(0), 0);
    EXPECT_TRUE(std::isfinite(found.at("loss_scale").at(0)));
  }
  const double highest = replayed->step(nothing).at("loss_scale").at(0);
  EXPECT_EQ(highest, 0x1p100);
  EXPECT_EQ(replayed->step(batch(kInfinity)).at("loss_scale").at(0), highest / 2);
}

TEST(LossScaling, ByPowersOfTwoChangesNoBit) {
  const auto plain = compiled(step_of({}), start(0));
  const auto scaled = compiled(step_of({.initial = 65536, .interval = 2}), start(65536));
  for (int step = 0; step < 5; ++step) {
    const Literals a = plain->step(batch(0.1 * step));
    const Literals b = scaled->step(batch(0.1 * step));
    for (const auto& [name, value] : a) EXPECT_EQ(value.bytes(), b.at(name).bytes()) << name;
  }
}

TEST(LossScaling, OffLeavesNothingInTheGraph) {
  const Graph graph = step_of({});
  EXPECT_EQ(graph.find_input("loss_scale"), -1);
  EXPECT_EQ(graph.find_output("loss_scale metric"), -1);
}

}  // namespace
}  // namespace fullbore
