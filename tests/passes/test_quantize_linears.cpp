#include "fullbore/passes/gemm/quantize_linears.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fullbore/base/philox.h"
#include "fullbore/base/quantize.h"
#include "fullbore/device/interpret.h"
#include "fullbore/ir/print.h"
#include "fullbore/ir/verify.h"
#include "fullbore/ops/ops.h"

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Tensor parameter(GraphBuilder& builder, const char* name, Shape shape) {
  return builder.input(name, Role::parameter, {DType::f32, std::move(shape)});
}

std::vector<std::string> input_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Graph::Input& input : graph.inputs()) names.push_back(input.name);
  return names;
}

QuantizedLinears quantize(const Graph& graph, const std::set<std::string>& parameters) {
  QuantizedLinears result = quantize_linears(graph, parameters);
  EXPECT_EQ(verify(result.graph), "") << print(result.graph);
  EXPECT_EQ(print(quantize_linears(result.graph, parameters).graph), print(result.graph))
      << "a second time";
  return result;
}

/// Values of the State by name: f32 by a formula, 8-bit forms made of those.
std::vector<Literal> values(const Graph& graph, const Graph& original) {
  const auto formula = [](const std::string& name, const TensorType& type) {
    Literal literal(type);
    PhiloxStream draws(name.size());
    for (int64_t i = 0; i < literal.elements(); ++i) literal.put(i, draws.normal());
    literal.round();
    return literal;
  };
  std::vector<Literal> result;
  for (const Graph::Input& input : graph.inputs()) {
    const TensorType& type = graph.type(input.value);
    std::string stem = input.name.substr(0, input.name.rfind('.'));
    const bool is_weight = input.name == int8_weight_name(stem);
    const bool is_scale = input.name == int8_scale_name(stem);
    if (!is_weight && !is_scale) {
      result.push_back(formula(input.name, type));
      continue;
    }
    const TensorType& whole =
        original.type(original.inputs()[static_cast<size_t>(original.find_input(stem))].value);
    const Literal weights = formula(stem, whole);
    std::vector<float> numbers(weights.reals().begin(), weights.reals().end());
    std::vector<int8_t> q(numbers.size());
    std::vector<float> scales(static_cast<size_t>(whole.shape[0]));
    EXPECT_TRUE(
        quantize_rows(numbers.data(), whole.shape[0], whole.shape[1], q.data(), scales.data()));
    result.push_back(is_weight ? Literal::of(type, {q.begin(), q.end()})
                               : Literal::of(type, {scales.begin(), scales.end()}));
  }
  return result;
}

// As near as 8 bits are.
void expect_alike(const Graph& before, const Graph& after) {
  const std::vector<Literal> expected = interpret(before, values(before, before));
  const std::vector<Literal> got = interpret(after, values(after, before));
  ASSERT_EQ(got.size(), expected.size());
  for (size_t o = 0; o < got.size(); ++o) {
    ASSERT_EQ(got[o].type(), expected[o].type());
    for (int64_t i = 0; i < got[o].elements(); ++i)
      EXPECT_NEAR(got[o].at(i), expected[o].at(i), 0.2) << o << ", " << i;
  }
}

TEST(QuantizeLinears, TheProductOfAParameterReadsItsEightBitForm) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {2, 3, 8}});
  const Tensor bias = parameter(builder, "b", {4});
  builder.output("y", linear(x, parameter(builder, "w", {4, 8}), bias));
  const Graph graph = builder.take();
  const QuantizedLinears result = quantize(graph, {"w", "b", "other"});
  EXPECT_THAT(result.replaced, ElementsAre("w"));
  EXPECT_THAT(result.kept, IsEmpty());
  EXPECT_THAT(input_names(result.graph), ElementsAre("x", "b", "w.int8", "w.int8_scale"));
  EXPECT_THAT(print(result.graph), Not(HasSubstr("matmul")));
  for (const Graph::Input& input : result.graph.inputs())
    EXPECT_EQ(input.role, input.name == "x"   ? Role::batch
                          : input.name == "b" ? Role::parameter
                                              : Role::frozen);
  expect_alike(graph, result.graph);
}

