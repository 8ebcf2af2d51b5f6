#include "fullbore/passes/gemm/derived_weights.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fullbore/ir/op_def.h"
#include "fullbore/ir/print.h"
#include "fullbore/ir/verify.h"
#include "fullbore/ops/ops.h"
#include "fullbore/passes/pass.h"

namespace fullbore {
namespace {

DerivedWeight low_copy(const char* parameter) {
  return {.parameter = parameter, .dtype = DType::bf16};
}

DerivedWeight in_8_bits(bool scales) {
  return {.parameter = "head.weight", .dtype = DType::i8, .scales = scales};
}

DerivedWeight prepacked(std::optional<DType> dtype, bool transposed) {
  return {.parameter = "head.weight",
          .dtype = dtype,
          .packing = Packing{.transposed = transposed, .columns = 32, .depth = 2}};
}

// State and graphs know derived weights by their names too, so those of different ones differ.
TEST(DerivedWeight, SaysInItsNameWhatItIs) {
  EXPECT_EQ((DerivedWeight{.parameter = "w", .dtype = DType::bf16}).name(), "w as bf16");
  EXPECT_EQ(prepacked(DType::bf16, true).name(),
            "head.weight as bf16 in blocks of 32 by 2, transposed");
  EXPECT_EQ(prepacked({}, false).name(), "head.weight in blocks of 32 by 2");
}

// Of a graph's text, which plans are kept as, nothing is lost; and nothing follows from the name.
TEST(DerivedWeight, IsPrintedAndReadAgain) {
  Graph graph;
  graph.add_input("head.weight", Role::parameter, {DType::f32, {6, 6}});
  int number = 0;
  for (const DerivedWeight& derived :
       {DerivedWeight{.parameter = "head.weight", .dtype = DType::f16},
        prepacked(DType::bf16, true), prepacked(DType::f16, false), prepacked({}, true)}) {
    graph.add_input_like({.name = fmt::format("head.weight as bf{}", ++number),
                          .role = Role::derived,
                          .value = {},
                          .derived = derived},
                         {DType::bf16, {2, 3, 4, 2}});
  }
  for (const bool scales : {false, true})
    graph.add_input_like({.name = scales ? "scales" : "numbers",
                          .role = Role::frozen,
                          .value = {},
                          .derived = in_8_bits(scales)},
                         {scales ? DType::f32 : DType::i8, {6}});
  ASSERT_EQ(verify(graph), "");
  const Result<Graph> read = parse_graph(print(graph));
  ASSERT_TRUE(read.ok()) << read.error();
  ASSERT_EQ(read.value().inputs().size(), graph.inputs().size());
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    EXPECT_EQ(read.value().inputs()[i].name, graph.inputs()[i].name);
    EXPECT_EQ(read.value().inputs()[i].derived, graph.inputs()[i].derived) << i;
  }
}

TEST(DerivedWeight, IsNotReadFromOtherTexts) {
  const auto text = [](const std::string& input) {
    return "graph \"step\" {\n  %0 = input \"w as bf16\" " + input + " : bf16[2,2]\n}\n";
  };
  ASSERT_TRUE(parse_graph(text("derived of \"w\" {dtype=bf16}")).ok());
  ASSERT_TRUE(parse_graph(text("frozen of \"w\" {dtype=i8, scales=true}")).ok());
  for (const char* malformed :
       {"derived", "derived of w {dtype=bf16}", "derived of \"w\" {dtype=2}",
        "derived of \"w\" {columns=2}", "derived of \"w\" {columns=2, depth=x}",
        "derived of \"w\" {columns=2, depth=2, transposed=3}",
        "derived of \"w\" {columns=2, depth=2, transposed", "parameter of \"w\" {dtype=bf16}",
        "frozen of \"w\" {dtype=i8, scales=1}"})
    EXPECT_FALSE(parse_graph(text(malformed)).ok()) << malformed;
}

// By a role without the structure, or the structure in another role.
TEST(DerivedWeight, IsVerified) {
  for (const Graph::Input& input :
       {Graph::Input{"w as bf16", Role::derived, {}},
        Graph::Input{"w as bf16", Role::derived, {}, DerivedWeight{.parameter = "w"}},
        Graph::Input{"w", Role::parameter, {}, prepacked({}, false)},
        Graph::Input{"w", Role::frozen, {}, prepacked({}, false)},
        Graph::Input{"w", Role::derived, {}, in_8_bits(false)},
        Graph::Input{"w",
                     Role::derived,
                     {},
                     DerivedWeight{.parameter = "w", .dtype = DType::bf16, .scales = true}}}) {
    Graph graph;
    graph.add_input_like(input, {DType::bf16, {2, 2}});
    EXPECT_NE(verify(graph), "");
  }
}

// Two copies of one parameter, of which one is packed from the same cast; what no node reads is not made.
TEST(DerivedWeight, AreMadeAnewByOneGraph) {
  const TensorType matrix{DType::f32, {6, 6}}, low{DType::bf16, {6, 6}};
  const DerivedWeight packed{.parameter = "w",
                             .dtype = DType::bf16,
                             .packing = Packing{.transposed = true, .columns = 4, .depth = 2}};
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, low);
  builder.input("w", Role::parameter, matrix);
  builder.input("v", Role::frozen, matrix);
  const Tensor plain = builder.input(low_copy("w"), low);
  const Tensor blocks = builder.input(packed, {DType::bf16, {2, 3, 4, 2}});
  builder.input(low_copy("v"), low);
  builder.output("y", matmul(x, plain));
  builder.output("z", blocks + blocks);
  const auto deriving = deriving_graph(builder.graph());
  ASSERT_TRUE(deriving);
  int casts = 0;
  for (const Node& node : deriving->nodes()) casts += node.op->name == "cast";
  EXPECT_EQ(casts, 1);
  ASSERT_EQ(deriving->outputs().size(), 2U);
  EXPECT_EQ(deriving->outputs()[0].name, "w as bf16");
  EXPECT_EQ(deriving->outputs()[1].name, packed.name());
  for (const Graph::Output& output : deriving->outputs())
    EXPECT_EQ(deriving->inputs()[static_cast<size_t>(output.updates)].name, output.name);
  EXPECT_LT(deriving->find_input("v"), 0);
  EXPECT_FALSE(deriving_graph(*deriving));
}

