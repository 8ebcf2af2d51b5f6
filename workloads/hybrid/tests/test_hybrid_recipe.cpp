#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fullbore/optim/optimizer.h"
#include "golden_hybrid.h"
#include "tests/support/evaluate.h"
#include "tests/support/interpret_by_name.h"
#include "workloads/hybrid/initial.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

TEST(HybridRecipe, TheRateBeginsAtZero) {
  const auto rate_at = [](double step, double peak) {
    return evaluate({integers(DType::i64, {}, {step})},
                    [&](GraphBuilder&, const std::vector<Tensor>& inputs) {
                      return scheduled_learning_rate(
                          inputs[0], {"cosine", peak, peak / 10, 500, 5000, 0.2, true});
                    })
        .at(0);
  };
  const double expected[][2] = {{0, 0},      {1, 6e-7},       {250, 1.5e-4},
                                {500, 3e-4}, {2750, 1.65e-4}, {5000, 3e-5}};
  for (const auto& [step, rate] : expected) {
    EXPECT_NEAR(rate_at(step, 3e-4), rate, 1e-15) << step;
    EXPECT_NEAR(rate_at(step, 1.5e-4), 0.5 * rate, 1e-15) << step;
  }
}

/// An update of a, b and c whose gradients are given, and what it tells.
std::map<std::string, Literal> update(std::vector<double> gradients,
                                      const OptimizerOptions& options) {
  Trace trace("train", true);
  Tensor loss;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Tensor w =
        trace.parameter(std::string(1, static_cast<char>('a' + i)), {4}, Initializer::ones());
    const Tensor part = reduce_sum(w * gradients[i], {0});
    loss = loss.valid() ? loss + part : part;
  }
  const OptimizerResult result = optimize(trace, loss, options);
  for (const auto& [name, metric] : result.metrics) trace.result(name, metric);
  return interpret_by_name(trace.finish(), {});
}

TEST(HybridRecipe, GradientsOfTheBranchesAreCompared) {
  const OptimizerOptions options{.ratios = {{"ratio", "a", "d*"}}};
  EXPECT_THAT(usage_error([&] { update({1, 1, 1}, options); }), HasSubstr("no parameter matches"));
  const auto ratio = [](std::vector<double> gradients, const char* name = "ratio") {
    return update(std::move(gradients), {.ratios = {{"ratio", "a", "b"}}}).at(name).at(0);
  };
  EXPECT_NEAR(ratio({3, 2}), 1.5, 1e-6);
  EXPECT_NEAR(ratio({1e6, 2}), 5e5, 1);  // before clipping
  EXPECT_EQ(ratio({0, 0}), 1);
  EXPECT_EQ(ratio({1, 0}), std::numeric_limits<double>::infinity());
  EXPECT_EQ(ratio({0, 1}), 0);
  EXPECT_NEAR(ratio({3, 2}, "ratio/per_parameter"), 1.5, 1e-6);
  const auto all = update({3, 2, 2}, {.ratios = {{"ratio", "a", "*"}}});
  EXPECT_NEAR(all.at("ratio").at(0), 3 / std::sqrt(17.0), 1e-6);
  EXPECT_NEAR(all.at("ratio/per_parameter").at(0), 3 / std::sqrt(17.0) * std::sqrt(3.0), 1e-6);
}

TEST(HybridRecipe, VectorsDecayOnlyWhereAllDo) {
  const Literal ones = Literal::of({DType::f32, {4}}, {1, 1, 1, 1});
  for (const bool all : {false, true}) {
    Trace step("train", true);
    const Tensor w = step.parameter("w", {4}, Initializer::ones());
    optimize(step, reduce_sum(w * 0.0, {0}),
             {.schedule = {"constant", 0.1, 0, 0, 1}, .weight_decay = 0.5, .decays_all = all});
    EXPECT_NEAR(interpret_by_name(step.finish(), {{"w", ones}}).at("w").at(0), all ? 0.95 : 1,
                1e-7);
  }
}

// --- first values --------------------------------------------------------------------------------------

/// How the model's parameters start.
std::map<std::string, Initializer> initializers_of(const HybridConfig& config) {
  Trace trace("t", true);
  hybrid(trace, {.tokens = trace.batch("tokens", {DType::i32, {1, 3}})}, config);
  return trace.initializers();
}

double deviation_of(const Initializer& initializer) {
  EXPECT_EQ(initializer.kind, Initializer::Kind::normal);
  return initializer.b;
}

