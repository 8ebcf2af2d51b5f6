#include <gtest/gtest.h>

#include <set>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/error.h"
#include "fullbore/device/interpret.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/ops.h"

namespace fullbore {
namespace {

const TensorType kVector{DType::f64, {3}};
const TensorType kMatrix{DType::f64, {3, 3}};

std::vector<double> values(const GraphBuilder& builder, Tensor tensor,
                           const std::vector<Literal>& inputs) {
  Graph graph = builder.graph();
  graph.add_output("", tensor.value());
  return interpret(graph, inputs).back().reals();
}

TEST(Backward, AddsUpWhatFlowsByEveryPath) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, kVector);
  const Tensor d = gradient(reduce_sum(x * x + x * 3.0 + x, {0}), std::span(&x, 1))[0];
  EXPECT_EQ(values(builder, d, {Literal::of(kVector, {1, -2, 0.5})}),
            (std::vector<double>{6, 0, 5}));
}

TEST(Backward, EndsAtStopGradientAndAtIntegers) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, kVector);
  const Tensor whole = cast(cast(x, DType::i64), DType::f64);
  const Tensor d = gradient(reduce_sum(stop_gradient(x) * x + whole, {0}), std::span(&x, 1))[0];
  EXPECT_EQ(values(builder, d, {Literal::of(kVector, {1, -2, 0.5})}),
            (std::vector<double>{1, -2, 0.5}));
}

TEST(Backward, GivesZerosWhereNothingFlows) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, kVector);
  const Tensor y = builder.input("y", Role::batch, kMatrix);
  const std::vector<Tensor> wanted = {y, x};
  const std::vector<Tensor> d = gradient(reduce_sum(x, {0}), wanted);
  EXPECT_EQ(d[0].type(), kMatrix);
  const std::vector<Literal> inputs = {Literal(kVector), Literal(kMatrix)};
  EXPECT_EQ(values(builder, d[0], inputs), std::vector<double>(9, 0));
  EXPECT_EQ(values(builder, d[1], inputs), std::vector<double>(3, 1));
}

TEST(Backward, DifferentiatesByIntermediateValuesAndTheirOriginsAtOnce) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, kVector);
  const Tensor y = x * 2.0;
  const std::vector<Tensor> wanted = {x, y, y};
  const std::vector<Tensor> d = gradient(reduce_sum(y * y, {0}), wanted);
  const std::vector<Literal> inputs = {Literal::of(kVector, {1, 2, 3})};
  EXPECT_EQ(values(builder, d[0], inputs), (std::vector<double>{8, 16, 24}));
  EXPECT_EQ(values(builder, d[1], inputs), (std::vector<double>{4, 8, 12}));
  EXPECT_EQ(values(builder, d[2], inputs), (std::vector<double>{4, 8, 12}));
}

TEST(Backward, EndsAtAnOpWithoutDerivativeWhoseResultIsWanted) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, kVector);
  const Tensor y = round(x);
  const std::vector<Tensor> wanted = {x, y};
  const std::vector<Tensor> d = gradient(reduce_sum(y * x, {0}), wanted);
  const std::vector<Literal> inputs = {Literal::of(kVector, {1.25, -2, 0.25})};
  EXPECT_EQ(values(builder, d[0], inputs), (std::vector<double>{1, -2, 0}));
  EXPECT_EQ(values(builder, d[1], inputs), (std::vector<double>{1.25, -2, 0.25}));
}

// However a composite is differentiated, an operand that is given to it several times must not be
// counted too often.
TEST(Backward, CountsAnOperandThatIsGivenTwiceOnce) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f64, {1, 1, 2, 2}});
  const Tensor y = attention(x, x, x);
  const Tensor a = gradient(reduce_sum(y * y, {0, 1, 2, 3}), std::span(&x, 1))[0];
  const Tensor q = x * 1.0, k = x * 1.0, v = x * 1.0;
  const Tensor z = attention(q, k, v);
  const Tensor b = gradient(reduce_sum(z * z, {0, 1, 2, 3}), std::span(&x, 1))[0];
  const std::vector<Literal> inputs = {Literal::of(x.type(), {0.3, -1, 0.7, 0.2})};
  const std::vector<double> left = values(builder, a, inputs), right = values(builder, b, inputs);
  for (size_t i = 0; i < left.size(); ++i) EXPECT_NEAR(left[i], right[i], 1e-12);
}

