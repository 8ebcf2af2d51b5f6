#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fullbore/ops/ops.h"
#include "tests/ops/differentiate.h"
#include "tests/support/gradcheck.h"

namespace fullbore {
namespace {

using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Literal kOnes = reals({4}, {1, 1, 1, 1});

TEST(LayerNorm, IsItsDefinition) {
  // Mean 3, variance 5: deviations over sqrt(5), times gain, plus bias.
  const Literal x = reals({1, 4}, {0, 2, 4, 6});
  const Literal gain = reals({4}, {1, 2, 3, 4});
  const Literal bias = reals({4}, {0, 0, 0, 10});
  const Literal y = evaluate({x, gain, bias}, [](GraphBuilder&, const auto& in) {
    return layer_norm(in[0], in[1], in[2], 0);
  });
  const double unit = 1 / std::sqrt(5);
  EXPECT_THAT(elements(y),
              ElementsAre(DoubleNear(-3 * unit, 1e-15), DoubleNear(-2 * unit, 1e-15),
                          DoubleNear(3 * unit, 1e-15), DoubleNear(12 * unit + 10, 1e-14)));
}

TEST(LayerNorm, RowsHaveMeanZeroAndVarianceOne) {
  const Literal x = random_literal({DType::f64, {5, 33}}, 4, 0);
  const Literal y = evaluate(
      {x, reals({33}, std::vector<double>(33, 1))},
      [](GraphBuilder&, const auto& in) { return layer_norm(in[0] * 50.0 + 700.0, in[1], {}, 0); });
  for (int64_t row = 0; row < 5; ++row) {
    double mean = 0, square = 0;
    for (int64_t i = 0; i < 33; ++i) {
      mean += y.at(row * 33 + i) / 33;
      square += y.at(row * 33 + i) * y.at(row * 33 + i) / 33;
    }
    EXPECT_NEAR(mean, 0, 1e-13);
    EXPECT_NEAR(square, 1, 1e-13);
  }
}

// The gradient is orthogonal to shifts and scalings of a row, which change nothing.
TEST(LayerNorm, GradientIgnoresShiftAndScale) {
  const Literal x = random_literal({DType::f64, {3, 8}}, 5, 0);
  const Literal dy = random_literal({DType::f64, {3, 8}}, 5, 1);
  const Literal gain = reals({8}, std::vector<double>(8, 1.5));
  const Literal dx = differentiate({x, gain}, dy, [](GraphBuilder&, const auto& in) {
    return layer_norm(in[0], in[1], {}, 0);
  })[0];
  for (int64_t row = 0; row < 3; ++row) {
    double shift = 0, scale = 0;
    for (int64_t i = row * 8; i < row * 8 + 8; ++i) {
      shift += dx.at(i);
      scale += dx.at(i) * x.at(i);
    }
    EXPECT_NEAR(shift, 0, 1e-13);
    EXPECT_NEAR(scale, 0, 1e-13);
  }
}

TEST(LayerNorm, OfEqualValuesIsItsBias) {
  const Literal y =
      evaluate({reals({1, 4}, {7, 7, 7, 7}), kOnes, reals({4}, {1, 2, 3, 4})},
               [](GraphBuilder&, const auto& in) { return layer_norm(in[0], in[1], in[2]); });
  EXPECT_THAT(elements(y), ElementsAre(1, 2, 3, 4));
}

TEST(RmsNorm, IsItsDefinition) {
  const Literal y =
      evaluate({reals({1, 4}, {1, -1, 5, 3}), kOnes},
               [](GraphBuilder&, const auto& in) { return rms_norm(in[0], in[1], 0); });
  EXPECT_THAT(elements(y),
              ElementsAre(DoubleEq(1 / 3.0), DoubleEq(-1 / 3.0), DoubleEq(5 / 3.0), DoubleEq(1)));
}

TEST(Norms, ComputeNarrowOperandsInF32AndTakeF32Gains) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::bf16, {3, 4}});
  const Tensor gain = builder.input("gain", Role::parameter, {DType::f32, {4}});
  EXPECT_EQ(layer_norm(x, gain, gain).type(), x.type());
  EXPECT_EQ(rms_norm(x, gain).type(), x.type());
  for (const char* name : {"layer_norm", "rms_norm"}) {
    const Graph graph =
        decomposition(get_op(name), std::vector{x.type(), gain.type()}, {{"epsilon", 1e-5}});
    for (const Node& node : graph.nodes())
      EXPECT_TRUE(node.op->name == "cast" || graph.type(node.outputs[0]).dtype == DType::f32)
          << node.op->name << " of " << name;
  }
}

TEST(Norms, NameWhatDoesNotFit) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {3, 4}});
  const Tensor gain = builder.input("gain", Role::parameter, {DType::f32, {5}});
  EXPECT_EQ(usage_error([&] {
              layer_norm(x, gain, {}, 1e-5, {"models/example.cpp", 9});
            }),
            "layer_norm: needs gain f32[4] for x f32[3,4], got f32[5] (models/example.cpp:9)");
  EXPECT_THAT(usage_error([&] { rms_norm(x, Tensor()); }), HasSubstr("gain is an empty Tensor"));
}

}  // namespace
}  // namespace fullbore
