#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fullbore/ops/ops.h"
#include "tests/ops/differentiate.h"

namespace fullbore {
namespace {

using ::testing::DoubleEq;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Literal kA = reals({2, 3}, {1, 2, 3, 4, 5, 6});
const Literal kATransposed = reals({3, 2}, {1, 4, 2, 5, 3, 6});
const Literal kB = reals({3, 2}, {7, 8, 9, 10, 11, 12});
const Literal kBTransposed = reals({2, 3}, {7, 9, 11, 8, 10, 12});

std::vector<double> product(const Literal& a, const Literal& b, MatmulOptions options) {
  return elements(
      evaluate({a, b}, [&](GraphBuilder&, const auto& x) { return matmul(x[0], x[1], options); }));
}

TEST(Matmul, OfEachTranspose) {
  const auto expected = ElementsAre(58, 64, 139, 154);
  EXPECT_THAT(product(kA, kB, {}), expected);
  EXPECT_THAT(product(kATransposed, kB, {.transpose_a = true}), expected);
  EXPECT_THAT(product(kA, kBTransposed, {.transpose_b = true}), expected);
  EXPECT_THAT(product(kATransposed, kBTransposed, {.transpose_a = true, .transpose_b = true}),
              expected);
}

TEST(Matmul, OfEachBatchAlone) {
  const Literal a = reals({2, 1, 2}, {1, 2, 3, 4});
  const Literal b = reals({2, 2, 1}, {5, 6, 7, 8});
  EXPECT_THAT(product(a, b, {}), ElementsAre(17, 53));
}

TEST(Matmul, OfNothingIsZero) {
  EXPECT_THAT(product(reals({2, 0}, {}), reals({0, 3}, {}), {}), Each(0));
}

// y = a b with dy = [[1, 0], [0, 0]]: da's first row is b's first column, db's first column is a's
// first row. In transposed operands the same numbers are transposed.
TEST(Matmul, GivesCotangentsInTheLayoutOfEachOperand) {
  const Literal dy = reals({2, 2}, {1, 0, 0, 0});
  const auto cotangents = [&](const Literal& a, const Literal& b, MatmulOptions options) {
    return differentiate({a, b}, dy,
                         [&](GraphBuilder&, const auto& x) { return matmul(x[0], x[1], options); });
  };
  const auto plain = cotangents(kA, kB, {});
  EXPECT_THAT(elements(plain[0]), ElementsAre(7, 9, 11, 0, 0, 0));
  EXPECT_THAT(elements(plain[1]), ElementsAre(1, 0, 2, 0, 3, 0));
  const auto both =
      cotangents(kATransposed, kBTransposed, {.transpose_a = true, .transpose_b = true});
  EXPECT_THAT(elements(both[0]), ElementsAre(7, 0, 9, 0, 11, 0));
  EXPECT_THAT(elements(both[1]), ElementsAre(1, 2, 3, 0, 0, 0));
}

TEST(Matmul, GradientNeedsNoTransposedCopy) {
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true}) {
      GraphBuilder builder;
      const Tensor a = builder.input("a", Role::batch, {DType::f32, {4, 4}});
      const Tensor b = builder.input("b", Role::batch, {DType::f32, {4, 4}});
      const Tensor y = matmul(a, b, {.transpose_a = transpose_a, .transpose_b = transpose_b});
      backward(builder, std::vector{y}, std::vector{a}, std::vector{a, b});
      for (const Node& node : builder.graph().nodes()) EXPECT_EQ(node.op->name, "matmul");
      EXPECT_EQ(builder.graph().nodes().size(), 3U);
    }
}