// One that somebody has stopped reading goes, one that is only updated stays.
TEST(DerivedWeight, GoesWhenNobodyReadsItAnyMore) {
  const TensorType matrix{DType::f32, {2, 2}}, low{DType::bf16, {2, 2}};
  const auto graph_that_reads = [&](bool both) {
    GraphBuilder builder;
    const Tensor w = builder.input("w", Role::parameter, matrix);
    const Tensor w_low = builder.input(low_copy("w"), low);
    const Tensor v_low = builder.input(low_copy("v"), low);
    builder.input(low_copy("u"), low);
    builder.output("y", both ? w_low + v_low : v_low + v_low);
    builder.output("w as bf16", cast(w, DType::bf16), 1);
    builder.output("v as bf16", v_low, 2);
    builder.output("u as bf16", v_low, 3);
    return builder.take();
  };
  const Graph graph =
      without_unread_derived_weights(graph_that_reads(false), graph_that_reads(true));
  ASSERT_EQ(graph.inputs().size(), 3U);
  EXPECT_EQ(graph.inputs()[1].name, "v as bf16");
  EXPECT_EQ(graph.inputs()[2].name, "u as bf16");
  ASSERT_EQ(graph.outputs().size(), 3U);
  EXPECT_EQ(graph.outputs()[1].updates, 1);
  EXPECT_EQ(graph.outputs()[2].updates, 2);
}

// Trained weights keep theirs beside frozen ones that lie in files.
TEST(DerivedWeight, OfFrozenParametersAreLeftOutWhereTheTargetKeepsNone) {
  for (const bool copies : {true, false}) {
    GraphBuilder builder;
    const Tensor x = builder.input("x", Role::batch, {DType::bf16, {4, 8}});
    const Tensor trained = builder.input("trained", Role::parameter, {DType::f32, {8, 8}});
    const Tensor frozen = builder.input("frozen", Role::frozen, {DType::f32, {8, 8}});
    builder.output("y", linear(linear(x, cast(trained, DType::bf16)), cast(frozen, DType::bf16)));
    Target target;
    target.keeps_derived_weights = true;
    target.copies_frozen_weights = copies;
    target.precision = DType::bf16;
    std::vector<std::string> copied;
    const Graph rewritten = run_pass("low_precision_weight_copies", builder.take(), target);
    for (const Graph::Input& input : rewritten.inputs())
      if (input.role == Role::derived) copied.push_back(input.derived->parameter);
    if (copies)
      EXPECT_THAT(copied, ::testing::UnorderedElementsAre("trained", "frozen"));
    else
      EXPECT_THAT(copied, ::testing::ElementsAre("trained"));
  }
}

/// How many of so many layers' frozen weights, 2 GiB each in bf16, are prepacked beside one f32 matmul of as many weights.
int prepacked_layers(int layers, DType last_dtype, bool row_invariant) {
  constexpr int64_t kWidth = 1 << 15;
  GraphBuilder builder;
  Tensor x = builder.input("x", Role::batch, {DType::bf16, {4, kWidth}});
  for (int layer = 0; layer < layers; ++layer) {
    const DType dtype = layer + 1 == layers ? last_dtype : DType::bf16;
    const Tensor weight =
        builder.input("frozen" + std::to_string(layer), Role::frozen, {dtype, {kWidth, kWidth}});
    x = matmul(cast(x, dtype), weight);
  }
  builder.output("y", x);
  Target target;
  target.keeps_derived_weights = true;
  target.row_invariant = row_invariant;
  target.packing = {.layouts = {{DType::bf16, {.columns = 32, .vnni = 2, .kept_for_one = true}},
                                {DType::f32, {.columns = 32}}},
                    .most_rows = 64,
                    .fewest_uses = 2};
  int prepacked = 0;
  const Graph rewritten = run_pass("prepack_operands", builder.take(), target);
  for (const Node& node : rewritten.nodes()) prepacked += node.op->name == "prepacked_matmul";
  return prepacked;
}

// Of frozen weights that one reader is enough for: 2 GiB are prepacked, 6 GiB are not, for they would be there twice.
// Those of f32, which are never kept for one reader, do not count.
TEST(DerivedWeight, OfModelsOfManyGigabytesAreNotPrepacked) {
  EXPECT_EQ(prepacked_layers(1, DType::bf16, false), 1);
  EXPECT_EQ(prepacked_layers(3, DType::bf16, false), 0);
  EXPECT_EQ(prepacked_layers(3, DType::f32, false), 2);
}

// Where rows must be alike a matmul by a matrix that is not prepacked copies it, so all are.
TEST(DerivedWeight, OfModelsOfAnySizeIsPrepackedWhereRowsAreAlike) {
  EXPECT_EQ(prepacked_layers(3, DType::bf16, true), 3);
}

}  // namespace
}  // namespace fullbore
