// Rows that nobody needs hold what was in their memory: whoever looks at values whole is shown zeros.
#include "fullbore/passes/support/defined_rows.h"

#include <gtest/gtest.h>

#include "fullbore/ir/op_def.h"
#include "fullbore/ops/ops.h"

namespace fullbore {
namespace {

constexpr int64_t kRows = 64, kWidth = 48;

// Packs the first rows of x in each of three iterations, in reverse order.
Graph packing() {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {kRows, kWidth}});
  const Tensor indices = builder.input("indices", Role::batch, {DType::i32, {kRows, 1}});
  const Tensor count = builder.input("count", Role::batch, {DType::i64, {}});
  const LoopResult result = loop(builder, {x}, {}, {.iterations = 3}, [&](const LoopBody& body) {
    return IterationResults{
        .carried = {gather_sum(sin(body.carried[0]), indices, indices, {count, count})}};
  });
  builder.output("first", reduce_sum(slice(result.carried[0], 0, 0, 5), {0, 1}));
  return builder.take();
}

int64_t operands_of_gathers(const Graph& graph) {
  int64_t count = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op->name == "gather_sum") count += std::ssize(node.inputs);
    if (node.body) count += operands_of_gathers(*node.body);
  }
  return count;
}

TEST(DefinedRows, GathersMakeAllRowsInLoopsToo) {
  const Graph graph = packing();
  EXPECT_EQ(operands_of_gathers(graph), 5);
  EXPECT_EQ(operands_of_gathers(with_defined_rows(graph)), 3);
}

}  // namespace
}  // namespace fullbore