// Two layers, of which the first is frozen: no node is emitted for it, and the forward part of the
// first layer is read by none of the gradient's nodes.
TEST(Backward, SpendsNothingOnFrozenParameters) {
  const auto nodes_for = [](bool first, bool second) {
    GraphBuilder builder;
    const Tensor x = builder.input("x", Role::batch, kMatrix);
    const Tensor w1 = builder.input("w1", Role::parameter, kMatrix);
    const Tensor w2 = builder.input("w2", Role::parameter, kMatrix);
    const Tensor loss = reduce_sum(matmul(tanh(matmul(x, w1)), w2), {0, 1});
    const size_t before = builder.graph().nodes().size();
    std::vector<Tensor> wanted;
    if (first) wanted.push_back(w1);
    if (second) wanted.push_back(w2);
    gradient(loss, wanted);
    std::vector<int> count(2, 0);  // contractions, others
    for (size_t i = before; i < builder.graph().nodes().size(); ++i)
      ++count[builder.graph().nodes()[i].op->is(Tag::contraction) ? 0 : 1];
    return count;
  };
  EXPECT_EQ(nodes_for(true, true)[0], 3);                        // dW2, dh, dW1; x wants none
  EXPECT_EQ(nodes_for(false, true)[0], 1);                       // dW2
  EXPECT_EQ(nodes_for(true, false)[0], 2);                       // dh, dW1
  EXPECT_EQ(nodes_for(false, false), (std::vector<int>{0, 1}));  // the loss's own cotangent
  EXPECT_LT(nodes_for(false, true)[1], nodes_for(true, true)[1]);
}

TEST(Backward, NamesTheModelsLineAndModuleOnEveryNode) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, kVector);
  builder.push_scope("layers.0");
  const SourceLoc line{"models/example.cpp", 42};
  const Tensor y = softplus(gelu(tanh(x, line), false, line), line);
  builder.pop_scope();
  builder.push_scope("optimiser");
  const size_t before = builder.graph().nodes().size();
  const Tensor one = full(builder, kVector, 1, {"models/example.cpp", 7});
  const size_t after = builder.graph().nodes().size();
  backward(builder, std::span(&y, 1), std::span(&one, 1), std::span(&x, 1));
  ASSERT_GT(builder.graph().nodes().size(), after);
  EXPECT_EQ(builder.graph().nodes()[before].scope, "optimiser");
  for (size_t i = after; i < builder.graph().nodes().size(); ++i) {
    EXPECT_EQ(builder.graph().nodes()[i].location, "models/example.cpp:42");
    EXPECT_EQ(builder.graph().nodes()[i].scope, "layers.0");
  }
}

TEST(Backward, RefusesWhatHasNoGradient) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, kVector);
  const Tensor n = builder.input("n", Role::batch, {DType::i32, {}});
  const auto message = [&](const auto& call) {
    try {
      call();
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message([&] { gradient(x, std::span(&x, 1)); }),
            "gradient: the loss must be a floating scalar, not f64[3]");
  EXPECT_EQ(message([&] { gradient(n, std::span(&x, 1)); }),
            "gradient: the loss must be a floating scalar, not i32[]");
  const Tensor scalar = reduce_sum(x, {0});
  EXPECT_EQ(message([&] {
              backward(builder, std::span(&x, 1), std::span(&scalar, 1), std::span(&x, 1));
            }),
            "backward: output 0 is f64[3] and its cotangent f64[]; both must have one floating "
            "type");
  EXPECT_EQ(message([&] { backward(builder, std::span(&x, 1), {}, std::span(&x, 1)); }),
            "backward: 0 cotangents for 1 outputs");
}

}  // namespace
}  // namespace fullbore
