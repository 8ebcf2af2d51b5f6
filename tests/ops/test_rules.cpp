#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fullbore/ops/ops.h"
#include "fullbore/ops/rules.h"
#include "tests/support/evaluate.h"

/// Operands: how they broadcast, how numbers take a dtype, and what is said when they do not fit.
namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const SourceLoc kLine{"/home/user/models/example.cpp", 141};

TEST(BroadcastShapes, FollowsNumpy) {
  EXPECT_EQ(broadcast_shapes({}, {3}), (Shape{3}));
  EXPECT_EQ(broadcast_shapes({2, 1, 3}, {4, 1}), (Shape{2, 4, 3}));
  EXPECT_EQ(broadcast_shapes({1}, {0}), (Shape{0}));
  EXPECT_EQ(broadcast_shapes({3}, {3}), (Shape{3}));
  EXPECT_EQ(broadcast_shapes({3}, {4}), std::nullopt);
  EXPECT_EQ(broadcast_shapes({0}, {2}), std::nullopt);
}

TEST(Operands, OfEqualShapeNeedNoBroadcast) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {3}});
  x + x;
  EXPECT_EQ(builder.graph().nodes().size(), 1U);
}

TEST(Operands, AreBroadcastAlongMissingAndUnitAxes) {
  const Literal sum = evaluate({reals({2, 1}, {10, 20}), reals({3}, {1, 2, 3})},
                               [](GraphBuilder&, const auto& x) { return x[0] + x[1]; });
  EXPECT_EQ(sum.shape(), (Shape{2, 3}));
  EXPECT_THAT(elements(sum), ElementsAre(11, 12, 13, 21, 22, 23));
}

TEST(Operands, NumbersTakeTheDTypeOfTheTensor) {
  GraphBuilder builder;
  const Tensor half = builder.input("x", Role::batch, {DType::f16, {3}});
  const Tensor whole = builder.input("n", Role::batch, {DType::i32, {3}});
  EXPECT_EQ((half * 0.5).dtype(), DType::f16);
  EXPECT_EQ((2.0 - half).dtype(), DType::f16);
  EXPECT_EQ((whole + 7.0).dtype(), DType::i32);
  EXPECT_EQ(equal(whole, 7.0).dtype(), DType::boolean);
}

TEST(Operands, RememberTheLineThatNamedThem) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {3}});
  const Tensor y = x * x;
  const int line = __LINE__ - 1;
  EXPECT_EQ(builder.graph().producer_node(y.value())->location,
            fmt::format("ops/test_rules.cpp:{}", line));
}

TEST(Operands, OfABodyAndItsOuterGraphMeetInTheBody) {
  GraphBuilder outer("outer");
  const Tensor x = outer.input("x", Role::batch, {DType::f32, {3}});
  GraphBuilder body("body", &outer);
  const Tensor y = body.input("y", Role::local, {DType::f32, {3}});
  EXPECT_EQ(&(x + y).builder(), &body);
  EXPECT_EQ(&(y + x).builder(), &body);
  ASSERT_EQ(body.captures().size(), 1U);
  EXPECT_EQ(&(x + x).builder(), &outer) << "what needs nothing of the body is made once, outside";
}

TEST(Operands, ThatDoNotFitAreNamed) {
  GraphBuilder builder;
  const Tensor a = builder.input("a", Role::batch, {DType::f32, {4, 3}});
  const Tensor b = builder.input("b", Role::batch, {DType::f32, {4}});
  const Tensor n = builder.input("n", Role::batch, {DType::i32, {4, 3}});
  const auto sum = [](Operand left, Operand right) {
    return usage_error([&] { add(left, right); });
  };
  EXPECT_EQ(sum({a, kLine}, {b, kLine}),
            "add: a f32[4,3] and b f32[4] do not broadcast (models/example.cpp:141)");
  EXPECT_EQ(sum({a, kLine}, {n, kLine}),
            "add: a f32[4,3] and b i32[4,3] differ in dtype (models/example.cpp:141)");
  EXPECT_EQ(sum({1, kLine}, {2, kLine}), "add: no operand is a Tensor (models/example.cpp:141)");
  EXPECT_EQ(sum({a, kLine}, {Tensor{}, kLine}),
            "add: b is an empty Tensor (models/example.cpp:141)");
  EXPECT_EQ(sum({n, kLine}, {0.5, kLine}), "add: 0.5 is no i32 (models/example.cpp:141)");
  EXPECT_EQ(usage_error([] { exp(Tensor{}, kLine); }),
            "exp: x is an empty Tensor (models/example.cpp:141)");
}