TEST(HybridInit, ProjectionsAreOrthogonalUnlessToldOtherwise) {
  HybridConfig config{.vocabulary = 97};
  const auto made = initializers_of(config);
  using Kind = Initializer::Kind;
  for (const auto& [name, gain] : {std::pair("receptance", 1.0), std::pair("value", 1.0),
                                   std::pair("key", 0.1), std::pair("gate", 0.1)}) {
    const Initializer& each = made.at(std::string("layers.3.rwkv.") + name + ".weight");
    EXPECT_EQ(each.kind, Kind::orthogonal);
    EXPECT_EQ(each.a, gain);
  }
  // A norm stands behind it.
  EXPECT_DOUBLE_EQ(deviation_of(made.at("layers.3.rwkv.output.weight")), 0.02 / 4);
  config.fusion = HybridFusion::gate;
  EXPECT_EQ(initializers_of(config).at("layers.3.rwkv.output.weight").kind, Kind::zeros);
  config.rwkv_lm_init = false;
  EXPECT_EQ(deviation_of(initializers_of(config).at("layers.3.rwkv.key.weight")), 0.02);
}

TEST(HybridInit, GatesStartAsIntendedOrAsRecorded) {
  HybridConfig config{.vocabulary = 97, .gate_start = 0.3};
  config.fusion = HybridFusion::gate;
  using Kind = Initializer::Kind;
  EXPECT_EQ(initializers_of(config).at("layers.0.gate.weight").kind, Kind::zeros);
  EXPECT_NEAR(initializers_of(config).at("layers.0.gate.bias").values[0], -0.8473, 1e-4);
  config.fusion = HybridFusion::channel_gate;
  EXPECT_NEAR(initializers_of(config).at("layers.0.gate.weight").b, 0.1 * std::sqrt(6.0 / 384),
              1e-12);
  EXPECT_NEAR(initializers_of(config).at("layers.0.gate.bias").values[77], -0.8473, 1e-4);
  config.recorded_init = true;
  EXPECT_EQ(deviation_of(initializers_of(config).at("layers.0.gate.weight")), 0.02);
  EXPECT_EQ(initializers_of(config).at("layers.0.gate.bias").values[77], 0);
  config.fusion = HybridFusion::gate;
  EXPECT_EQ(deviation_of(initializers_of(config).at("layers.0.gate.weight")), 0.02);
  EXPECT_NEAR(initializers_of(config).at("layers.0.gate.bias").values[0], -0.8473, 1e-4);
  config.fusion = HybridFusion::residual;
  EXPECT_EQ(deviation_of(initializers_of(config).at("layers.0.mamba_projection.weight")), 0.02);
  config.recorded_init = false;
  EXPECT_EQ(deviation_of(initializers_of(config).at("layers.0.mamba_projection.weight")), 0.01);
  config.fusion = HybridFusion::projection;
  EXPECT_EQ(deviation_of(initializers_of(config).at("layers.0.projection.weight")), 0.02);
  config.fusion = HybridFusion::weighted_sum;
  EXPECT_EQ(initializers_of(config).at("layers.0.share").values, std::vector<double>{0.5});
}

TEST(HybridInit, AGateIsNeitherOpenNorShut) {
  for (const double start : {0.0, 1.0, -1.0, std::nan("")})
    EXPECT_THAT(
        usage_error([&] {
          initializers_of({.fusion = HybridFusion::gate, .vocabulary = 5, .gate_start = start});
        }),
        HasSubstr("a gate cannot start at"));
}

TEST(HybridInit, RecordedRunsHadNormalMatricesAndDrawnSteps) {
  const auto made = initializers_of({.vocabulary = 97, .recorded_init = true});
  for (const char* name : {"receptance.weight", "key.weight", "value.weight", "gate.weight",
                           "output.weight", "mix.down", "mix.up", "decay.down", "decay.up"})
    EXPECT_EQ(deviation_of(made.at(std::string("layers.3.rwkv.") + name)), 0.02) << name;
  for (const char* name : {"mamba.input.weight", "mamba.output.weight", "up.weight"})
    EXPECT_EQ(deviation_of(made.at(std::string("layers.3.") + name)), 0.02) << name;
  std::vector<float> biases(4000), decays(4000);
  const TensorType type{DType::f32, {4000}};
  initialize(made.at("layers.3.mamba.step_bias"), type, 1, "b", biases.data());
  initialize(made.at("layers.3.mamba.decay"), type, 1, "d", decays.data());
  double mean_of_logs = 0, mean_decay = 0;
  for (size_t i = 0; i < biases.size(); ++i) {
    const double step = std::log1p(std::exp(biases[i])), decay = std::exp(decays[i]);
    ASSERT_GE(step, 0.000999);
    ASSERT_LE(step, 0.1001);
    ASSERT_GE(decay, 0.9999);
    ASSERT_LE(decay, 16.001);
    mean_of_logs += std::log(step) / 4000;
    mean_decay += decay / 4000;
  }
  EXPECT_NEAR(mean_of_logs, std::log(0.01), 5 * std::log(100) / std::sqrt(12 * 4000.0));
  EXPECT_NEAR(mean_decay, 8.5, 5 * 15 / std::sqrt(12 * 4000.0));
}

}  // namespace
}  // namespace fullbore
