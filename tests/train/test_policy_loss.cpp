#include "fullbore/train/policy_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "fullbore/autodiff/backward.h"
#include "tests/support/evaluate.h"

/// A worked example: four completions of one prompt.
namespace fullbore {
namespace {

using Aggregation = PolicyLossOptions::Aggregation;

constexpr int64_t kRows = 4;
constexpr int64_t kTokens = 4;
// Behind a row's end stands what must count for nothing, whatever it is.
constexpr double kNone = std::numeric_limits<double>::infinity();

const std::vector<double> kNew = {-0.50, -1.20, -0.10, kNone, -2.00, -0.70, kNone, kNone,
                                  -0.30, -0.90, -1.60, -0.05, -0.80, -0.40, -2.20, kNone};
const std::vector<double> kOld = {-0.55, -1.00, -0.12, kNone, -1.70, -0.75, kNone, kNone,
                                  -0.35, -1.20, -1.50, -0.05, -0.60, -0.45, -2.60, kNone};
const std::vector<double> kReference = {-0.60, -1.10, -0.10, kNone, -1.60, -0.80, kNone, kNone,
                                        -0.50, -1.10, -1.40, -0.06, -0.90, -0.50, -2.40, kNone};
const std::vector<double> kEven = {1.14720706, -0.27314454, -1.22004560, 0.34598308};

struct Made {
  double loss = 0;
  std::map<std::string, double> metrics;
  Literal gradient = reals({1}, {0});
};

Made made(const std::vector<double>& advantages, const PolicyLossOptions& options, double penalty) {
  Made result;
  std::vector<std::string> names;
  const std::vector<Literal> inputs = {reals({kRows, kTokens}, kNew), reals({kRows, kTokens}, kOld),
                                       reals({kRows, kTokens}, kReference),
                                       reals({kRows}, advantages)};
  const std::vector<Literal> values =
      evaluate_all(inputs, [&](GraphBuilder& builder, const std::vector<Tensor>& x) {
        const auto narrow = [&](size_t i) { return cast(x[i], DType::f32); };
        std::vector<double> lengths;
        for (const double length : {3, 2, 4, 3})
          for (int t = 0; t < kTokens; ++t) lengths.push_back(t < length ? 1 : 0);
        const Tensor policy = narrow(0);
        const Loss loss =
            policy_loss({.log_probability = policy,
                         .entropy = neg(policy),
                         .counted = constant(builder, {DType::boolean, {kRows, kTokens}}, lengths),
                         .old = narrow(1),
                         .reference = narrow(2),
                         .advantage = narrow(3),
                         .penalty = full(builder, {DType::f32, {}}, penalty)},
                        options);
        std::vector<Tensor> results = {loss.mean};
        const std::vector<Tensor> wanted = {policy};
        results.push_back(gradient(loss.mean, wanted)[0]);
        for (const Metric& metric : loss.metrics) {
          names.push_back(metric.name);
          results.push_back(metric.mean);
        }
        return results;
      });
  result.loss = values[0].at(0);
  result.gradient = values[1];
  for (size_t i = 0; i < names.size(); ++i) result.metrics[names[i]] = values[i + 2].at(0);
  return result;
}

TEST(PolicyLoss, IsTheExamplesByEveryAggregation) {
  constexpr double kClose = 2e-7;
  EXPECT_NEAR(made(kEven, {}, 0.04).loss, 0.0274898133, kClose);
  EXPECT_NEAR(made({1.32464329, -0.31539126, -1.40874762, 0.39949560}, {}, 0.04).loss, 0.0316242703,
              kClose);
  EXPECT_NEAR(
      made({0.63, -0.15, -0.67, 0.19}, {.aggregation = Aggregation::fixed, .longest = 8}, 0.04)
          .loss,
      0.0239475005, kClose);
  const PolicyLossOptions tokens = {.aggregation = Aggregation::tokens, .clip_high = 0.28};
  EXPECT_NEAR(made(kEven, tokens, 0.04).loss, 0.1134493198, kClose);
  EXPECT_NEAR(made(kEven, tokens, 0).loss, 0.1128026860, kClose);
  EXPECT_NEAR(made(kEven, {.ratio = PolicyLossOptions::Ratio::sequence}, 0).loss, 0.01629353,
              kClose);
}

TEST(PolicyLoss, HasTheExamplesGradient) {
  const Literal slopes = made(kEven, {}, 0.04).gradient;
  const std::vector<double> expected = {
      -0.10018493, -0.07862171, -0.09753185, 0,          -0.00245912, 0.03636943,  0,          0,
      0.08061559,  0.10338375,  0.06844292,  0.07627773, -0.02328837, -0.02999296, 0.00060423, 0};
  for (int64_t i = 0; i < kRows * kTokens; ++i)
    EXPECT_NEAR(slopes.at(i), expected[static_cast<size_t>(i)], 1e-7) << i;
}

TEST(PolicyLoss, TellsWhatOneLooksAt) {
  const std::map<std::string, double> metrics = made(kEven, {}, 0.04).metrics;
  EXPECT_NEAR(metrics.at("kl"), 0.01616584, 1e-7);
  EXPECT_NEAR(metrics.at("kl1"), 0.02583333, 1e-7);
  EXPECT_NEAR(metrics.at("kl2"), 0.01542083, 1e-7);
  // The second token of row 2 has ratio 1.35 and a negative advantage: it is not clipped.
  EXPECT_NEAR(metrics.at("clipped_low"), 1.0 / 12, 1e-7);
  EXPECT_NEAR(metrics.at("clipped_high"), 1.0 / 12, 1e-7);
  EXPECT_NEAR(metrics.at("largest_log_ratio"), 0.4, 1e-6);
  EXPECT_NEAR(metrics.at("entropy"), 10.75 / 12, 1e-6);
}

// At the first update the ratios are 1: the loss is minus the mean advantage, and what is left is its gradient.
TEST(PolicyLoss, BeginsAtMinusTheMeanAdvantage) {
  const std::vector<Literal> values = evaluate_all(
      {reals({2, 2}, {-1, -2, -3, -4})}, [](GraphBuilder& builder, const std::vector<Tensor>& x) {
        const Tensor policy = cast(x[0], DType::f32);
        const Loss loss =
            policy_loss({.log_probability = policy,
                         .entropy = zeros_like(policy),
                         .counted = constant(builder, {DType::boolean, {2, 2}}, {1, 1, 0, 0}),
                         .old = policy,
                         .reference = {},
                         .advantage = constant(builder, {DType::f32, {2}}, {0.75, 100}),
                         .penalty = {}},
                        {});
        const std::vector<Tensor> wanted = {policy};
        return std::vector<Tensor>{loss.mean, loss.predictions, gradient(loss.mean, wanted)[0]};
      });
  EXPECT_EQ(values[0].at(0), -0.75);
  EXPECT_EQ(values[1].at(0), 1) << "rows with a token";
  EXPECT_EQ(values[2].at(0), -0.375);
  EXPECT_EQ(values[2].at(2), 0);
}

TEST(PolicyLoss, OfNoTokensIsNothing) {
  const std::vector<Literal> values =
      evaluate_all({reals({1, 2}, {-1, -2})}, [](GraphBuilder& builder, const auto& x) {
        const Tensor policy = cast(x[0], DType::f32);
        const Loss loss =
            policy_loss({.log_probability = policy,
                         .entropy = policy,
                         .counted = constant(builder, {DType::boolean, {1, 2}}, {0, 0}),
                         .old = policy,
                         .reference = policy,
                         .advantage = constant(builder, {DType::f32, {1}}, {1}),
                         .penalty = full(builder, {DType::f32, {}}, 0.1)},
                        {.entropy = 0.01});
        return std::vector<Tensor>{loss.mean, loss.predictions};
      });
  EXPECT_EQ(values[0].at(0), 0);
  EXPECT_EQ(values[1].at(0), 0);
}

}  // namespace
}  // namespace fullbore