TEST(Operands, OfUnrelatedGraphsAreRefused) {
  GraphBuilder one("one"), two("two");
  const Tensor a = one.input("a", Role::batch, {DType::f32, {}});
  const Tensor b = two.input("b", Role::batch, {DType::f32, {}});
  EXPECT_THAT(usage_error([&] { a + b; }), HasSubstr("graphs 'two' and 'one'"));
}

TEST(Numbers, AreRoundedButNeverLost) {
  GraphBuilder builder;
  const auto number = [&](DType dtype, double value) {
    return usage_error([&] { full(builder, {dtype, {}}, value, kLine); });
  };
  EXPECT_EQ(number(DType::f32, 0.1), "");
  EXPECT_EQ(number(DType::f16, -HUGE_VAL), "");
  EXPECT_EQ(number(DType::f16, 1e6), "full: 1000000 is no f16 (models/example.cpp:141)");
  EXPECT_EQ(number(DType::u8, 300), "full: 300 is no u8 (models/example.cpp:141)");
  EXPECT_EQ(number(DType::boolean, 2), "full: 2 is no bool (models/example.cpp:141)");
}

TEST(Select, GivesNumbersTheDTypeOfTheOtherBranch) {
  GraphBuilder builder;
  const Tensor condition = builder.input("c", Role::batch, {DType::boolean, {2, 1}});
  const Tensor x = builder.input("x", Role::batch, {DType::bf16, {3}});
  const Tensor y = select(condition, 0.0, x);
  EXPECT_EQ(y.type(), (TensorType{DType::bf16, {2, 3}}));
  EXPECT_THAT(usage_error([&] {
                select(condition, {1.0, kLine}, {0.0, kLine});
              }),
              HasSubstr("select: a and b are both numbers"));
  EXPECT_THAT(usage_error([&] {
                select(x, {x, kLine}, {0.0, kLine});
              }),
              HasSubstr("select: needs bool condition, got bf16[3]"));
}

TEST(Axes, CountFromTheEndToo) {
  EXPECT_EQ(normal_axis(-1, 3), 2);
  EXPECT_EQ(normal_axis(-3, 3), 0);
  EXPECT_EQ(normal_axis(1, 3), 1);
  EXPECT_EQ(normal_axis(3, 3), 3) << "out of range stays as written, for the message";
  EXPECT_EQ(normal_axis(-4, 3), -4);
}

TEST(Axes, OutOfRangeAreNamedAsWritten) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {8, 4, 2}});
  const auto message = [](const std::function<void()>& call) { return usage_error(call); };
  EXPECT_EQ(message([&] { reverse(x, 3, kLine); }),
            "reverse: axis 3 out of range [-3, 2] for x f32[8,4,2] (models/example.cpp:141)");
  EXPECT_EQ(message([&] { slice(x, -4, 0, 1, 1, kLine); }),
            "slice: axis -4 out of range [-3, 2] for x f32[8,4,2] (models/example.cpp:141)");
  EXPECT_EQ(message([&] { expand_dims(x, 4, kLine); }),
            "expand_dims: axis 4 out of range [-4, 3] for x f32[8,4,2] (models/example.cpp:141)");
  EXPECT_EQ(message([&] { squeeze(x, -4, kLine); }),
            "squeeze: axis -4 out of range [-3, 2] for x f32[8,4,2] (models/example.cpp:141)");
  EXPECT_EQ(message([&] { squeeze(x, 1, kLine); }),
            "squeeze: axis 1 of x f32[8,4,2] has not extent 1 (models/example.cpp:141)");
  EXPECT_EQ(message([&] { swap_axes(x, 0, 3, kLine); }),
            "swap_axes: axis 3 out of range [-3, 2] for x f32[8,4,2] (models/example.cpp:141)");
  EXPECT_EQ(message([&] { split(x, 3, {1}, kLine); }),
            "split: axis 3 out of range [-3, 2] for x f32[8,4,2] (models/example.cpp:141)");
  EXPECT_EQ(message([&] {
              split(x, 0, {3, 4}, kLine);
            }),
            "split: the parts of axis 0 add up to 7, not to the 8 of x f32[8,4,2] "
            "(models/example.cpp:141)");
  EXPECT_EQ(message([&] { concat({}, 0, kLine); }),
            "concat: needs at least one part (models/example.cpp:141)");
}

}  // namespace
}  // namespace fullbore