TEST(Matmul, KeepsF32OfNarrowOperandsIfAsked) {
  GraphBuilder builder;
  const Tensor a = builder.input("a", Role::batch, {DType::bf16, {2, 3}});
  const Tensor b = builder.input("b", Role::batch, {DType::bf16, {3, 2}});
  EXPECT_EQ(matmul(a, b).dtype(), DType::bf16);
  EXPECT_EQ(matmul(a, b, {.out_dtype = DType::f32}).dtype(), DType::f32);
  EXPECT_THAT(usage_error([&] { matmul(a, b, {.out_dtype = DType::f16}); }),
              HasSubstr("out_dtype f16 of a bf16[2,3]"));
  EXPECT_THAT(usage_error([&] { matmul(a, b, {.out_dtype = DType::f64}); }),
              HasSubstr("out_dtype f64"));
}

// The magnitude is K times the sum of |a||b|: what an accumulator's rounding multiplies.
TEST(Matmul, TellsTheMagnitudeOfItsTerms) {
  GraphBuilder builder;
  const Tensor a = builder.input("a", Role::batch, {DType::f64, {1, 2}});
  const Tensor b = builder.input("b", Role::batch, {DType::f64, {2, 1}});
  matmul(a, b);
  const Literal left = reals({1, 2}, {3, -4});
  const Literal right = reals({2, 1}, {5, 1});
  std::vector<std::vector<double>> magnitudes;
  const std::vector<Literal> y = interpret_node(builder.graph().nodes()[0], {{DType::f64, {1, 1}}},
                                                {&left, &right}, &magnitudes);
  EXPECT_THAT(elements(y[0]), ElementsAre(11));
  ASSERT_EQ(magnitudes.size(), 1U);
  EXPECT_THAT(magnitudes[0], ElementsAre(DoubleEq(2 * (15 + 4))));
}

TEST(Linear, MultipliesAllRowsOnce) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {2, 3, 4}});
  const Tensor weight = builder.input("weight", Role::parameter, {DType::f32, {5, 4}});
  const Tensor bias = builder.input("bias", Role::parameter, {DType::f32, {5}});
  EXPECT_EQ(linear(x, weight, bias).shape(), (Shape{2, 3, 5}));
  int products = 0;
  for (const Node& node : builder.graph().nodes()) products += node.op->name == "matmul";
  EXPECT_EQ(products, 1);
}

TEST(Linear, AddsItsBias) {
  const Literal weight = reals({2, 3}, {1, 0, 1, 0, 1, 0});
  const Literal y = evaluate({reals({1, 1, 3}, {1, 2, 3}), weight, reals({2}, {10, 20})},
                             [](GraphBuilder&, const auto& x) { return linear(x[0], x[1], x[2]); });
  EXPECT_EQ(y.shape(), (Shape{1, 1, 2}));
  EXPECT_THAT(elements(y), ElementsAre(14, 22));
  EXPECT_THAT(elements(evaluate({reals({3}, {1, 2, 3}), weight},
                                [](GraphBuilder&, const auto& x) { return linear(x[0], x[1]); })),
              ElementsAre(4, 2));
}

TEST(Linear, NamesWhatDoesNotFit) {
  GraphBuilder builder;
  const auto make = [&](const char* name, DType dtype, Shape shape) {
    return builder.input(name, Role::batch, {dtype, std::move(shape)});
  };
  const Tensor x = make("x", DType::f32, {2, 4});
  const Tensor weight = make("w", DType::f32, {5, 3});
  const SourceLoc line{"models/example.cpp", 7};
  EXPECT_EQ(usage_error([&] { linear(x, weight, {}, line); }),
            "linear: x f32[2,4] and weight f32[5,3] differ in their last extent "
            "(models/example.cpp:7)");
  const Tensor good = make("good", DType::f32, {5, 4});
  EXPECT_THAT(usage_error([&] { linear(x, good, make("b", DType::f32, {4})); }),
              HasSubstr("needs bias f32[5], got f32[4]"));
  EXPECT_THAT(usage_error([&] {
                linear(x, make("n", DType::bf16, {5, 4}));
              }),
              HasSubstr("differ in dtype"));
}

}  // namespace
}  // namespace fullbore
