#include "fullbore/ops/quantized_linear.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/philox.h"
#include "fullbore/base/quantize.h"
#include "fullbore/device/interpret.h"
#include "tests/support/evaluate.h"

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// f32 weights and their 8-bit form, rows of x, and both matmuls.
struct Matmul {
  int64_t rows, columns, depth;
  std::vector<float> x, weights;
  std::vector<int8_t> q;
  std::vector<float> scales;
  std::vector<double> y;  ///< of the op

  Matmul(int64_t m, int64_t n, int64_t k) : rows(m), columns(n), depth(k) {
    x.resize(static_cast<size_t>(m * k));
    weights.resize(static_cast<size_t>(n * k));
  }

  void run() {
    q.resize(weights.size());
    scales.resize(static_cast<size_t>(columns));
    ASSERT_TRUE(quantize_rows(weights.data(), columns, depth, q.data(), scales.data()));
    GraphBuilder builder;
    const Tensor operand = builder.input("x", Role::batch, {DType::f32, {rows, depth}});
    const Tensor weight = builder.input("weight", Role::frozen, {DType::i8, {columns, depth}});
    const Tensor scale = builder.input("scale", Role::frozen, {DType::f32, {columns}});
    builder.output("y", quantized_linear(operand, weight, scale));
    const Literal inputs[] = {Literal::of({DType::f32, {rows, depth}}, {x.begin(), x.end()}),
                              Literal::of({DType::i8, {columns, depth}}, {q.begin(), q.end()}),
                              Literal::of({DType::f32, {columns}}, {scales.begin(), scales.end()})};
    y = interpret(builder.take(), inputs)[0].reals();
  }

  double x_at(int64_t row, int64_t i) const {
    return static_cast<double>(x[size(row * depth + i)]);
  }
  double weight_at(int64_t column, int64_t i) const {
    return static_cast<double>(weights[size(column * depth + i)]);
  }
  double row_scale(int64_t row) const {
    double largest = 0;
    for (int64_t i = 0; i < depth; ++i) largest = std::max(largest, std::abs(x_at(row, i)));
    return int8_scale(largest, DType::f32);
  }
  double error(int64_t row, int64_t column) const {
    double exact = 0;
    for (int64_t i = 0; i < depth; ++i) exact += x_at(row, i) * weight_at(column, i);
    return std::abs(y[size(row * columns + column)] - exact);
  }
  /// s_o |x|_1 / 2 + s_t |W_o|_1 / 2 + K s_t s_o / 4
  double bound(int64_t row, int64_t column) const {
    double of_x = 0, of_weights = 0;
    for (int64_t i = 0; i < depth; ++i) {
      of_x += std::abs(x_at(row, i));
      of_weights += std::abs(weight_at(column, i));
    }
    const double s_t = row_scale(row), s_o = static_cast<double>(scales[size(column)]);
    return s_o * of_x / 2 + s_t * of_weights / 2 + static_cast<double>(depth) * s_t * s_o / 4;
  }

 private:
  static size_t size(int64_t i) { return static_cast<size_t>(i); }
};

Matmul sines() {
  Matmul gemm(2, 3, 6);
  for (int o = 0; o < 3; ++o)
    for (int i = 0; i < 6; ++i)
      gemm.weights[static_cast<size_t>(o * 6 + i)] =
          static_cast<float>(std::sin(0.9 * o + 0.37 * i));
  for (int t = 0; t < 2; ++t)
    for (int i = 0; i < 6; ++i)
      gemm.x[static_cast<size_t>(t * 6 + i)] =
          static_cast<float>((1 + t) * std::cos(0.5 * t + 0.21 * i));
  gemm.run();
  return gemm;
}

// Check 14 of the specification of a recurrent language model.
TEST(QuantizedLinear, MakesTheNumbersOfTheSpecification) {
  const Matmul gemm = sines();
  EXPECT_THAT(std::vector<int8_t>(gemm.q.begin(), gemm.q.begin() + 6),
              ElementsAre(0, 46, 86, 114, 127, 123));
  std::vector<int8_t> q_x(6);
  float scale = 0;
  ASSERT_TRUE(quantize_rows(gemm.x.data(), 1, 6, q_x.data(), &scale));
  EXPECT_THAT(q_x, ElementsAre(127, 124, 116, 103, 85, 63));

  const int64_t sums[] = {45966, 64972, 35696, 24256, 47477, 35598};
  for (int64_t row = 0; row < 2; ++row)
    for (int64_t column = 0; column < 3; ++column) {
      const auto at = static_cast<size_t>(row * 3 + column);
      const double unit =
          gemm.row_scale(row) * static_cast<double>(gemm.scales[static_cast<size_t>(column)]);
      EXPECT_NEAR(gemm.y[at] / unit, static_cast<double>(sums[at]), 1e-6);
    }
  const double expected[] = {2.8381585, 4.0186299, 2.1552771};
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(gemm.y[i], expected[i], 1e-6);

  double largest = 0;
  for (int64_t row = 0; row < 2; ++row)
    for (int64_t column = 0; column < 3; ++column)
      largest = std::max(largest, gemm.error(row, column));
  EXPECT_NEAR(largest, 0.0179520, 1e-6);
  const double bounds[] = {0.0499158, 0.0556503, 0.0447839};
  for (int64_t column = 0; column < 3; ++column)
    EXPECT_NEAR(gemm.bound(1, column), bounds[column], 1e-6);
}

