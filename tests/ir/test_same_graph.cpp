#include "fullbore/ir/same_graph.h"

#include <gtest/gtest.h>

#include <limits>

#include "fullbore/ir/op_def.h"
#include "fullbore/ir/print.h"
#include "fullbore/ops/ops.h"

namespace fullbore {
namespace {

Graph graph_with(double number) {
  GraphBuilder builder("sample");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {3, 4}});
  const Tensor w = builder.input("w", Role::parameter, {DType::f32, {4}});
  builder.push_scope("layers");
  const Tensor table = constant(builder, {DType::f32, {2}}, {0.0, number});
  const LoopResult result =
      loop(builder, {w}, {x}, {.iterations = 3, .reverse = true}, [&](const LoopBody& body) {
        const Tensor next = tanh(body.carried[0]) + body.slices[0] * w;
        return IterationResults{{next}, {next}};
      });
  builder.pop_scope();
  builder.output("y", transpose(result.stacked[0], {1, 0}));
  builder.output("table", table);
  builder.output("w", result.carried[0], 1);
  return builder.take();
}

// Any change of one character that makes another graph of it is seen, and none that makes none.
TEST(SameGraph, IsOfTheSameText) {
  const Graph graph = graph_with(0.1);
  const std::string text = print(graph);
  EXPECT_TRUE(same_graph(graph, parse_graph(text).take_or_throw()));
  int others = 0;
  for (size_t place = 0; place < text.size(); ++place)
    for (const char replacement : {'0', '1', '3', '9', '-', 'a', 'w', 'x', 'y', ' '}) {
      std::string changed = text;
      changed[place] = replacement;
      const Result<Graph> parsed = parse_graph(changed);
      if (!parsed.ok()) continue;
      const bool alike = print(parsed.value()) == text;
      others += !alike;
      EXPECT_EQ(same_graph(graph, parsed.value()), alike) << changed;
    }
  EXPECT_GT(others, 100);
}

TEST(SameGraph, TellsZerosApart) {
  EXPECT_TRUE(same_graph(graph_with(0.0), graph_with(0.0)));
  EXPECT_FALSE(same_graph(graph_with(0.0), graph_with(-0.0)));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(same_graph(graph_with(nan), graph_with(nan)));
}

}  // namespace
}  // namespace fullbore
