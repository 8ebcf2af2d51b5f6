#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fullbore/ops/ops.h"
#include "tests/support/evaluate.h"

/// Movement, sources and casts, each against what a reader works out by hand.
namespace fullbore {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Literal kMatrix = reals({2, 3}, {1, 2, 3, 4, 5, 6});

Literal on_matrix(const std::function<Tensor(Tensor)>& f) {
  return evaluate({kMatrix}, [&](GraphBuilder&, const auto& x) { return f(x[0]); });
}
Literal on_vector(std::vector<double> values, const std::function<Tensor(Tensor)>& f) {
  const auto count = static_cast<int64_t>(values.size());
  return evaluate({reals({count}, std::move(values))},
                  [&](GraphBuilder&, const auto& x) { return f(x[0]); });
}
Literal made(const std::function<Tensor(GraphBuilder&)>& f) {
  return evaluate({}, [&](GraphBuilder& builder, const auto&) { return f(builder); });
}

TEST(Constant, HoldsItsValuesRoundedToItsDType) {
  EXPECT_THAT(elements(made([](GraphBuilder& b) {
                return constant(b, {DType::f64, {3}}, {0.1, -2, 3});
              })),
              ElementsAre(0.1, -2, 3));
  EXPECT_THAT(elements(made([](GraphBuilder& b) {
                return constant(b, {DType::bf16, {1}}, {0.1});
              })),
              ElementsAre(0.10009765625));
  EXPECT_THAT(elements(made([](GraphBuilder& b) {
                return constant(b, {DType::boolean, {2}}, {0, 5});
              })),
              ElementsAre(0, 1));
}

TEST(Full, RepeatsANumber) {
  const Literal y = made([](GraphBuilder& b) { return full(b, {DType::i32, {2, 2}}, 7); });
  EXPECT_EQ(y.type(), (TensorType{DType::i32, {2, 2}}));
  EXPECT_THAT(elements(y), ElementsAre(7, 7, 7, 7));
}

TEST(Iota, CountsAlongOneAxis) {
  EXPECT_THAT(elements(made([](GraphBuilder& b) {
                return iota(b, {DType::i64, {2, 3}}, 0);
              })),
              ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_THAT(elements(made([](GraphBuilder& b) {
                return iota(b, {DType::f32, {2, 3}}, -1);
              })),
              ElementsAre(0, 1, 2, 0, 1, 2));
}

TEST(BroadcastTo, RepeatsRowsAndColumns) {
  const Literal y = evaluate({reals({2, 1}, {1, 2})}, [](GraphBuilder&, const auto& x) {
    return broadcast_to(x[0], {2, 2, 2});
  });
  EXPECT_THAT(elements(y), ElementsAre(1, 1, 2, 2, 1, 1, 2, 2));
}

TEST(Reshape, KeepsTheOrderAndFillsInOneExtent) {
  const Literal y = on_matrix([](Tensor x) { return reshape(x, {3, -1}); });
  EXPECT_EQ(y.shape(), (Shape{3, 2}));
  EXPECT_THAT(elements(y), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(on_matrix([](Tensor x) { return expand_dims(x, -1); }).shape(), (Shape{2, 3, 1}));
  EXPECT_EQ(on_matrix([](Tensor x) { return squeeze(expand_dims(x, 0), 0); }).shape(),
            (Shape{2, 3}));
}

TEST(Reshape, RefusesAnExtentThatIsNoWholeNumber) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {5}});
  EXPECT_NE(usage_error([&] { reshape(x, {2, -1}); }), "");
  EXPECT_NE(usage_error([&] { reshape(x, {-1, -1}); }), "");
}