TEST(QuantizedLinear, TheErrorIsWithinItsBoundForTenThousandRandomMatrices) {
  PhiloxStream draws(14);
  double closest = 0;
  for (int trial = 0; trial < 10'000; ++trial) {
    Matmul gemm(1 + static_cast<int64_t>(draws.below(2)), 1 + static_cast<int64_t>(draws.below(4)),
                1 + static_cast<int64_t>(draws.below(40)));
    // Sizes and tails of many kinds: the bound knows of neither.
    const double size = std::exp(5 * draws.normal()), tail = 1 + 3 * draws.uniform();
    const auto draw = [&] {
      const double x = draws.normal();
      return static_cast<float>(size * std::copysign(std::pow(std::abs(x), tail), x));
    };
    for (float& x : gemm.x) x = draw();
    for (float& weight : gemm.weights) weight = draw();
    gemm.run();
    for (int64_t row = 0; row < gemm.rows; ++row)
      for (int64_t column = 0; column < gemm.columns; ++column) {
        const double bound = gemm.bound(row, column), error = gemm.error(row, column);
        // x / s is rounded to f32 before it is rounded to 8 bits: half a unit more by 127 2^-24.
        ASSERT_LE(error, bound * (1 + 0x1p-15)) << trial;
        if (bound > 0) closest = std::max(closest, error / bound);
      }
  }
  EXPECT_GT(closest, 0.5) << "a bound that nothing comes near says nothing";
}

// With respect to x: of the product of what was rounded, W by s_o q_W, and x as it is.
TEST(QuantizedLinear, ItsGradientIsThatOfTheProductWithRoundedWeights) {
  GraphBuilder builder;
  const TensorType x_type{DType::f32, {2, 3, 7}}, dy_type{DType::f32, {2, 3, 5}};
  const Tensor x = builder.input("x", Role::batch, x_type);
  const Tensor weight = builder.input("weight", Role::frozen, {DType::i8, {5, 7}});
  const Tensor scale = builder.input("scale", Role::frozen, {DType::f32, {5}});
  const Tensor dy = builder.input("dy", Role::batch, dy_type);
  const Tensor y[] = {quantized_linear(x, weight, scale)};
  builder.output("dx", backward(builder, y, std::span(&dy, 1), std::span(&x, 1))[0]);
  PhiloxStream draws(3);
  const auto drawn = [&](int64_t count, double low, double high) {
    std::vector<double> values(static_cast<size_t>(count));
    for (double& value : values) value = std::round(64 * draws.uniform(low, high)) / 64;
    return values;
  };
  const std::vector<double> xs = drawn(42, -2, 2), scales = drawn(5, 0.1, 1),
                            dys = drawn(30, -1, 1);
  std::vector<double> q = drawn(35, -127, 127);
  for (double& value : q) value = std::round(value);
  const Literal inputs[] = {Literal::of(x_type, xs), Literal::of({DType::i8, {5, 7}}, q),
                            Literal::of({DType::f32, {5}}, scales), Literal::of(dy_type, dys)};
  const std::vector<double> dx = interpret(builder.take(), inputs)[0].reals();
  for (size_t row = 0; row < 6; ++row)
    for (size_t i = 0; i < 7; ++i) {
      double expected = 0;
      for (size_t o = 0; o < 5; ++o) expected += dys[row * 5 + o] * scales[o] * q[o * 7 + i];
      EXPECT_NEAR(dx[row * 7 + i], expected, 1e-9);
    }
}

TEST(QuantizedLinear, WeightsInEightBitsHaveNoGradientAndSaySo) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {2, 3}});
  const Tensor weight = builder.input("weight", Role::frozen, {DType::i8, {4, 3}});
  const Tensor scale = builder.input("scale", Role::parameter, {DType::f32, {4}});
  const Tensor loss = reduce_sum(quantized_linear(x, weight, scale), {0, 1});
  const Tensor wanted[] = {scale};
  EXPECT_THAT(usage_error([&] { gradient(loss, wanted); }),
              HasSubstr("quantized_linear: weights in 8 bits and their scales have no gradient"));
}

}  // namespace
}  // namespace fullbore
