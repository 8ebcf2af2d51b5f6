#include <gtest/gtest.h>

#include "fullbore/ir/op_def.h"
#include "fullbore/ir/print.h"
#include "fullbore/ir/verify.h"
#include "fullbore/ops/ops.h"

namespace fullbore {
namespace {

// Every kind of attribute, several outputs, State, origins, and a body with captured inputs, which
// join the body's inputs after its first nodes.
Graph sample_graph() {
  GraphBuilder builder("sample");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {3, 4}});
  const Tensor w = builder.input("w", Role::parameter, {DType::f32, {4}});
  builder.push_scope("layers");
  const Tensor table = constant(builder, {DType::f32, {2}}, {0.1, -1e-30});
  const auto [values, order] = sort(x, true);
  const LoopResult result =
      loop(builder, {w}, {values}, {.iterations = 3, .reverse = true}, [&](const LoopBody& body) {
        const Tensor next = tanh(body.carried[0]) + body.slices[0] * w;
        return IterationResults{{next}, {next, reduce_sum(next, {0})}};
      });
  builder.pop_scope();
  builder.output("y", transpose(reshape(result.stacked[0], {4, 3}), {1, 0}));
  builder.output("order \"quoted\"", order);
  builder.output("table", table);
  builder.output("w", result.carried[0], 1);
  return builder.take();
}

TEST(TextForm, ReadsBackToItself) {
  const Graph graph = sample_graph();
  EXPECT_EQ(verify(graph), "");
  const std::string text = print(graph);
  Result<Graph> parsed = parse_graph(text);
  ASSERT_TRUE(parsed.ok()) << parsed.error() << "\n" << text;
  EXPECT_EQ(print(parsed.value()), text);
  EXPECT_EQ(verify(parsed.value()), "");
  EXPECT_EQ(graph_hash(parsed.value()), graph_hash(graph));
}

TEST(TextForm, KeepsTheLineOfModelCode) {
  EXPECT_NE(print(sample_graph()).find("# ir/test_text_form.cpp:"), std::string::npos);
  EXPECT_NE(print(sample_graph()).find("@ layers"), std::string::npos);
}

// Any prefix and any one-character change gives a graph or a message, never a crash.
TEST(TextForm, SurvivesTruncationAndChange) {
  const std::string text = print(sample_graph());
  for (size_t length = 0; length + 2 < text.size(); ++length) {
    const Result<Graph> parsed = parse_graph(std::string_view(text).substr(0, length));
    EXPECT_FALSE(parsed.ok()) << length;
    if (!parsed.ok()) {
      EXPECT_NE(parsed.error().find("line "), std::string::npos);
    }
  }
  for (size_t place = 0; place < text.size(); ++place)
    for (char replacement : {'9', '-', '}', '"', 'a', '%', ' '}) {
      std::string changed = text;
      changed[place] = replacement;
      const Result<Graph> parsed = parse_graph(changed);
      if (parsed.ok()) {
        EXPECT_EQ(verify(parsed.value()), "") << changed;
      }
    }
}

TEST(TextForm, NamesTheNearestOp) {
  const Result<Graph> parsed =
      parse_graph("graph \"g\" {\n  %0 = input \"x\" batch : f32[2]\n  %1 = tanhh(%0) : f32[2]\n}");
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error(), "graph text, line 3: unknown op 'tanhh'. Did you mean 'tanh'?");
}

TEST(TextForm, RefusesDeepNesting) {
  std::string text;
  for (int i = 0; i < 100000; ++i)
    text += "graph \"g\" { %0 = input \"x\" batch : f32[] %1 = fused(%0) : f32[] {";
  EXPECT_FALSE(parse_graph(text).ok());
}

TEST(Verify, RefusesUpdatesOfAnotherType) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {2}});
  builder.input("p", Role::parameter, {DType::f32, {3}});
  builder.output("p", x, 1);
  EXPECT_NE(verify(builder.graph()).find("updates 'p' of f32[3]"), std::string::npos);
}

TEST(Verify, RefusesTwoInputsOfOneName) {
  GraphBuilder builder;
  builder.input("x", Role::batch, {DType::f32, {2}});
  builder.input("x", Role::batch, {DType::f32, {2}});
  EXPECT_EQ(verify(builder.graph()), "two inputs are named 'x'");
}

TEST(Verify, RefusesUpdatingABatchInput) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {2}});
  builder.output("x", x, 0);
  EXPECT_NE(verify(builder.graph()).find("no State"), std::string::npos);
}

TEST(Attributes, EqualityAndText) {
  const Attributes a{{"b", int64_t{1}}, {"a", 1.0}};
  const Attributes b{{"a", 1.0}, {"b", int64_t{1}}};
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.text(), "{a=1.0, b=1}");
  EXPECT_EQ(quoted_text("a\"b\\c\nd"), "\"a\\\"b\\\\c\\nd\"");
}

}  // namespace
}  // namespace fullbore
