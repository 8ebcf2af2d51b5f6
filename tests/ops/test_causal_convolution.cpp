#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fullbore/ops/recurrent.h"
#include "tests/ops/differentiate.h"
#include "tests/support/gradcheck.h"

namespace fullbore {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<Literal> convolve(const std::vector<Literal>& operands) {
  return evaluate_all(operands, [](GraphBuilder&, const std::vector<Tensor>& x) {
    const ConvolutionResult made = causal_convolution(
        x[0], x[1], x[2],
        {.history = x.size() > 3 ? x[3] : Tensor(), .resets = x.size() > 4 ? x[4] : Tensor()});
    return std::vector{made.y, made.history};
  });
}

TEST(CausalConvolution, HasTheRecordedResult) {
  const auto made = convolve({reals({1, 5, 1}, {1, -2, 3, 0.5, -1}),
                              reals({1, 4}, {0.1, -0.2, 0.3, 0.4}), reals({1}, {0.05})});
  const auto near = [](double x) { return DoubleNear(x, 1e-12); };
  EXPECT_THAT(elements(made[0]),
              ElementsAre(near(0.45), near(-0.45), near(0.45), near(1.65), near(-1)));
  EXPECT_THAT(elements(made[1]), ElementsAre(3, 0.5, -1));
}

TEST(CausalConvolution, GoesOnFromItsHistory) {
  const auto normal = [](Shape shape, uint64_t stream) {
    return random_literal({DType::f64, std::move(shape)}, 8, stream);
  };
  const Literal x = normal({1, 7, 2}, 0), weight = normal({2, 4}, 1), bias = normal({2}, 2);
  Literal history = normal({1, 3, 2}, 3);
  const auto whole = convolve({x, weight, bias, history});
  int64_t at = 0;
  for (const int64_t count : {4, 1, 2}) {
    const auto first = x.reals().begin() + at;
    const auto made =
        convolve({reals({1, count, 2}, {first, first + 2 * count}), weight, bias, history});
    for (const double y : made[0].reals()) EXPECT_EQ(y, whole[0].at(at++));
    history = made[1];
  }
  EXPECT_EQ(elements(history), elements(whole[1]));
  const auto forgotten = convolve({x, weight, bias});
  EXPECT_NE(elements(forgotten[0]), elements(whole[0]));
}

// What lies before a reset is nothing but zeros to what lies behind it, in the next segment too.
TEST(CausalConvolution, ResetsBeginAnew) {
  const Literal x = reals({1, 4, 1}, {1, 2, 3, 4}), weight = reals({1, 3}, {100, 10, 1});
  const Literal history = reals({1, 2, 1}, {8, 9}), none = reals({1}, {0});
  const auto made =
      convolve({x, weight, none, history, integers(DType::boolean, {1, 4}, {0, 0, 0, 1})});
  EXPECT_THAT(elements(made[0]), ElementsAre(891, 912, 123, 4));
  EXPECT_THAT(elements(made[1]), ElementsAre(0, 4));
  const auto at_once =
      convolve({x, weight, none, history, integers(DType::boolean, {1, 4}, {1, 0, 0, 0})});
  EXPECT_THAT(elements(at_once[0]), ElementsAre(1, 12, 123, 234));
}

TEST(CausalConvolution, NamesWhatDoesNotFit) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {1, 4, 3}});
  const Tensor weight = builder.input("weight", Role::batch, {DType::f32, {2, 4}});
  const Tensor bias = builder.input("bias", Role::batch, {DType::f32, {3}});
  EXPECT_THAT(usage_error([&] { causal_convolution(x, weight, {}); }),
              HasSubstr("bias is an empty Tensor"));
  EXPECT_THAT(usage_error([&] { causal_convolution(x, weight, bias); }),
              HasSubstr("needs weight f32[3,4], got f32[2,4]"));
}

}  // namespace
}  // namespace fullbore
