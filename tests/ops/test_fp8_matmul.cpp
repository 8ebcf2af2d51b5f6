// Numbers of 8 bits, and products of them.
#include "fullbore/ops/fp8_matmul.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "fullbore/base/philox.h"
#include "tests/ops/differentiate.h"
#include "tests/support/evaluate.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

constexpr Fp8Format kFormats[] = {Fp8Format::e4m3, Fp8Format::e5m2};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// What a code stands for, by its fields: (-1)^s 2^(e - bias) (1 + f / 2^bits), or 2^(1 - bias) f / 2^bits.
double by_fields(int code, int fraction_bits, int bias) {
  const int exponent = (code & 0x7f) >> fraction_bits, fraction = code & ((1 << fraction_bits) - 1);
  const double part = fraction / std::exp2(fraction_bits);
  const double size =
      exponent == 0 ? std::exp2(1 - bias) * part : std::exp2(exponent - bias) * (1 + part);
  return code < 0x80 ? size : -size;
}

TEST(Fp8, CodesHaveTheirFieldsValues) {
  for (int code = 0; code < 256; ++code) {
    const double e4m3 = fp8_value(static_cast<uint8_t>(code), Fp8Format::e4m3);
    if ((code & 0x7f) == 0x7f)
      EXPECT_TRUE(std::isnan(e4m3)) << code;
    else
      EXPECT_EQ(e4m3, by_fields(code, 3, 7)) << code;
    const double e5m2 = fp8_value(static_cast<uint8_t>(code), Fp8Format::e5m2);
    if ((code & 0x7f) == 0x7c)
      EXPECT_EQ(e5m2, code < 0x80 ? kInfinity : -kInfinity);
    else if ((code & 0x7f) > 0x7c)
      EXPECT_TRUE(std::isnan(e5m2)) << code;
    else
      EXPECT_EQ(e5m2, by_fields(code, 2, 15)) << code;
  }
}

TEST(Fp8, CodesOfNumbersAreTheirs) {
  for (const Fp8Format format : kFormats)
    for (int code = 0; code < 256; ++code) {
      const double x = fp8_value(static_cast<uint8_t>(code), format);
      if (!std::isfinite(x)) continue;
      EXPECT_EQ(fp8_code(x, format), code) << fp8_facts(format).name;
      EXPECT_EQ(std::signbit(x), code >= 0x80);
    }
}

// Between each two neighbours: the middle goes to the code that is even, all else to the nearer one.
TEST(Fp8, RoundsToNearestEven) {
  for (const Fp8Format format : kFormats)
    for (int code = 0; code < fp8_facts(format).largest_code; ++code) {
      const double below = fp8_value(static_cast<uint8_t>(code), format);
      const double above = fp8_value(static_cast<uint8_t>(code + 1), format);
      const double middle = (below + above) / 2, step = (above - below) / 64;
      EXPECT_EQ(fp8_code(middle, format), code % 2 == 0 ? code : code + 1) << middle;
      EXPECT_EQ(fp8_code(middle - step, format), code) << middle;
      EXPECT_EQ(fp8_code(middle + step, format), code + 1) << middle;
      EXPECT_EQ(fp8_code(-middle, format), 0x80 + (code % 2 == 0 ? code : code + 1));
    }
}

TEST(Fp8, EndsAtTheLargest) {
  for (const Fp8Format format : kFormats) {
    const Fp8Facts facts = fp8_facts(format);
    EXPECT_EQ(fp8_value(facts.largest_code, format), facts.largest);
    for (const double beyond :
         {facts.largest, 1.01 * facts.largest, 2 * facts.largest, 1e30, kInfinity}) {
      EXPECT_EQ(fp8_code(beyond, format), facts.largest_code) << beyond;
      EXPECT_EQ(fp8_code(-beyond, format), 0x80 | facts.largest_code) << beyond;
    }
    EXPECT_TRUE(std::isnan(fp8_value(fp8_code(std::nan(""), format), format)));
    EXPECT_EQ(fp8_quantized(1e30, 1e10, format), facts.largest) << "too large once scaled";
    EXPECT_TRUE(std::isnan(fp8_quantized(kInfinity, 1, format))) << "an overflow is to be seen";
    EXPECT_TRUE(std::isnan(fp8_quantized(-kInfinity, 1e-3, format)));
  }
}

std::vector<double> draws(size_t count, uint64_t stream) {
  PhiloxStream from(3, stream);
  std::vector<double> values(count);
  for (double& value : values) value = static_cast<float>(from.normal());
  return values;
}

TEST(Fp8Matmul, IsTheProductOfRoundedOperands) {
  constexpr size_t m = 3, n = 4, k = 70;
  const std::vector<double> a = draws(m * k, 1), b = draws(n * k, 2);
  const Literal y =
      evaluate({reals({m, k}, a), reals({n, k}, b), reals({}, {100}), reals({}, {3000})},
               [](GraphBuilder&, const std::vector<Tensor>& x) {
                 return fp8_matmul(x[0], x[1], x[2], x[3],
                                   {.format_b = Fp8Format::e5m2, .transpose_b = true});
               });
  double rounded_away = 0;
  for (size_t row = 0; row < m; ++row)
    for (size_t column = 0; column < n; ++column) {
      double sum = 0, exact = 0;
      for (size_t i = 0; i < k; ++i) {
        const double x = a[row * k + i], w = b[column * k + i];
        sum += fp8_value(fp8_code(x * 100, Fp8Format::e4m3), Fp8Format::e4m3) *
               fp8_value(fp8_code(w * 3000, Fp8Format::e5m2), Fp8Format::e5m2);
        exact += x * w;
      }
      EXPECT_NEAR(y.at(static_cast<int64_t>(row * n + column)), sum / 300000,
                  1e-12 * std::abs(sum));
      rounded_away = std::max(rounded_away, std::abs(sum / 300000 - exact));
    }
  EXPECT_GT(rounded_away, 1e-3) << "nothing was rounded";
}

// Whatever lies transposed, the gradient is that of the product of a and b as they are.
TEST(Fp8Matmul, HasTheGradientOfTheProduct) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      const std::vector<Literal> operands = {reals(ta ? Shape{5, 3} : Shape{3, 5}, draws(15, 4)),
                                             reals(tb ? Shape{2, 5} : Shape{5, 2}, draws(10, 5))};
      const Literal dy = reals({3, 2}, draws(6, 6));
      const auto of_fp8 = [&](GraphBuilder& builder, const std::vector<Tensor>& x) {
        const Tensor scale = full(builder, {DType::f64, {}}, 1);  // most of what it rounds is lost
        return fp8_matmul(x[0], x[1], scale, scale, {.transpose_a = ta, .transpose_b = tb});
      };
      const auto exact = [&](GraphBuilder&, const std::vector<Tensor>& x) {
        return matmul(x[0], x[1], {.transpose_a = ta, .transpose_b = tb});
      };
      const std::vector<Literal> found = differentiate(operands, dy, of_fp8);
      const std::vector<Literal> expected = differentiate(operands, dy, exact);
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(elements(found[i]), elements(expected[i])) << ta << tb << " operand " << i;
    }
}

TEST(Fp8Matmul, ScalesHaveNoGradient) {
  EXPECT_THAT(usage_error([] {
                differentiate({reals({1, 1}, {1}), reals({}, {1})}, reals({1, 1}, {1}),
                              [](GraphBuilder&, const std::vector<Tensor>& x) {
                                return fp8_matmul(x[0], x[0], x[1], x[1]);
                              });
              }),
              HasSubstr("fp8_matmul: scales have no gradient"));
}

}  // namespace
}  // namespace fullbore