TEST(QuantizeLinears, ATableIsStillLookedUpInAsItIs) {
  GraphBuilder builder;
  const Tensor tokens = builder.input("tokens", Role::batch, {DType::i32, {3}});
  const Tensor table = parameter(builder, "table", {5, 8});
  builder.output("logits", linear(gather(table, tokens), table));
  const Graph graph = builder.take();
  const QuantizedLinears result = quantize(graph, {"table"});
  EXPECT_THAT(result.replaced, ElementsAre("table"));
  EXPECT_THAT(result.kept, ElementsAre("table"));
  EXPECT_THAT(input_names(result.graph),
              ElementsAre("tokens", "table", "table.int8", "table.int8_scale"));
  expect_alike(graph, result.graph);
}

TEST(QuantizeLinears, OtherUsesOfAMatrixAreLeftAlone) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {3, 4}});
  const Tensor up = parameter(builder, "up", {4, 6});        // x W
  const Tensor left = parameter(builder, "left", {3, 4});    // W x^T
  const Tensor other = parameter(builder, "other", {5, 4});  // not asked for
  builder.output("a", matmul(x, up));
  builder.output("b", matmul(left, x, {.transpose_b = true}));
  builder.output("c", linear(x, other));
  const Graph graph = builder.take();
  const QuantizedLinears result = quantize(graph, {"up", "left"});
  EXPECT_THAT(result.replaced, IsEmpty());
  EXPECT_EQ(print(result.graph), print(graph));
}

TEST(QuantizeLinears, LoopsReadTheFormsThatTheyCapture) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {3, 8}});
  const Tensor once = parameter(builder, "once", {8, 8});
  const Tensor both = parameter(builder, "both", {8, 8});
  const Tensor gain = parameter(builder, "gain", {8});
  const LoopResult made = loop(builder, {x}, {}, {.iterations = 3}, [&](const LoopBody& body) {
    const Tensor inner = loop(body.carried[0].builder(), {body.carried[0]}, {}, {.iterations = 2},
                              [&](const LoopBody& in) {
                                const Tensor h = linear(in.carried[0], once) * 0.2 * gain;
                                return IterationResults{.carried = {h}, .stacked = {}};
                              })
                             .carried[0];
    const Tensor h = linear(inner, both) * 0.2 + matmul(inner, both) * 0.1;
    return IterationResults{.carried = {h}, .stacked = {reduce_sum(h, {1})}};
  });
  builder.output("y", made.carried[0]);
  builder.output("sums", made.stacked[0]);
  const Graph graph = builder.take();
  const QuantizedLinears result = quantize(graph, {"once", "both"});
  EXPECT_THAT(result.replaced, ElementsAre("both", "once"));
  EXPECT_THAT(result.kept, ElementsAre("both"));
  EXPECT_THAT(input_names(result.graph),
              ElementsAre("x", "both", "gain", "once.int8", "once.int8_scale", "both.int8",
                          "both.int8_scale"));
  expect_alike(graph, result.graph);
}

TEST(QuantizeLinears, ALossThatMakesItsLogitsReadsTheHeadsForm) {
  GraphBuilder builder;
  const Tensor hidden = builder.input("hidden", Role::batch, {DType::f32, {6, 8}});
  const Tensor targets = builder.input("targets", Role::batch, {DType::i32, {6}});
  const Tensor head = parameter(builder, "head", {5, 8});
  builder.output(
      "loss", linear_cross_entropy(hidden, head, targets, {.loss = {}, .weights = {}, .rows = 2}));
  const Graph graph = builder.take();
  const QuantizedLinears result = quantize(graph, {"head"});
  EXPECT_THAT(input_names(result.graph),
              ElementsAre("hidden", "targets", "head.int8", "head.int8_scale"));
  EXPECT_THAT(result.kept, IsEmpty());
}

TEST(QuantizeLinears, NothingElseMoves) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {2, 4}});
  const Tensor state = builder.input("count", Role::control, {DType::f32, {}});
  const Tensor w = parameter(builder, "w", {4, 4});
  builder.input("unread", Role::parameter, {DType::f32, {2}});
  builder.output("y", linear(x, w));
  builder.output("count", state + 1.0, 1);
  const QuantizedLinears result = quantize(builder.take(), {"w"});
  EXPECT_THAT(input_names(result.graph),
              ElementsAre("x", "count", "unread", "w.int8", "w.int8_scale"));
  EXPECT_EQ(result.graph.outputs()[1].updates, 1);
}

}  // namespace
}  // namespace fullbore
