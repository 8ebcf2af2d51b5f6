#include "fullbore/passes/gemm/weight_copy.h"

#include <gtest/gtest.h>

#include <array>

#include "fullbore/ir/op_def.h"
#include "fullbore/ops/ops.h"

namespace fullbore {
namespace {

WeightCopy in_panels(std::optional<DType> dtype, bool transposed) {
  return {.parameter = "head.weight",
          .dtype = dtype,
          .packing = Packing{.transposed = transposed, .panel = 32, .pair = 2}};
}

TEST(WeightCopy, SaysInItsNameWhatItIs) {
  EXPECT_EQ((WeightCopy{.parameter = "w", .dtype = DType::bf16}).name(), "w as bf16");
  EXPECT_EQ(in_panels(DType::bf16, true).name(),
            "head.weight as bf16 in panels of 32 by 2, transposed");
  EXPECT_EQ(in_panels({}, false).name(), "head.weight in panels of 32 by 2");
  for (const WeightCopy& copy :
       {WeightCopy{.parameter = "w", .dtype = DType::f16}, in_panels(DType::bf16, true),
        in_panels(DType::f16, false), in_panels({}, true), in_panels({}, false)}) {
    const auto read = WeightCopy::parse(copy.name());
    ASSERT_TRUE(read) << copy.name();
    EXPECT_EQ(read->parameter, copy.parameter);
    EXPECT_EQ(read->dtype, copy.dtype);
    EXPECT_EQ(read->packing, copy.packing);
  }
}

TEST(WeightCopy, IsNotReadFromOtherNames) {
  for (const char* name :
       {"", "w", "w as", "w as bf17", "w in panels of 32", "w in panels of 3 by",
        "w in panels of x by 2", "w in panels of 32 by 2, turned", "w as f99 in panels of 32 by 2"})
    EXPECT_FALSE(WeightCopy::parse(name)) << name;
}

// Two copies of one parameter, of which one is packed from the same cast; what no node reads is not made.
TEST(WeightCopy, AreMadeAnewByOneGraph) {
  const TensorType matrix{DType::f32, {6, 6}}, low{DType::bf16, {6, 6}};
  const WeightCopy packed{.parameter = "w",
                          .dtype = DType::bf16,
                          .packing = Packing{.transposed = true, .panel = 4, .pair = 2}};
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, low);
  builder.input("w", Role::parameter, matrix);
  builder.input("v", Role::frozen, matrix);
  const Tensor plain = builder.input("w as bf16", Role::copy, low);
  const Tensor panels = builder.input(packed.name(), Role::copy, {DType::bf16, {2, 3, 4, 2}});
  builder.input("v as bf16", Role::copy, low);
  builder.output("y", matmul(x, plain));
  builder.output("z", panels + panels);
  const auto copying = copying_graph(builder.graph());
  ASSERT_TRUE(copying);
  int casts = 0;
  for (const Node& node : copying->nodes()) casts += node.op->name == "cast";
  EXPECT_EQ(casts, 1);
  ASSERT_EQ(copying->outputs().size(), 2U);
  EXPECT_EQ(copying->outputs()[0].name, "w as bf16");
  EXPECT_EQ(copying->outputs()[1].name, packed.name());
  for (const Graph::Output& output : copying->outputs())
    EXPECT_EQ(copying->inputs()[static_cast<size_t>(output.updates)].name, output.name);
  EXPECT_LT(copying->find_input("v"), 0);
  EXPECT_FALSE(copying_graph(*copying));
}

// One that somebody has stopped reading goes, one that is only updated stays.
TEST(WeightCopy, GoesWhenNobodyReadsItAnyMore) {
  const TensorType matrix{DType::f32, {2, 2}}, low{DType::bf16, {2, 2}};
  const auto graph_that_reads = [&](bool both) {
    GraphBuilder builder;
    const Tensor w = builder.input("w", Role::parameter, matrix);
    const Tensor w_low = builder.input("w as bf16", Role::copy, low);
    const Tensor v_low = builder.input("v as bf16", Role::copy, low);
    builder.input("u as bf16", Role::copy, low);
    builder.output("y", both ? w_low + v_low : v_low + v_low);
    builder.output("w as bf16", cast(w, DType::bf16), 1);
    builder.output("v as bf16", v_low, 2);
    builder.output("u as bf16", v_low, 3);
    return builder.take();
  };
  const Graph graph = without_abandoned_copies(graph_that_reads(false), graph_that_reads(true));
  ASSERT_EQ(graph.inputs().size(), 3U);
  EXPECT_EQ(graph.inputs()[1].name, "v as bf16");
  EXPECT_EQ(graph.inputs()[2].name, "u as bf16");
  ASSERT_EQ(graph.outputs().size(), 3U);
  EXPECT_EQ(graph.outputs()[1].updates, 1);
  EXPECT_EQ(graph.outputs()[2].updates, 2);
}

}  // namespace
}  // namespace fullbore
