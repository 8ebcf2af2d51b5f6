#include "fullbore/ir/op_def.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fullbore/ops/ops.h"

/// The registry, and what a node costs.
namespace fullbore {
namespace {

TEST(Registry, FindsOpsByName) {
  ASSERT_TRUE(find_op("exp"));
  EXPECT_EQ(&get_op("exp"), find_op("exp"));
  EXPECT_EQ(find_op("no such op"), nullptr);
}

TEST(Registry, IsSortedByName) {
  const std::vector<const OpDef*> ops = all_ops();
  EXPECT_TRUE(std::is_sorted(ops.begin(), ops.end(),
                             [](const OpDef* a, const OpDef* b) { return a->name < b->name; }));
  EXPECT_NE(std::find(ops.begin(), ops.end(), find_op("add")), ops.end());
}

TEST(RegistryDeathTest, RefusesASecondOpOfTheSameName) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(OpRegistrar(OpDef{.name = "exp", .summary = "", .infer = find_op("exp")->infer}),
               "two ops are named 'exp'");
  EXPECT_DEATH(get_op("no such op"), "there is no op 'no such op'");
}

const TensorType kF32{DType::f32, {4, 8}};  // 32 elements, 128 bytes

Cost cost_of(const std::function<Tensor(GraphBuilder&, Tensor)>& build, TensorType type = kF32) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, std::move(type));
  const Tensor y = build(builder, x);
  return node_cost(builder.graph(), *builder.graph().producer_node(y.value()));
}

TEST(NodeCost, OfElementwiseOpsIsTheirScalarsAndOneSweep) {
  const Cost cost = cost_of([](GraphBuilder&, Tensor x) { return exp(x); });
  EXPECT_EQ(cost.flops, 32 * scalar_op_flops(ScalarOp::exp));
  EXPECT_EQ(cost.bytes, 2 * 128);
}

TEST(NodeCost, ReadsAnOperandOnceThatIsUsedTwice) {
  EXPECT_EQ(cost_of([](GraphBuilder&, Tensor x) { return x * x; }).bytes, 2 * 128);
}

TEST(NodeCost, CountsNoArithmeticOnIntegers) {
  const Cost cost = cost_of([](GraphBuilder&, Tensor x) { return x + x; }, {DType::i32, {4, 8}});
  EXPECT_EQ(cost.flops, 0);
  EXPECT_EQ(cost.bytes, 2 * 128);
}

TEST(NodeCost, OfReshapeIsNothingAndOfSliceWhatItTakes) {
  const Cost reshaped = cost_of([](GraphBuilder&, Tensor x) { return reshape(x, {32}); });
  EXPECT_EQ(reshaped.flops + reshaped.bytes, 0);
  EXPECT_EQ(cost_of([](GraphBuilder&, Tensor x) { return slice(x, 0, 0, 1); }).bytes, 2 * 32);
}

TEST(NodeCost, OfALoopIsItsIterationsTimesItsBody) {
  const Cost cost = cost_of([](GraphBuilder& builder, Tensor x) {
    return loop(builder, {x}, {}, {.iterations = 5},
                [](const LoopBody& body) {
                  return IterationResults{.carried = {exp(body.carried[0])}};
                })
        .carried[0];
  });
  EXPECT_EQ(cost.flops, 5 * 32 * scalar_op_flops(ScalarOp::exp));
  EXPECT_EQ(cost.bytes, 5 * 2 * 128);
}

TEST(NodeCost, OfAFusedNodeHasNoTrafficInside) {
  GraphBuilder body("fused");
  body.output("y", exp(neg(body.input("x", Role::local, kF32))));
  const auto graph = std::make_shared<const Graph>(body.take());
  const Cost cost = cost_of(
      [&](GraphBuilder& builder, Tensor x) { return fused(builder, std::vector{x}, graph)[0]; });
  EXPECT_EQ(cost.flops, 32 * (1 + scalar_op_flops(ScalarOp::exp)));
  EXPECT_EQ(cost.bytes, 2 * 128);
}

TEST(Decomposition, TakesAndGivesWhatTheCompositeDoes) {
  const std::vector<TensorType> types = {kF32, {DType::i64, {}}, {DType::i64, {}}};
  const Graph graph =
      decomposition(get_op("dropout"), types, {{"site", int64_t{0}}, {"probability", 0.5}});
  ASSERT_EQ(graph.inputs().size(), 3U);
  EXPECT_EQ(graph.inputs()[0].name, "x0");
  ASSERT_EQ(graph.outputs().size(), 1U);
  EXPECT_EQ(graph.type(graph.outputs()[0].value), kF32);
}

}  // namespace
}  // namespace fullbore