TEST(Transpose, MovesAxes) {
  EXPECT_THAT(elements(on_matrix([](Tensor x) {
                return transpose(x, {1, 0});
              })),
              ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(elements(on_matrix([](Tensor x) { return swap_axes(x, 0, -1); })),
              ElementsAre(1, 4, 2, 5, 3, 6));
  const Literal cube = reals({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  const Literal y = evaluate({cube}, [](GraphBuilder&, const auto& x) {
    return transpose(x[0], {1, 2, 0});
  });
  EXPECT_THAT(elements(y), ElementsAre(0, 4, 1, 5, 2, 6, 3, 7)) << "y[j,k,i] = x[i,j,k]";
}

TEST(Slice, TakesEveryStrideThElement) {
  EXPECT_THAT(elements(on_matrix([](Tensor x) { return slice(x, 1, 1, 3); })),
              ElementsAre(2, 3, 5, 6));
  EXPECT_THAT(elements(on_matrix([](Tensor x) { return slice(x, 0, 1, 2); })),
              ElementsAre(4, 5, 6));
  EXPECT_THAT(
      elements(on_vector({0, 1, 2, 3, 4, 5, 6}, [](Tensor x) { return slice(x, 0, 1, 7, 3); })),
      ElementsAre(1, 4));
}

TEST(Split, CutsAnAxisIntoParts) {
  const std::vector<Literal> parts = evaluate_all({kMatrix}, [](GraphBuilder&, const auto& x) {
    return split(x[0], -1, {1, 2});
  });
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_THAT(elements(parts[0]), ElementsAre(1, 4));
  EXPECT_THAT(elements(parts[1]), ElementsAre(2, 3, 5, 6));
}

TEST(Pad, PutsZerosBeforeAfterAndBetween) {
  const auto padded = [](int64_t before, int64_t after, int64_t interior) {
    return elements(
        on_vector({1, 2, 3}, [&](Tensor x) { return pad(x, 0, before, after, interior); }));
  };
  EXPECT_THAT(padded(1, 2, 0), ElementsAre(0, 1, 2, 3, 0, 0));
  EXPECT_THAT(padded(0, 0, 2), ElementsAre(1, 0, 0, 2, 0, 0, 3));
  EXPECT_THAT(padded(-1, 1, 0), ElementsAre(2, 3, 0));
  EXPECT_THAT(padded(-1, -1, 1), ElementsAre(0, 2, 0));
  EXPECT_THAT(padded(-3, 0, 0), IsEmpty());
  EXPECT_THAT(padded(-4, 3, 0), ElementsAre(0, 0)) << "cropped elements do not come back";
  EXPECT_THAT(elements(on_matrix([](Tensor x) { return pad(x, 0, 1, 0); })),
              ElementsAre(0, 0, 0, 1, 2, 3, 4, 5, 6));
}

TEST(Concat, JoinsParts) {
  const Literal column = reals({2, 1}, {7, 8});
  const Literal y =
      evaluate({kMatrix, column}, [](GraphBuilder&, const auto& x) { return concat(x, -1); });
  EXPECT_THAT(elements(y), ElementsAre(1, 2, 3, 7, 4, 5, 6, 8));
}

TEST(Reverse, TurnsAnAxisAround) {
  EXPECT_THAT(elements(on_matrix([](Tensor x) { return reverse(x, 1); })),
              ElementsAre(3, 2, 1, 6, 5, 4));
  EXPECT_THAT(elements(on_matrix([](Tensor x) { return reverse(x, 0); })),
              ElementsAre(4, 5, 6, 1, 2, 3));
}

TEST(StopGradient, IsTheIdentity) {
  EXPECT_THAT(elements(on_matrix([](Tensor x) { return stop_gradient(x); })),
              ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Movement, KeepsAll64BitsOfIntegers) {
  const double beyond = 9007199254740992.0;  // 2^53: the next integer is no double
  Literal big = integers(DType::i64, {2}, {beyond, -beyond});
  big.integers()[0] += 1;
  const Literal y = evaluate({big}, [](GraphBuilder&, const auto& x) {
    return reverse(transpose(concat(std::vector{x[0]}, 0), {0}), 0);
  });
  EXPECT_EQ(y.integers()[1], (int64_t{1} << 53) + 1);
}

TEST(Cast, TruncatesWrapsAndCompares) {
  const auto cast_to = [](DType dtype, std::vector<double> values) {
    return elements(on_vector(std::move(values), [&](Tensor x) { return cast(x, dtype); }));
  };
  EXPECT_THAT(cast_to(DType::i32, {1.9, -1.9, -0.5}), ElementsAre(1, -1, 0));
  EXPECT_THAT(cast_to(DType::boolean, {0, 0.1, -3}), ElementsAre(0, 1, 1));
  EXPECT_THAT(cast_to(DType::bf16, {0.1}), ElementsAre(DoubleEq(0.1))) << "floats keep doubles";
  const Literal wrapped =
      evaluate({integers(DType::i32, {3}, {256, -1, 300})},
               [](GraphBuilder&, const auto& x) { return cast(x[0], DType::u8); });
  EXPECT_THAT(elements(wrapped), ElementsAre(0, 255, 44));
  const Literal truths =
      evaluate({integers(DType::i32, {2}, {256, 0})},
               [](GraphBuilder&, const auto& x) { return cast(x[0], DType::boolean); });
  EXPECT_THAT(elements(truths), ElementsAre(1, 0));
}

TEST(Cast, ToItsOwnDTypeIsNothing) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {2}});
  EXPECT_EQ(cast(x, DType::f32).value(), x.value());
}

TEST(Select, PicksElementByElement) {
  const Literal y = evaluate(
      {integers(DType::boolean, {3}, {1, 0, 1}), reals({3}, {1, 2, 3}), reals({3}, {10, 20, 30})},
      [](GraphBuilder&, const auto& x) { return select(x[0], x[1], x[2]); });
  EXPECT_THAT(elements(y), ElementsAre(1, 20, 3));
}

TEST(Greater, IsLessTurnedAround) {
  const std::vector<Literal> y = evaluate_all(
      {reals({3}, {1, 2, 3}), reals({3}, {2, 2, 2})}, [](GraphBuilder&, const auto& x) {
        return std::vector{greater(x[0], x[1]), greater_equal(x[0], x[1])};
      });
  EXPECT_THAT(elements(y[0]), ElementsAre(0, 0, 1));
  EXPECT_THAT(elements(y[1]), ElementsAre(0, 1, 1));
}

}  // namespace
}  // namespace fullbore
