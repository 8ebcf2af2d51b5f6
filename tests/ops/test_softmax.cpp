#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fullbore/ops/ops.h"
#include "tests/ops/differentiate.h"
#include "tests/support/gradcheck.h"

/// softmax, its logarithm, log_sum_exp and cross_entropy.
namespace fullbore {
namespace {

using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;

constexpr double kInfinity = HUGE_VAL;

Literal on(const Literal& x, const std::function<Tensor(Tensor)>& f) {
  return evaluate({x}, [&](GraphBuilder&, const auto& in) { return f(in[0]); });
}
Literal slope(const Literal& x, const Literal& dy, const std::function<Tensor(Tensor)>& f) {
  return differentiate({x}, dy, [&](GraphBuilder&, const auto& in) { return f(in[0]); })[0];
}
Tensor rows_softmax(Tensor x) { return softmax(x); }

TEST(Softmax, IsItsDefinition) {
  const Literal x = reals({2, 2}, {0, std::log(3), std::log(4), 0});
  EXPECT_THAT(elements(on(x, rows_softmax)),
              ElementsAre(DoubleEq(0.25), DoubleEq(0.75), DoubleEq(0.8), DoubleEq(0.2)));
  EXPECT_THAT(elements(on(x, [](Tensor in) { return softmax(in, 0); })),
              ElementsAre(DoubleEq(0.2), DoubleEq(0.75), DoubleEq(0.8), DoubleEq(0.25)));
}

TEST(Softmax, RowsSumToOneWhateverTheirSize) {
  const Literal x = random_literal({DType::f64, {7, 129}}, 1, 0);
  for (const double scale : {1e-3, 1.0, 30.0, 1000.0}) {
    const Literal y = on(x, [&](Tensor in) { return softmax(in * scale); });
    for (int64_t row = 0; row < 7; ++row) {
      double sum = 0;
      for (int64_t i = 0; i < 129; ++i) sum += y.at(row * 129 + i);
      EXPECT_NEAR(sum, 1, 1e-13);
    }
  }
}

TEST(Softmax, DoesNotChangeWithACommonShift) {
  const Literal x = random_literal({DType::f64, {3, 8}}, 2, 0);
  const std::vector<double> plain = elements(on(x, rows_softmax));
  const std::vector<double> shifted =
      elements(on(x, [](Tensor in) { return softmax(in + 512.0); }));
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(shifted[i], plain[i], 1e-12);
}

TEST(Softmax, NeitherOverflowsNorUnderflows) {
  const Literal x = reals({2, 3}, {1000, -1000, 1000, -1000, -1000, -1001});
  EXPECT_THAT(elements(on(x, rows_softmax)),
              ElementsAre(0.5, 0, 0.5, DoubleEq(1 / (2 + std::exp(-1))),
                          DoubleEq(1 / (2 + std::exp(-1))), DoubleEq(1 / (2 * M_E + 1))));
}

TEST(Softmax, OfARowWithoutFiniteElementsIsZeroWithZeroGradient) {
  const Literal x = reals({2, 2}, {-kInfinity, -kInfinity, -kInfinity, 3});
  EXPECT_THAT(elements(on(x, rows_softmax)), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(elements(slope(x, reals({2, 2}, {1, 2, 3, 4}), rows_softmax)), Each(0));
  const Literal dx = slope(x, reals({2}, {5, 7}), [](Tensor in) { return log_sum_exp(in); });
  EXPECT_THAT(elements(dx), ElementsAre(0, 0, 0, 7));
}

TEST(LogSoftmax, IsTheLogarithmWithoutItsLosses) {
  const Literal x = reals({1, 3}, {0, 1000, -1000});
  const auto f = [](Tensor in) { return log_softmax(in); };
  EXPECT_THAT(elements(on(x, f)), ElementsAre(-1000, 0, -2000));
  EXPECT_THAT(elements(slope(x, reals({1, 3}, {1, 1, 1}), f)), ElementsAre(1, -2, 1));
}

TEST(LogSumExp, KeepsInfinities) {
  const Literal x = reals({4, 2}, {0, 0, -kInfinity, -kInfinity, kInfinity, 1, -kInfinity, 5});
  EXPECT_THAT(elements(on(x, [](Tensor in) { return log_sum_exp(in); })),
              ElementsAre(DoubleEq(std::log(2)), -kInfinity, kInfinity, 5));
  EXPECT_THAT(elements(on(reals({2, 0}, {}), [](Tensor in) { return log_sum_exp(in); })),
              Each(-kInfinity));
}

// --- cross_entropy --------------------------------------------------------------------------------
Literal targets(std::vector<double> values) {
  const auto count = static_cast<int64_t>(values.size());
  return integers(DType::i32, {count}, std::move(values));
}
Tensor loss(GraphBuilder&, const std::vector<Tensor>& x) { return cross_entropy(x[0], x[1]); }

TEST(CrossEntropy, IsMinusTheLogSoftmaxOfTheTarget) {
  const Literal logits = random_literal({DType::f64, {6, 11}}, 3, 0);
  const Literal labels = targets({0, 10, 3, 3, 7, 5});
  const Literal y = evaluate({logits, labels}, loss);
  const Literal expected = evaluate({logits, labels}, [](GraphBuilder&, const auto& x) {
    return neg(squeeze(take_along_axis(log_softmax(x[0]), expand_dims(x[1], -1), 1), -1));
  });
  for (int64_t i = 0; i < 6; ++i) EXPECT_NEAR(y.at(i), expected.at(i), 1e-13);
}

TEST(CrossEntropy, OfEqualLogitsIsTheLogarithmOfTheirNumber) {
  const Literal y = evaluate({reals({1, 65}, std::vector<double>(65, 3)), targets({4})}, loss);
  EXPECT_NEAR(y.at(0), std::log(65), 1e-14);
}

TEST(CrossEntropy, IsRightFarOut) {
  const Literal logits = reals({3, 2}, {1000, -1000, 1000, -1000, 1e6, 1e6});
  const Literal y = evaluate({logits, targets({0, 1, 1})}, loss);
  EXPECT_THAT(elements(y), ElementsAre(0, 2000, DoubleNear(std::log(2), 1e-15)));
}

TEST(CrossEntropy, IgnoresRowsWithoutATargetExactly) {
  const Literal logits = reals({4, 2}, {NAN, 1, kInfinity, 2, 0, 0, 5, NAN});
  const Literal labels = targets({-1, 2, 1, -100});
  EXPECT_THAT(elements(evaluate({logits, labels}, loss)),
              ElementsAre(0, 0, DoubleEq(std::log(2)), 0));
  EXPECT_THAT(elements(differentiate({logits, labels}, reals({4}, {1, 1, 2, 1}), loss)[0]),
              ElementsAre(0, 0, 0, 0, 1, -1, 0, 0));
}

TEST(CrossEntropy, OfNarrowLogitsIsF32) {
  GraphBuilder builder;
  const Tensor labels = builder.input("t", Role::batch, {DType::i32, {3}});
  const auto of = [&](DType dtype) {
    return cross_entropy(
        builder.input(std::string(dtype_name(dtype)), Role::batch, {dtype, {3, 5}}), labels);
  };
  EXPECT_EQ(of(DType::bf16).dtype(), DType::f32);
  EXPECT_EQ(of(DType::f32).dtype(), DType::f32);
  EXPECT_EQ(of(DType::f64).dtype(), DType::f64);
}

}  // namespace
}  // namespace fullbore
