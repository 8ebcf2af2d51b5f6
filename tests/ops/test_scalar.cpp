#include "fullbore/ir/scalar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

/// The living definition of one element, by hand.
namespace fullbore {
namespace {

const double kInfinity = std::numeric_limits<double>::infinity();
const double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

TEST(Scalar, EveryOpHasANameAnArityAndBounds) {
  for (int i = 0; i < kScalarOpCount; ++i) {
    const auto op = static_cast<ScalarOp>(i);
    EXPECT_FALSE(scalar_op_name(op).empty());
    EXPECT_TRUE(scalar_op_arity(op) >= 1 && scalar_op_arity(op) <= 3) << scalar_op_name(op);
    EXPECT_TRUE(scalar_op_flops(op) >= 0 && scalar_op_ulps(op) >= 0) << scalar_op_name(op);
  }
  EXPECT_EQ(scalar_op_arity(ScalarOp::neg), 1);
  EXPECT_EQ(scalar_op_arity(ScalarOp::less), 2);
  EXPECT_EQ(scalar_op_arity(ScalarOp::philox), 3);
  EXPECT_EQ(scalar_op_arity(ScalarOp::philox_upper), 3);
  EXPECT_EQ(scalar_op_flops(ScalarOp::add), 1);
  EXPECT_EQ(scalar_op_flops(ScalarOp::select), 0);
  EXPECT_EQ(scalar_op_ulps(ScalarOp::mul), 0.5);
}

TEST(Real, Unary) {
  const auto f = [](ScalarOp op, double x) { return evaluate_real(op, x); };
  EXPECT_EQ(f(ScalarOp::neg, 3), -3);
  EXPECT_EQ(f(ScalarOp::abs, -3), 3);
  EXPECT_EQ(f(ScalarOp::sign, -0.5), -1);
  EXPECT_EQ(f(ScalarOp::sign, 7), 1);
  EXPECT_EQ(f(ScalarOp::sign, 0), 0);
  EXPECT_TRUE(std::isnan(f(ScalarOp::sign, kNaN)));
  EXPECT_DOUBLE_EQ(f(ScalarOp::exp, 1), 2.718281828459045);
  EXPECT_DOUBLE_EQ(f(ScalarOp::expm1, 1e-10), 1.00000000005e-10);
  EXPECT_DOUBLE_EQ(f(ScalarOp::log, 10), 2.302585092994046);
  EXPECT_EQ(f(ScalarOp::log, 0), -kInfinity);
  EXPECT_DOUBLE_EQ(f(ScalarOp::log1p, 1e-10), 9.9999999995e-11);
  EXPECT_EQ(f(ScalarOp::sqrt, 9), 3);
  EXPECT_EQ(f(ScalarOp::rsqrt, 4), 0.5);
  EXPECT_DOUBLE_EQ(f(ScalarOp::sin, 1), 0.8414709848078965);
  EXPECT_DOUBLE_EQ(f(ScalarOp::cos, 1), 0.5403023058681398);
  EXPECT_DOUBLE_EQ(f(ScalarOp::tanh, 1), 0.7615941559557649);
  EXPECT_DOUBLE_EQ(f(ScalarOp::erf, 1), 0.8427007929497149);
  EXPECT_EQ(f(ScalarOp::floor, -1.5), -2);
  EXPECT_EQ(f(ScalarOp::ceil, -1.5), -1);
  EXPECT_EQ(f(ScalarOp::round, 2.5), 2);
  EXPECT_EQ(f(ScalarOp::round, 3.5), 4);
  EXPECT_EQ(f(ScalarOp::round, -0.5), 0);
  EXPECT_EQ(f(ScalarOp::is_finite, 1e300), 1);
  EXPECT_EQ(f(ScalarOp::is_finite, kInfinity), 0);
  EXPECT_EQ(f(ScalarOp::is_finite, kNaN), 0);
  EXPECT_EQ(f(ScalarOp::logical_not, 0), 1);
}

TEST(Real, Binary) {
  const auto f = [](ScalarOp op, double a, double b) { return evaluate_real(op, a, b); };
  EXPECT_EQ(f(ScalarOp::add, 1, 2), 3);
  EXPECT_EQ(f(ScalarOp::sub, 1, 2), -1);
  EXPECT_EQ(f(ScalarOp::mul, 3, 2), 6);
  EXPECT_EQ(f(ScalarOp::div, 3, 2), 1.5);
  EXPECT_EQ(f(ScalarOp::div, 1, 0), kInfinity);
  EXPECT_EQ(f(ScalarOp::remainder, 7, 3), 1);
  EXPECT_EQ(f(ScalarOp::remainder, -7, 3), 2);
  EXPECT_EQ(f(ScalarOp::remainder, 7, -3), -2);
  EXPECT_EQ(f(ScalarOp::remainder, -7, -3), -1);
  EXPECT_EQ(f(ScalarOp::remainder, -6, 3), 0);
  EXPECT_EQ(f(ScalarOp::pow, 2, 10), 1024);
  EXPECT_EQ(f(ScalarOp::maximum, 1, 2), 2);
  EXPECT_TRUE(std::isnan(f(ScalarOp::maximum, 1, kNaN)));
  EXPECT_TRUE(std::isnan(f(ScalarOp::minimum, kNaN, 1)));
  EXPECT_EQ(f(ScalarOp::minimum, 1, 2), 1);
  EXPECT_EQ(f(ScalarOp::equal, kNaN, kNaN), 0);
  EXPECT_EQ(f(ScalarOp::not_equal, kNaN, kNaN), 1);
  EXPECT_EQ(f(ScalarOp::equal, 0.0, -0.0), 1);
  EXPECT_EQ(f(ScalarOp::less, 1, 1), 0);
  EXPECT_EQ(f(ScalarOp::less_equal, 1, 1), 1);
  EXPECT_EQ(f(ScalarOp::less_equal, 1, kNaN), 0);
  EXPECT_EQ(evaluate_real(ScalarOp::select, 1, 5, 6), 5);
  EXPECT_EQ(evaluate_real(ScalarOp::select, 0, 5, 6), 6);
}

TEST(Integer, ArithmeticWrapsToTheWidth) {
  const auto f = evaluate_integer;
  EXPECT_EQ(f(ScalarOp::add, DType::i32, 2147483647, 1, 0), -2147483648LL);
  EXPECT_EQ(f(ScalarOp::add, DType::i64, kHighest, 1, 0), kLowest);
  EXPECT_EQ(f(ScalarOp::add, DType::u8, 250, 10, 0), 4);
  EXPECT_EQ(f(ScalarOp::sub, DType::u8, 3, 5, 0), 254);
  EXPECT_EQ(f(ScalarOp::add, DType::i8, 120, 10, 0), -126);
  EXPECT_EQ(f(ScalarOp::neg, DType::i8, -128, 0, 0), -128);
  EXPECT_EQ(f(ScalarOp::mul, DType::i32, 65536, 65537, 0), 65536);
  EXPECT_EQ(f(ScalarOp::neg, DType::u8, 1, 0, 0), 255);
  EXPECT_EQ(f(ScalarOp::neg, DType::i64, kLowest, 0, 0), kLowest);
  EXPECT_EQ(f(ScalarOp::abs, DType::i32, -2147483648LL, 0, 0), -2147483648LL);
  EXPECT_EQ(f(ScalarOp::abs, DType::i32, -5, 0, 0), 5);
  EXPECT_EQ(f(ScalarOp::sign, DType::i32, -5, 0, 0), -1);
  EXPECT_EQ(f(ScalarOp::cast, DType::u8, -1, 0, 0), 255);
  EXPECT_EQ(f(ScalarOp::cast, DType::i8, 200, 0, 0), -56);
}

TEST(Integer, DivisionTruncatesAndNeverTraps) {
  const auto f = evaluate_integer;
  EXPECT_EQ(f(ScalarOp::div, DType::i32, 7, 2, 0), 3);
  EXPECT_EQ(f(ScalarOp::div, DType::i32, -7, 2, 0), -3);
  EXPECT_EQ(f(ScalarOp::div, DType::i32, 7, 0, 0), 0);
  EXPECT_EQ(f(ScalarOp::div, DType::i64, kLowest, -1, 0), kLowest);
  EXPECT_EQ(f(ScalarOp::div, DType::i32, -2147483648LL, -1, 0), -2147483648LL);
  EXPECT_EQ(f(ScalarOp::remainder, DType::i32, -7, 3, 0), 2);
  EXPECT_EQ(f(ScalarOp::remainder, DType::i32, 7, -3, 0), -2);
  EXPECT_EQ(f(ScalarOp::remainder, DType::i32, 7, 0, 0), 0);
  EXPECT_EQ(f(ScalarOp::remainder, DType::i64, kLowest, -1, 0), 0);
}

TEST(Integer, BitsAndShifts) {
  const auto f = evaluate_integer;
  EXPECT_EQ(f(ScalarOp::bit_and, DType::i32, 12, 10, 0), 8);
  EXPECT_EQ(f(ScalarOp::bit_or, DType::i32, 12, 10, 0), 14);
  EXPECT_EQ(f(ScalarOp::bit_xor, DType::i32, 12, 10, 0), 6);
  EXPECT_EQ(f(ScalarOp::bit_xor, DType::i32, -1, 0, 0), -1);
  EXPECT_EQ(f(ScalarOp::shift_left, DType::i32, 1, 31, 0), -2147483648LL);
  EXPECT_EQ(f(ScalarOp::shift_left, DType::i32, 1, 32, 0), 0);
  EXPECT_EQ(f(ScalarOp::shift_left, DType::u8, 129, 1, 0), 2);
  EXPECT_EQ(f(ScalarOp::shift_right, DType::i32, -1, 28, 0), 15) << "zeros come in";
  EXPECT_EQ(f(ScalarOp::shift_right, DType::i64, -1, 60, 0), 15);
  EXPECT_EQ(f(ScalarOp::shift_right, DType::i64, -1, 64, 0), 0);
  EXPECT_EQ(f(ScalarOp::shift_right, DType::i64, -1, -1, 0), 0);
}

TEST(Integer, ComparisonsAndLogic) {
  const auto f = evaluate_integer;
  EXPECT_EQ(f(ScalarOp::less, DType::i64, kLowest, kHighest, 0), 1);
  EXPECT_EQ(f(ScalarOp::less_equal, DType::i64, 3, 3, 0), 1);
  EXPECT_EQ(f(ScalarOp::equal, DType::i64, kHighest, kHighest - 1, 0), 0) << "all 64 bits";
  EXPECT_EQ(f(ScalarOp::not_equal, DType::boolean, 1, 0, 0), 1);
  EXPECT_EQ(f(ScalarOp::maximum, DType::i64, kHighest, kHighest - 1, 0), kHighest);
  EXPECT_EQ(f(ScalarOp::minimum, DType::i64, -1, 1, 0), -1);
  EXPECT_EQ(f(ScalarOp::logical_and, DType::boolean, 1, 0, 0), 0);
  EXPECT_EQ(f(ScalarOp::logical_or, DType::boolean, 1, 0, 0), 1);
  EXPECT_EQ(f(ScalarOp::logical_not, DType::boolean, 1, 0, 0), 0);
  EXPECT_EQ(f(ScalarOp::select, DType::i64, 0, 4, kHighest), kHighest);
}

}  // namespace
}  // namespace fullbore
