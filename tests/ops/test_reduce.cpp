#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fullbore/ops/ops.h"
#include "tests/ops/differentiate.h"

/// Reductions and running sums, each against what a reader works out by hand.
namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Literal kMatrix = reals({2, 3}, {1, 5, 2, 4, 3, 6});

Literal on(const Literal& x, const std::function<Tensor(Tensor)>& f) {
  return evaluate({x}, [&](GraphBuilder&, const auto& in) { return f(in[0]); });
}
std::vector<double> slope(const Literal& x, const Literal& dy,
                          const std::function<Tensor(Tensor)>& f) {
  return elements(
      differentiate({x}, dy, [&](GraphBuilder&, const auto& in) { return f(in[0]); })[0]);
}

TEST(ReduceSum, RemovesOrKeepsAxes) {
  EXPECT_THAT(elements(on(kMatrix, [](Tensor x) { return reduce_sum(x, {1}); })),
              ElementsAre(8, 13));
  EXPECT_THAT(elements(on(kMatrix, [](Tensor x) { return reduce_sum(x, {0}); })),
              ElementsAre(5, 8, 8));
  EXPECT_THAT(elements(on(kMatrix,
                          [](Tensor x) {
                            return reduce_sum(x, {-1, 0});
                          })),
              ElementsAre(21));
  EXPECT_EQ(on(kMatrix, [](Tensor x) { return reduce_sum(x, {1}, true); }).shape(), (Shape{2, 1}));
  EXPECT_EQ(on(kMatrix, [](Tensor x) { return reduce_sum(x, {1, 0}); }).shape(), Shape{});
}

TEST(ReduceSum, OverNoAxesIsItsOperand) {
  EXPECT_THAT(elements(on(reals({}, {4}), [](Tensor x) { return reduce_sum(x, {}); })),
              ElementsAre(4));
}

TEST(ReduceSum, OfNothingIsZeroAndTheProductOne) {
  const Literal nothing = reals({2, 0}, {});
  EXPECT_THAT(elements(on(nothing, [](Tensor x) { return reduce_sum(x, {1}); })),
              ElementsAre(0, 0));
  EXPECT_THAT(elements(on(nothing, [](Tensor x) { return reduce_prod(x, {1}); })),
              ElementsAre(1, 1));
}

TEST(ReduceSum, OfIntegersWraps) {
  const Literal large = integers(DType::u8, {3}, {200, 100, 1});
  EXPECT_THAT(elements(on(large, [](Tensor x) { return reduce_sum(x, {0}); })), ElementsAre(45));
}

TEST(ReduceMax, AndMinFindTheExtremes) {
  EXPECT_THAT(elements(on(kMatrix, [](Tensor x) { return reduce_max(x, {1}); })),
              ElementsAre(5, 6));
  EXPECT_THAT(elements(on(kMatrix, [](Tensor x) { return reduce_min(x, {0}); })),
              ElementsAre(1, 3, 2));
  const Literal with_nan = reals({2, 2}, {1, NAN, 1, 2});
  const std::vector<double> y = elements(on(with_nan, [](Tensor x) { return reduce_max(x, {1}); }));
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], 2);
}

TEST(ReduceMax, TiesShareTheCotangent) {
  const Literal ties = reals({2, 4}, {3, 1, 3, 3, 2, 2, 1, 0});
  EXPECT_THAT(slope(ties, reals({2}, {6, 10}), [](Tensor x) { return reduce_max(x, {1}); }),
              ElementsAre(2, 0, 2, 2, 5, 5, 0, 0));
  EXPECT_THAT(slope(ties, reals({}, {6}),
                    [](Tensor x) {
                      return reduce_min(x, {0, 1});
                    }),
              ElementsAre(0, 0, 0, 0, 0, 0, 0, 6));
}

TEST(ReduceProd, HasTheRightSlopeAtZeros) {
  const auto product = [](Tensor x) { return reduce_prod(x, {1}); };
  const Literal zeros = reals({3, 3}, {2, 3, 4, 0, 3, 4, 0, 3, 0});
  EXPECT_THAT(elements(on(zeros, product)), ElementsAre(24, 0, 0));
  EXPECT_THAT(slope(zeros, reals({3}, {1, 10, 1}), product),
              ElementsAre(12, 8, 6, 120, 0, 0, 0, 0, 0));
}

