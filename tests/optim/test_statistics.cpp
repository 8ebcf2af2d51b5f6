#include <gtest/gtest.h>

#include <cmath>

#include "fullbore/base/philox.h"
#include "fullbore/optim/optimizer.h"
#include "tests/optim/replayed.h"

namespace fullbore {
namespace {

// A loss linear in the parameter: the gradient of an example is the example itself, so that the
// gradient's mean and covariance are those of the data.
constexpr int64_t kWidth = 16;
constexpr int64_t kBatch = 8;

Graph noise_step() {
  Trace trace("t", true);
  const Tensor w = trace.parameter("w", {kWidth}, Initializer::zeros());
  const Tensor x = trace.batch("x", {DType::f32, {kBatch, kWidth}});
  const auto loss = [&](int64_t begin, int64_t end) {
    return reduce_mean(reduce_sum(slice(x, 0, begin, end) * w, {1}), {0});
  };
  const OptimizerResult result =
      optimize_halves(trace, loss(0, kBatch / 2), loss(kBatch / 2, kBatch), kBatch, {});
  for (const auto& [name, metric] : result.metrics) trace.result(name, metric);
  trace.result("gradient_norm", result.gradient_norm);
  trace.result("skipped", result.skipped);
  return trace.finish();
}

Literals examples(PhiloxStream& draws, double mean, double deviation) {
  std::vector<double> values;
  for (int64_t i = 0; i < kBatch * kWidth; ++i) values.push_back(mean + deviation * draws.normal());
  return {{"x", Literal::of({DType::f32, {kBatch, kWidth}}, values)}};
}

TEST(NoiseScale, OfOneStepIsTheFormula) {
  PhiloxStream draws(3);
  const Literals batch = examples(draws, 0.5, 1);
  const Literals outputs = interpreted(noise_step(), {})->step(batch);
  double halves = 0;
  double whole = 0;
  for (int64_t i = 0; i < kWidth; ++i) {
    double sums[2] = {0, 0};
    for (int64_t row = 0; row < kBatch; ++row)
      sums[row / (kBatch / 2)] += batch.at("x").at(row * kWidth + i);
    for (const double sum : sums) halves += 0.5 * std::pow(sum / (kBatch / 2), 2);
    whole += std::pow((sums[0] + sums[1]) / kBatch, 2);
  }
  EXPECT_NEAR(outputs.at("gradient_norm").at(0), std::sqrt(whole), 1e-9);
  const double expected = kBatch * (halves - whole) / (2 * whole - halves);
  EXPECT_NEAR(outputs.at("gradient_noise_scale").at(0), expected, 1e-6 * std::abs(expected));
  EXPECT_NEAR(outputs.at("noise.trace").at(0), 0.01 * kBatch * (halves - whole), 1e-6);
}

// tr(Sigma) = kWidth deviation^2 and |G|^2 = kWidth mean^2. The averages remember about 100 steps, in
// which the ratio's relative deviation is about sqrt(2 / (100 * 16)) for the trace; 5 of them.
TEST(NoiseScale, ConvergesToTheOneOfTheData) {
  const auto replayed = compiled(noise_step(), {});
  PhiloxStream draws(4);
  Literals outputs;
  for (int step = 0; step < 500; ++step) outputs = replayed->step(examples(draws, 1, 2));
  EXPECT_NEAR(outputs.at("gradient_noise_scale").at(0), 4, 0.7);
}

TEST(NoiseScale, IsNotTouchedByASkippedStep) {
  const auto replayed = compiled(noise_step(), {});
  PhiloxStream draws(4);
  const Literals good = replayed->step(examples(draws, 1, 2));
  const Literals bad = replayed->step(examples(draws, std::nan(""), 1));
  EXPECT_EQ(bad.at("skipped").at(0), 1);
  for (const char* name : {"noise.trace", "noise.squared_norm"})
    EXPECT_EQ(bad.at(name).bytes(), good.at(name).bytes()) << name;
}

const std::map<std::string, Shape> kShapes = {{"a.bias", {2}}, {"a.weight", {2, 2}}, {"b", {1}}};

Graph step_with_norms(const std::string& norms) {
  Trace trace("t", true);
  const OptimizerResult result =
      optimize(trace, loss_of_given_gradients(trace, kShapes),
               {.clip_norm = 1e-3, .groups = {{.match = "a.*"}}, .norms = norms});
  for (const auto& [name, metric] : result.metrics) trace.result(name, metric);
  return trace.finish();
}

TEST(Norms, ArePerGroupOrPerParameterBeforeClipping) {
  const Literals start = {{"a.bias", Literal::of({DType::f32, {2}}, {3, 4})},
                          {"a.weight", Literal::of({DType::f32, {2, 2}}, {0, 12, 0, 0})},
                          {"b", Literal::of({DType::f32, {1}}, {-7})}};
  const Literals batch = {{"gradient.a.bias", Literal::of({DType::f32, {2}}, {2, 3})},
                          {"gradient.a.weight", Literal::of({DType::f32, {2, 2}}, {6, 0, 0, 0})},
                          {"gradient.b", Literal::of({DType::f32, {1}}, {-0.5})}};
  const Literals groups = interpreted(step_with_norms("groups"), start)->step(batch);
  EXPECT_EQ(groups.at("gradient_norm/a.*").at(0), 7);
  EXPECT_EQ(groups.at("gradient_norm/others").at(0), 0.5);
  EXPECT_EQ(groups.at("parameter_norm/a.*").at(0), 13);
  EXPECT_EQ(groups.at("parameter_norm/others").at(0), 7);
  const Literals single = interpreted(step_with_norms("parameters"), start)->step(batch);
  EXPECT_EQ(single.at("gradient_norm/a.weight").at(0), 6);
  EXPECT_EQ(single.at("parameter_norm/a.bias").at(0), 5);
  EXPECT_EQ(single.count("gradient_norm/a.*"), 0U);
}

TEST(Norms, LeaveNothingInTheGraphWhenOff) {
  const Graph off = step_with_norms("off");
  for (const Graph::Output& output : off.outputs()) EXPECT_GE(output.updates, 0) << output.name;
  EXPECT_LT(off.nodes().size(), step_with_norms("groups").nodes().size());
}

}  // namespace
}  // namespace fullbore
