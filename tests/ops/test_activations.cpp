#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fullbore/ops/ops.h"
#include "tests/ops/differentiate.h"

namespace fullbore {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Function = Tensor (*)(Tensor);

std::vector<double> at(std::vector<double> points, Function f) {
  const Literal x = reals({static_cast<int64_t>(points.size())}, points);
  return elements(evaluate({x}, [&](GraphBuilder&, const auto& in) { return f(in[0]); }));
}
std::vector<double> slope(std::vector<double> points, Function f) {
  const Shape shape{static_cast<int64_t>(points.size())};
  const Literal ones = reals(shape, std::vector<double>(points.size(), 1));
  return elements(differentiate({reals(shape, points)}, ones,
                                [&](GraphBuilder&, const auto& in) { return f(in[0]); })[0]);
}

TEST(Relu, HasNoSlopeAtZero) {
  const Function f = [](Tensor x) { return relu(x); };
  EXPECT_THAT(at({-2, 0, 3}, f), ElementsAre(0, 0, 3));
  EXPECT_THAT(slope({-2, 0, -0.0, 3}, f), ElementsAre(0, 0, 0, 1));
}

TEST(Clamp, HasSlopeOneOnItsBounds) {
  const Function f = [](Tensor x) { return clamp(x, -1, 2); };
  EXPECT_THAT(at({-3, -1, 0.5, 2, 9}, f), ElementsAre(-1, -1, 0.5, 2, 2));
  EXPECT_THAT(slope({-3, -1, 0.5, 2, 9}, f), ElementsAre(0, 1, 1, 1, 0));
}

TEST(Sigmoid, KeepsItsPrecisionInTheLowerTail) {
  const Function f = [](Tensor x) { return sigmoid(x); };
  EXPECT_THAT(at({0}, f), ElementsAre(0.5));
  EXPECT_NEAR(at({-40}, f)[0], 4.248354255291589e-18, 1e-31);
  EXPECT_THAT(at({-1000, 1000}, f), ElementsAre(0, 1));
  EXPECT_THAT(slope({0}, f), ElementsAre(0.25));
}

// By the definitions in double, elsewhere.
TEST(Activations, EqualTheirDefinitions) {
  EXPECT_NEAR(at({1.5}, [](Tensor x) { return silu(x); })[0], 1.2263617142904655, 1e-15);
  EXPECT_NEAR(at({1.5}, [](Tensor x) { return softplus(x); })[0], 1.7014132779827524, 1e-15);
  EXPECT_NEAR(at({1.5}, [](Tensor x) { return gelu(x); })[0], 1.3997891980967129, 1e-15);
  EXPECT_NEAR(at({1.5}, [](Tensor x) { return gelu(x, true); })[0], 1.3995715769802324, 1e-15);
}

TEST(Activations, AreFiniteFarOut) {
  const std::vector<double> far = {-1000, 1000};
  EXPECT_THAT(at(far, [](Tensor x) { return softplus(x); }), ElementsAre(0, 1000));
  for (const Function f :
       {Function([](Tensor x) { return silu(x); }), Function([](Tensor x) { return gelu(x); }),
        Function([](Tensor x) { return gelu(x, true); })}) {
    EXPECT_THAT(at(far, f), ElementsAre(0, 1000));
    EXPECT_THAT(slope(far, f), ElementsAre(DoubleNear(0, 1e-12), DoubleNear(1, 1e-12)));
  }
}

TEST(Activations, OfNarrowOperandsAreComputedInF32) {
  const TensorType type{DType::bf16, {4}};
  for (const char* name : {"sigmoid", "silu", "softplus"}) {
    const Graph graph = decomposition(get_op(name), std::vector{type}, {});
    const Node& last = graph.nodes().back();
    EXPECT_EQ(last.op->name, "cast") << name;
    EXPECT_EQ(graph.type(last.inputs[0]).dtype, DType::f32) << name;
    EXPECT_EQ(graph.type(last.outputs[0]).dtype, DType::bf16) << name;
  }
}

TEST(Clamp, RefusesBoundsThatAreNone) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::i32, {4}});
  EXPECT_THAT(usage_error([&] { clamp(x, 3, 2); }), HasSubstr("needs low <= high"));
  EXPECT_THAT(usage_error([&] { clamp(x, 0, HUGE_VAL); }), HasSubstr("bound inf is no i32"));
}

}  // namespace
}  // namespace fullbore