TEST(ReduceProd, HasTheRightSlopeAcrossAxes) {
  const Literal x = reals({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  // Products over axes 0 and 2: 1*2*5*6 = 60 and 3*4*7*8 = 672.
  EXPECT_THAT(slope(x, reals({2}, {1, 1}),
                    [](Tensor in) {
                      return reduce_prod(in, {0, 2});
                    }),
              ElementsAre(60, 30, 224, 168, 12, 10, 96, 84));
}

TEST(ReduceMean, DividesByTheCount) {
  EXPECT_THAT(elements(on(kMatrix, [](Tensor x) { return reduce_mean(x, {0}); })),
              ElementsAre(2.5, 4, 4));
  EXPECT_THAT(slope(kMatrix, reals({2}, {3, 6}), [](Tensor x) { return reduce_mean(x, {1}); }),
              ElementsAre(1, 1, 1, 2, 2, 2));
}

TEST(Reductions, NameTheAxisAndTheLine) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {8, 4, 2}});
  const SourceLoc line{"models/example.cpp", 141};
  EXPECT_EQ(usage_error([&] { reduce_sum(x, {3}, false, line); }),
            "reduce_sum: axis 3 out of range [-3, 2] for x f32[8,4,2] (models/example.cpp:141)");
  EXPECT_THAT(usage_error([&] { reduce_mean(x, {-4}); }), HasSubstr("axis -4 out of range"));
  EXPECT_THAT(usage_error([&] { reduce_max(x, {1, -2}); }), HasSubstr("axis 1 is given twice"));
  EXPECT_THAT(usage_error([&] { reduce_max(Tensor(), {0}); }), HasSubstr("x is an empty Tensor"));
}

TEST(Argmax, TakesTheLowestOfTheLargest) {
  EXPECT_THAT(elements(on(kMatrix, [](Tensor x) { return argmax(x, 1); })), ElementsAre(1, 2));
  EXPECT_THAT(elements(on(kMatrix, [](Tensor x) { return argmax(x, 0); })), ElementsAre(1, 0, 1));
  EXPECT_THAT(
      elements(on(reals({2, 3}, {2, 7, 7, 1, NAN, 9}), [](Tensor x) { return argmax(x, -1); })),
      ElementsAre(1, 1));
  EXPECT_EQ(on(kMatrix, [](Tensor x) { return argmax(x, 1); }).dtype(), DType::i32);
}

TEST(Cumsum, RunsFromEitherEndWithOrWithoutItself) {
  const Literal x = reals({4}, {1, 2, 3, 4});
  EXPECT_THAT(elements(on(x, [](Tensor in) { return cumsum(in, 0); })), ElementsAre(1, 3, 6, 10));
  EXPECT_THAT(elements(on(x, [](Tensor in) { return cumsum(in, 0, true); })),
              ElementsAre(0, 1, 3, 6));
  EXPECT_THAT(elements(on(x, [](Tensor in) { return cumsum(in, 0, false, true); })),
              ElementsAre(10, 9, 7, 4));
  EXPECT_THAT(elements(on(x, [](Tensor in) { return cumsum(in, 0, true, true); })),
              ElementsAre(9, 7, 4, 0));
  EXPECT_THAT(elements(on(kMatrix, [](Tensor in) { return cumsum(in, 0); })),
              ElementsAre(1, 5, 2, 5, 8, 8));
}

TEST(Cumsum, SendsCotangentsBackFromTheOtherEnd) {
  const Literal x = reals({3}, {1, 2, 3});
  EXPECT_THAT(slope(x, reals({3}, {1, 10, 100}), [](Tensor in) { return cumsum(in, 0); }),
              ElementsAre(111, 110, 100));
  EXPECT_THAT(slope(x, reals({3}, {1, 10, 100}), [](Tensor in) { return cumsum(in, 0, true); }),
              ElementsAre(110, 100, 0));
}

}  // namespace
}  // namespace fullbore
