// How many rows of logits exist at a time is the target's to raise.
#include <gtest/gtest.h>

#include "fullbore/ir/op_def.h"
#include "fullbore/ops/ops.h"
#include "fullbore/passes/canonicalize/expand_composites.h"

namespace fullbore {
namespace {

constexpr int64_t kRows = 24, kWidth = 4, kClasses = 5;

Graph loss_of_two_rows_at_a_time() {
  GraphBuilder builder;
  const Tensor hidden = builder.input("hidden", Role::batch, {DType::f32, {kRows, kWidth}});
  const Tensor weight = builder.input("weight", Role::batch, {DType::f32, {kClasses, kWidth}});
  const Tensor targets = builder.input("targets", Role::batch, {DType::i32, {kRows}});
  builder.output("loss", linear_cross_entropy(hidden, weight, targets, {.rows = 2}));
  return builder.graph();
}

// Iterations of the graph's one loop; 0: it has none.
int64_t iterations(const Graph& graph) {
  for (const Node& node : graph.nodes())
    if (node.op->name == "loop") return node.attributes.get<int64_t>("iterations");
  return 0;
}

TEST(LogitRows, AreThoseOfTheCallOrAsManyAsTheTargetWants) {
  const Graph graph = loss_of_two_rows_at_a_time();
  const auto expanded = [&](int64_t bytes) {
    Target target;
    target.native_ops[&get_op("relu")];
    target.logits_bytes = bytes;
    return expand_composites(graph, target);
  };
  EXPECT_EQ(iterations(expanded(0)), kRows / 2);
  EXPECT_EQ(iterations(expanded(4 * kClasses)), kRows / 2) << "no fewer than asked for";
  EXPECT_EQ(iterations(expanded(4 * kClasses * 6)), kRows / 6);
  EXPECT_EQ(iterations(expanded(4 * kClasses * kRows)), 0);
}

}  // namespace
}  // namespace fullbore
