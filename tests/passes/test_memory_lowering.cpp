#include "fullbore/passes/memory/memory_lowering.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fullbore/autodiff/backward.h"
#include "fullbore/device/interpret.h"
#include "fullbore/ir/verify.h"
#include "fullbore/ops/ops.h"
#include "fullbore/passes/memory/order_nodes.h"
#include "tests/support/gradcheck.h"

/// Graphs in which so much is on offer that many values are given up at a time.
namespace fullbore {
namespace {

constexpr int64_t kSteps = 400;

TensorType square(int64_t rows) { return {DType::f64, {rows, 4}}; }

/// An unrolled recurrence with the gradient of its weight.
Graph recurrence() {
  GraphBuilder builder;
  Tensor x = builder.input("x", Role::batch, square(4));
  const Tensor weight = builder.input("weight", Role::parameter, square(4));
  for (int64_t i = 0; i < kSteps; ++i) x = matmul(x, weight);
  builder.output("gradient", gradient(reduce_sum(x, {0, 1}), std::vector<Tensor>{weight})[0]);
  return builder.take();
}

/// Large values that live across a chain whose every launch takes as much as any other.
Graph plateau(int values) {
  GraphBuilder builder;
  Tensor x = builder.input("x", Role::batch, square(4));
  const Tensor weight = builder.input("weight", Role::parameter, square(4));
  const Tensor rows = builder.input("rows", Role::batch, square(1000));
  std::vector<Tensor> large;
  for (int i = 0; i < values; ++i) {
    const std::string number = fmt::format("{}", i);
    large.push_back(matmul(rows, builder.input("weight." + number, Role::parameter, square(4))));
    builder.output("early." + number, reduce_sum(large.back(), {0, 1}));
  }
  for (int64_t i = 0; i < kSteps; ++i) x = matmul(x, weight);
  for (int i = 0; i < values; ++i)
    builder.output(fmt::format("late.{}", i),
                   reduce_sum(matmul(large[static_cast<size_t>(i)], x), {0, 1}));
  return builder.take();
}

std::vector<Literal> values_of(const Graph& graph) {
  std::vector<Literal> inputs;
  for (const Graph::Input& input : graph.inputs())
    inputs.push_back(random_literal(graph.type(input.value), 3, inputs.size()));
  return interpret(graph, inputs);
}

void expect_same_values(const Graph& a, const Graph& b) {
  EXPECT_EQ(verify(b), "");
  const std::vector<Literal> expected = values_of(a);
  const std::vector<Literal> found = values_of(b);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].bytes(), expected[i].bytes()) << i;
}

TEST(MemoryLowering, LongRecurrencesKeepToTheirLimit) {
  const Graph graph = recurrence();
  const int64_t most = estimated_arena_bytes(graph);
  for (const int64_t limit : {most * 9 / 10, most * 7 / 10, most * 55 / 100}) {
    const Graph less = lower_memory(graph, limit, Means::recomputation);
    EXPECT_LE(estimated_arena_bytes(less), limit);
    EXPECT_LE(less.nodes().size(), 2 * graph.nodes().size()) << "no node runs three times";
    expect_same_values(graph, less);
  }
  const Graph least = lower_memory(graph, 0, Means::recomputation);
  EXPECT_LE(estimated_arena_bytes(least), most * 55 / 100);
  expect_same_values(graph, least);
}

// What may stay is kept: a limit that is nearly met costs little.
TEST(MemoryLowering, LittleIsMadeAgainWhereLittleIsLacking) {
  const Graph graph = recurrence();
  const int64_t most = estimated_arena_bytes(graph);
  const Graph less = lower_memory(graph, most * 98 / 100, Means::recomputation);
  EXPECT_LE(estimated_arena_bytes(less), most * 98 / 100);
  EXPECT_LE(less.nodes().size(), graph.nodes().size() + 2 * kSteps * 5 / 100);
}

TEST(MemoryLowering, PlateausAreLowered) {
  const Graph graph = plateau(8);
  const int64_t large = square(1000).bytes();
  EXPECT_GE(estimated_arena_bytes(graph), 8 * large);
  const Graph less = lower_memory(graph, 3 * large, Means::recomputation);
  EXPECT_LE(estimated_arena_bytes(less), 3 * large);
  expect_same_values(graph, less);
}

TEST(MemoryLowering, LongGraphsAreOrdered) {
  const Graph graph = plateau(3);
  const Graph ordered = order_nodes(graph, {});
  EXPECT_EQ(ordered.nodes().size(), graph.nodes().size()) << "none runs twice";
  EXPECT_LE(estimated_arena_bytes(ordered), estimated_arena_bytes(graph));
  expect_same_values(graph, ordered);
}

}  // namespace
}  // namespace fullbore
