#include <gtest/gtest.h>

#include <algorithm>

#include "fullbore/autodiff/backward.h"
#include "fullbore/device/interpret.h"
#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ir/print.h"
#include "fullbore/ir/verify.h"
#include "tests/support/gradcheck.h"
#include "tests/support/loop_programs.h"

namespace fullbore {
namespace {

std::vector<bool> floating_inputs(const Graph& graph) {
  std::vector<bool> wanted;
  for (const Graph::Input& input : graph.inputs())
    wanted.push_back(is_floating(graph.type(input.value).dtype));
  return wanted;
}

// Inputs and random cotangents of a gradient graph.
std::vector<Literal> with_cotangents(const Graph& gradient, std::vector<Literal> inputs,
                                     uint64_t seed) {
  for (size_t i = inputs.size(); i < gradient.inputs().size(); ++i)
    inputs.push_back(random_literal(gradient.type(gradient.inputs()[i].value), seed, i));
  return inputs;
}

int count_loops(const Graph& graph) {
  return static_cast<int>(std::count_if(graph.nodes().begin(), graph.nodes().end(), is_loop));
}

class LoopGradient : public ::testing::TestWithParam<LoopProgram> {
 protected:
  const Graph by_loop_ = loop_program_graph(GetParam(), false);
  const Graph unrolled_ = loop_program_graph(GetParam(), true);
  const std::vector<Literal> inputs_ = loop_program_inputs(GetParam(), 11);
};

TEST_P(LoopGradient, TheLoopItselfEqualsItsUnrolling) {
  EXPECT_EQ(compare_literals(interpret(by_loop_, inputs_), interpret(unrolled_, inputs_), 1e-12),
            "");
}

TEST_P(LoopGradient, EqualsTheGradientOfTheUnrolledProgram) {
  const Graph a = gradient_graph(by_loop_, floating_inputs(by_loop_));
  const Graph b = gradient_graph(unrolled_, floating_inputs(unrolled_));
  EXPECT_EQ(verify(a), "");
  EXPECT_EQ(count_loops(b), 0);
  EXPECT_EQ(compare_literals(interpret(a, with_cotangents(a, inputs_, 3)),
                             interpret(b, with_cotangents(b, inputs_, 3)), 1e-12),
            "")
      << print(a);
}

TEST_P(LoopGradient, OfOneInputAloneIsThatPartOfTheWhole) {
  const std::vector<bool> all = floating_inputs(by_loop_);
  const Graph whole = gradient_graph(by_loop_, all);
  const std::vector<Literal> expected = interpret(whole, with_cotangents(whole, inputs_, 3));
  size_t next = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i]) continue;
    std::vector<bool> one(all.size(), false);
    one[i] = true;
    const Graph part = gradient_graph(by_loop_, one);
    EXPECT_EQ(compare_literals(interpret(part, with_cotangents(part, inputs_, 3)),
                               {expected[next++]}, 1e-12),
              "")
        << by_loop_.inputs()[i].name;
  }
}

TEST_P(LoopGradient, OfTheGradientEqualsThatOfTheUnrolledProgram) {
  const Graph a = gradient_graph(by_loop_, floating_inputs(by_loop_));
  const Graph b = gradient_graph(unrolled_, floating_inputs(unrolled_));
  const Graph second_a = gradient_graph(a, floating_inputs(a));
  const Graph second_b = gradient_graph(b, floating_inputs(b));
  const std::vector<Literal> inputs = with_cotangents(a, inputs_, 3);
  EXPECT_EQ(compare_literals(interpret(second_a, with_cotangents(second_a, inputs, 4)),
                             interpret(second_b, with_cotangents(second_b, inputs, 4)), 1e-11),
            "");
}

INSTANTIATE_TEST_SUITE_P(EveryForm, LoopGradient, ::testing::ValuesIn(loop_programs()),
                         [](const auto& each) { return each.param.name; });

TEST(LoopGradientOfGradient, AgreesWithFiniteDifferences) {
  for (const LoopProgram& program : loop_programs()) {
    if (program.name != "recurrence" && program.name != "stop_at_two" && program.name != "nested")
      continue;
    const Graph graph = loop_program_graph(program, false);
    const Graph first = gradient_graph(graph, floating_inputs(graph));
    const std::vector<Literal> inputs = with_cotangents(first, loop_program_inputs(program, 11), 3);
    const GradcheckCase check{first, inputs, floating_inputs(first)};
    EXPECT_EQ(gradcheck(check).problem, "") << program.name;
    EXPECT_NE(gradcheck(check, {.gradient_scale = 1.01}).problem, "") << program.name;
  }
}

