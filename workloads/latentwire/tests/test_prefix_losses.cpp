#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "fullbore/device/interpret.h"
#include "tests/support/evaluate.h"
#include "tests/support/gradcheck.h"
#include "workloads/latentwire/prefix_losses.h"

namespace fullbore::latentwire {
namespace {

Literal f32_literal(const Shape& shape, const std::vector<float>& values) {
  Literal literal({DType::f32, shape});
  for (size_t i = 0; i < values.size(); ++i) literal.put(static_cast<int64_t>(i), values[i]);
  return literal;
}

double number(const std::vector<Literal>& inputs, const BuildOne& build) {
  return elements(evaluate(inputs, build))[0];
}

// Check 3 of the specification.
const std::vector<double> kLogits = {1,   0,  -1,  .5, .2, .1, 0, -.3, 2, -1, 0, 0,
                                     -.5, .5, 1.5, 0,  0,  1,  0, -1,  0, 0,  0, 0};
const std::vector<AnswerLength> kAnswers = {{3, 0}, {2, 0}};

double loss_of(const std::vector<float>& factors) {
  return number({reals({2, 3, 4}, kLogits), integers(DType::i32, {2, 3}, {0, 3, 1, 2, 1, -1}),
                 f32_literal({2, 3}, factors)},
                [](GraphBuilder&, const std::vector<Tensor>& given) {
                  return factored_sum(cross_entropy(given[0], given[1]), given[2]);
                });
}

TEST(PrefixLosses, AreThoseOfTheSpecification) {
  const AnswerFactors two = answer_factors(kAnswers, 3, 2);
  const double all = loss_of(two.all), first = loss_of(two.first), early = loss_of(two.early);
  EXPECT_NEAR(all, 1.380015, 1e-6);
  EXPECT_NEAR(first, 0.646287, 1e-6);
  EXPECT_NEAR(early, 0.905525, 1e-6);
  EXPECT_NEAR(all + .5 * first + .5 * early, 2.155921, 1e-6);
  for (const int64_t most : {3, 4})
    EXPECT_NEAR(loss_of(answer_factors(kAnswers, 3, most).early), 1.696343, 1e-6);
}

TEST(PrefixLosses, EmptyPlacesCountForNothing) {
  const AnswerFactors factors = answer_factors(std::vector<AnswerLength>{{1, 0}, {0, 0}}, 3, 3);
  EXPECT_EQ(factors.early, (std::vector<float>{1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(factors.all, (std::vector<float>{1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(factors.first, (std::vector<float>{.5F, 0, 0, 0, 0, 0}));
  EXPECT_EQ(answer_factors(std::vector<AnswerLength>{{3, 2}}, 3, 1).first,
            (std::vector<float>{0, 0, 1}));
}

// Check 13: losses {1.2} and {.4, .8, .6} of microbatches make .75, not .9; any division makes the same sum.
TEST(PrefixLosses, AreCountedByTheTokensOfTheWholeBatch) {
  const AnswerFactors factors = answer_factors(std::vector<AnswerLength>{{1, 0}, {3, 0}}, 3, 4);
  const float losses[] = {1.2F, 9, 9, .4F, .8F, .6F};
  double first = 0, second = 0;
  for (size_t i = 0; i < 6; ++i) (i < 3 ? first : second) += losses[i] * factors.all[i];
  EXPECT_NEAR(first + second, .75, 1e-7);
}

// What the head makes by tiles is what it makes whole, gradients too.
TEST(PrefixLosses, TiledHeadIsTheWholeOne) {
  Trace trace("t", false);
  const Tensor hidden = trace.batch("hidden", {DType::f64, {2, 3, 5}});
  const Tensor weight = trace.batch("weight", {DType::f64, {4, 5}});
  const Tensor factors = trace.batch("factors", {DType::f64, {2, 3}});
  const Tensor targets =
      constant(trace.builder(), {DType::i32, {2, 3}}, std::vector<double>{0, 3, 1, 2, 1, -1});
  const LanguageModelHead head{hidden, weight};
  trace.result("y", factored_sum(token_losses(trace, head, targets), factors) -
                        tiled_losses(trace, head, targets, factors));
  const Graph graph = trace.finish();
  std::vector<Literal> inputs;
  for (const Graph::Input& input : graph.inputs())
    inputs.push_back(random_literal(graph.type(input.value), 3, inputs.size()));
  EXPECT_NEAR(elements(interpret(graph, inputs)[0])[0], 0, 1e-12);
  const Graph gradients = gradient_graph(graph, {true, true, false});
  inputs.push_back(reals({}, {1}));
  for (const Literal& each : interpret(gradients, inputs))
    for (const double value : elements(each)) EXPECT_NEAR(value, 0, 1e-12);
}

// Check 4 of the specification.
TEST(PrefixLosses, DistillFromTheTeacherToTheStudent) {
  const Literal teacher = reals({1, 2, 4}, {2, 0, 0, -1, 0, 0, 0, 0});
  const Literal student = reals({1, 2, 4}, {1, 0, -1, .5, .2, .1, 0, -.3});
  const auto loss = [&](const std::vector<float>& factors, double temperature) {
    return number({teacher, student, f32_literal({1, 2}, factors)},
                  [&](GraphBuilder&, const std::vector<Tensor>& given) {
                    return distillation(given[0], given[1], given[2], temperature);
                  });
  };
  EXPECT_NEAR(loss({1, 0}, 1), 0.271837, 1e-6);
  EXPECT_NEAR(loss({0, 1}, 1), 0.016708, 1e-6);
  EXPECT_NEAR(loss({1, 0}, 2), 0.416429, 1e-6);
  EXPECT_NEAR(loss({0, 1}, 2), 0.017113, 1e-6);
  EXPECT_NEAR(loss({.5F, .5F}, 2), 0.216771, 1e-6);
}

TEST(PrefixLosses, AutoscaleByTheRatioWithinItsBounds) {
  const auto weight = [](double first, double all) {
    return number({reals({}, {.5}), reals({}, {first}), reals({}, {all})},
                  [](GraphBuilder&, const std::vector<Tensor>& given) {
                    return autoscaled(given[0], given[1], given[2]);
                  });
  };
  EXPECT_NEAR(weight(6, 2), 1.5, 1e-12);
  EXPECT_NEAR(weight(1, 2), .5, 1e-12);
  EXPECT_NEAR(weight(100, 2), 4, 1e-12);
  EXPECT_NEAR(weight(1, 0), 4, 1e-12);
}

TEST(PrefixLosses, OfVectorsAndStatistics) {
  const Literal a = reals({1, 2, 2}, {3, 4, 1, 0}), b = reals({1, 2, 2}, {6, 8, 0, 2});
  const Literal half = f32_literal({1, 2}, {.5F, .5F});
  const auto distance = [&](Distance which) {
    return number({a, b, half}, [&](GraphBuilder&, const std::vector<Tensor>& given) {
      return vector_distance(given[0], given[1], given[2], which);
    });
  };
  EXPECT_NEAR(distance(Distance::cosine), .5 * 0 + .5 * 1, 1e-12);
  EXPECT_NEAR(distance(Distance::squared), .5 * 12.5 + .5 * 2.5, 1e-12);
  EXPECT_NEAR(distance(Distance::both), 8, 1e-12);
  // Means of channels 2, 2 and deviations 1, 2 of the vectors (3, 4), (1, 0).
  EXPECT_NEAR(number({a, reals({2}, {2, 1}), reals({2}, {0, 2})},
                     [](GraphBuilder&, const std::vector<Tensor>& given) {
                       return statistics_distance(given[0], given[1], given[2]);
                     }),
              (0 + 1 + 1 + 0) / 2.0, 1e-12);
  EXPECT_NEAR(number({reals({2, 2}, {0, 0, 0, 1e9})},
                     [](GraphBuilder&, const std::vector<Tensor>& given) {
                       return negative_entropy(given[0]);
                     }),
              -std::log(2) / 2, 1e-6);
  EXPECT_NEAR(number({reals({2}, {1, 3})},
                     [](GraphBuilder& builder, const std::vector<Tensor>& given) {
                       return squared_distance(given[0], full(builder, {DType::f64, {}}, 2));
                     }),
              1, 1e-12);
}

// All that has a gradient, against central differences, and none to what is constant.
TEST(PrefixLosses, HaveTheGradientsOfFiniteDifferences) {
  Trace trace("t", false);
  const auto input = [&](const char* name, Shape shape) {
    return trace.batch(name, {DType::f64, std::move(shape)});
  };
  const Tensor student = input("student", {2, 3, 4}), prefix = input("prefix", {2, 3, 4});
  const Tensor constants = stop_gradient(input("constants", {2, 3, 4}));
  const Tensor factors = stop_gradient(input("factors", {2, 3}));
  const Tensor mean = stop_gradient(input("mean", {4}));
  Tensor sum = distillation(constants, student, factors, 2) +
               state_distillation(constants, prefix, factors) +
               vector_distance(prefix, constants, factors, Distance::both) +
               negative_entropy(reshape(student, {6, 4})) +
               statistics_distance(prefix, mean, exp(mean));
  trace.result("y", sum);
  GradcheckCase check{trace.finish(), {}, {true, true, false, false, false}};
  for (const Graph::Input& each : check.graph.inputs())
    check.inputs.push_back(random_literal(check.graph.type(each.value), 7, check.inputs.size()));
  EXPECT_EQ(gradcheck(check).problem, "");
  EXPECT_NE(gradcheck(check, {.gradient_scale = 1.01}).problem, "");
}

}  // namespace
}  // namespace fullbore::latentwire