TEST(LoopGradientRules, OfALoopWithoutIterationsIsTheIdentity) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f64, {3}});
  const Tensor w = builder.input("w", Role::batch, {DType::f64, {3}});
  const LoopResult result = loop(builder, {x}, {}, {.iterations = 0}, [&](const LoopBody& body) {
    return IterationResults{.carried = {tanh(body.carried[0] * w)}};
  });
  const Tensor loss = reduce_sum(result.carried[0] * result.carried[0], {0});
  const std::vector<Tensor> wanted = {x, w};
  for (Tensor d : gradient(loss, wanted)) builder.output("", d);
  const std::vector<Literal> inputs = {Literal::of({DType::f64, {3}}, {1, 2, 3}),
                                       Literal::of({DType::f64, {3}}, {4, 5, 6})};
  const std::vector<Literal> gradients = interpret(builder.graph(), inputs);
  EXPECT_EQ(gradients[0].reals(), (std::vector<double>{2, 4, 6}));
  EXPECT_EQ(gradients[1].reals(), (std::vector<double>{0, 0, 0}));
}

// A loop that makes nothing is no graph.
TEST(LoopGradientRules, WhereEveryPathEndsThereIsNoLoop) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f64, {2, 3}});
  const LoopResult result = loop(builder, {}, {x}, {.iterations = 2}, [&](const LoopBody& body) {
    return IterationResults{{}, {floor(body.slices[0])}};
  });
  const Tensor loss = reduce_sum(result.stacked[0] * x, {0, 1});
  const std::vector<Tensor> wanted = {x};
  builder.output("dx", gradient(loss, wanted)[0]);
  EXPECT_EQ(verify(builder.graph()), "");
  int loops = 0;
  for (const Node& node : builder.graph().nodes()) loops += node.body != nullptr;
  EXPECT_EQ(loops, 1);
  const std::vector<Literal> inputs = {Literal::of(x.type(), {0.5, 1.5, 2.5, -0.5, 3, -2})};
  EXPECT_EQ(interpret(builder.graph(), inputs)[0].reals(),
            (std::vector<double>{0, 1, 2, -1, 3, -2}));
}

// The backward loop reads captured and sliced operands themselves, and computes again what the index
// alone determines: h is all that must be kept of an iteration of h <- h * w + x_t * sin(t).
TEST(LoopGradientRules, StacksNothingThatCanBeHadOtherwise) {
  GraphBuilder builder;
  const TensorType vector{DType::f64, {3}};
  const Tensor h = builder.input("h", Role::batch, vector);
  const Tensor x = builder.input("x", Role::batch, {DType::f64, {4, 3}});
  const Tensor w = builder.input("w", Role::batch, vector);
  const LoopResult result = loop(builder, {h}, {x}, {.iterations = 4}, [&](const LoopBody& body) {
    const Tensor phase = sin(cast(body.index, DType::f64));
    return IterationResults{.carried = {body.carried[0] * w + body.slices[0] * phase}};
  });
  const std::vector<Tensor> wanted = {h, x, w};
  gradient(reduce_sum(result.carried[0], {0}), wanted);
  const Node* forward = nullptr;
  for (const Node& node : builder.graph().nodes())
    if (is_loop(node) && !node.attributes.get<bool>("reverse")) forward = &node;
  ASSERT_NE(forward, nullptr);
  const LoopShape shape(*forward);
  ASSERT_EQ(shape.stacked, 1) << print(builder.graph());
  EXPECT_EQ(forward->body->outputs()[1].value, forward->body->inputs()[1].value) << "not h";
}

TEST(LoopGradientRules, SumsLowPrecisionCotangentsInF32) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::bf16, {3}});
  const Tensor w = builder.input("w", Role::batch, {DType::bf16, {3}});
  const LoopResult result = loop(builder, {x}, {}, {.iterations = 4}, [&](const LoopBody& body) {
    return IterationResults{.carried = {body.carried[0] * w}};
  });
  const Tensor d = gradient(reduce_sum(result.carried[0], {0}), std::span(&w, 1))[0];
  EXPECT_EQ(d.dtype(), DType::bf16);
  const Node& backward =
      *std::find_if(builder.graph().nodes().rbegin(), builder.graph().nodes().rend(), is_loop);
  const Value sum = backward.outputs[1];
  EXPECT_EQ(builder.graph().type(sum).dtype, DType::f32) << print(builder.graph());
}

}  // namespace
}  // namespace fullbore
