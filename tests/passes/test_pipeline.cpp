#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/error.h"
#include "fullbore/device/interpret.h"
#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ir/print.h"
#include "fullbore/ir/verify.h"
#include "fullbore/ops/ops.h"
#include "fullbore/ops/recurrent.h"
#include "fullbore/passes/memory/memory_lowering.h"
#include "fullbore/passes/pass.h"
#include "tests/support/gradcheck.h"
#include "tests/support/loop_programs.h"

namespace fullbore {
namespace {

Graph small_graph() {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f64, {4}});
  builder.output("y", reduce_mean(softplus(x) + softplus(x), {0}));
  return builder.take();
}

std::string refusal(const std::set<std::string>& disabled) {
  try {
    run_passes(small_graph(), {}, {.disabled = disabled});
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

int count_nodes_of(const Graph& graph, const std::function<bool(const Node&)>& is) {
  int count = 0;
  for (const Node& node : graph.nodes())
    count += (is(node) ? 1 : 0) + (node.body ? count_nodes_of(*node.body, is) : 0);
  return count;
}

int count_contractions(const Graph& graph) {
  return count_nodes_of(graph, [](const Node& node) { return node.op->is(Tag::contraction); });
}

TEST(Pipeline, EveryPassSaysWhatItDoesAndWhyHere) {
  std::set<std::string_view> names;
  for (const Pass& pass : pipeline()) {
    EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
    EXPECT_FALSE(pass.summary.empty()) << pass.name;
    EXPECT_FALSE(pass.because.empty()) << pass.name;
    EXPECT_NE(pass.run, nullptr) << pass.name;
  }
}

// A recurrence of 64 iterations keeps two residuals of rows [32,64] for its gradient, what each iteration was given and
// what it made, and little else.
TEST(Pipeline, ARecurrenceKeepsLowRowsForItsGradient) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {64, 32, 64}});
  const Tensor w = builder.input("w", Role::parameter, {DType::f32, {64, 64}});
  const Tensor h = builder.input("h", Role::batch, {DType::f32, {32, 64}});
  const LoopResult result = loop(builder, {h}, {x}, {.iterations = 64}, [&](const LoopBody& body) {
    return IterationResults{.carried = {tanh(matmul(body.carried[0], w) + body.slices[0])}};
  });
  builder.output("d", gradient(reduce_sum(result.carried[0], {0, 1}), std::span(&w, 1))[0]);
  const Graph graph = builder.take();
  Target target;
  target.precision = DType::bf16;
  const auto bytes = [&](const std::set<std::string>& disabled) {
    return estimated_arena_bytes(run_passes(graph, target, {.disabled = disabled}));
  };
  const int64_t rows = int64_t{64} * 32 * 64;
  EXPECT_LT(bytes({}), (2 + 2) * rows + rows / 2);
  EXPECT_GT(bytes({"reduce_residual_precision"}), (2 + 4) * rows);
}

TEST(Pipeline, RefusesToDisableWhatItDoesNotHave) {
  EXPECT_EQ(refusal({"constant_foldng"}),
            "there is no pass 'constant_foldng'. Did you mean 'constant_folding'?");
  EXPECT_EQ(refusal({"quantise"}), "there is no pass 'quantise'.");
  EXPECT_EQ(refusal({"expand_composites"}).substr(0, 50),
            "pass 'expand_composites' cannot be switched off: f");
}

TEST(Pipeline, RecordsAndDumpsEachPassThatRan) {
  std::vector<PassRecord> records;
  std::vector<std::string> dumped;
  PassOptions options{.disabled = {"algebraic_simplification"}};
  options.dump = [&](std::string_view name, const Graph& graph) {
    dumped.push_back(std::string(name));
    EXPECT_FALSE(graph.nodes().empty());
  };
  run_passes(small_graph(), {}, options, &records);
  ASSERT_EQ(records.size(), pipeline().size());
  EXPECT_EQ(dumped.size(), pipeline().size() - 1);
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].name, pipeline()[i].name);
    EXPECT_EQ(records[i].ran, records[i].name != "algebraic_simplification");
    EXPECT_GE(records[i].seconds, 0);
    EXPECT_EQ(records[i].nodes_before, i > 0 ? records[i - 1].nodes_after : 4);
  }
}

TEST(Pipeline, FoldsAtThePrecisionOfTheType) {
  GraphBuilder builder;
  const TensorType scalar{DType::f32, {}};
  builder.output("y", full(builder, scalar, 0.1) + full(builder, scalar, 0.2));
  const Graph graph = run_passes(builder.take(), {});
  ASSERT_EQ(graph.nodes().size(), 1u) << print(graph);
  const std::vector<double> sum = {static_cast<double>(0.1F + 0.2F)};
  EXPECT_EQ(graph.nodes()[0].attributes.get<std::vector<double>>("values"), sum);
}

// A loop and its gradient: two loops, whatever had to be stacked, and the forward iteration's matmuls
// are made once. The recurrence's own is one per iteration, its gradient's two.
TEST(Pipeline, RunsTheForwardLoopOnce) {
  for (const LoopProgram& program : loop_programs()) {
    const Graph graph = loop_program_graph(program, false);
    std::vector<bool> wanted;
    for (const Graph::Input& input : graph.inputs())
      wanted.push_back(is_floating(graph.type(input.value).dtype));
    const Graph gradient = gradient_graph(graph, wanted);
    Graph both = gradient;  // the loop's own results are read too
    for (const Node& node : gradient.nodes())
      if (is_loop(node)) {
        for (size_t i = 0; i < node.outputs.size(); ++i)
          both.add_output("y" + std::to_string(i), node.outputs[i]);
        break;
      }
    const Graph after = run_passes(both, {});
    EXPECT_EQ(std::count_if(after.nodes().begin(), after.nodes().end(), is_loop), 2)
        << print(after);
    const bool nested = program.name.starts_with("nested");
    const int loops = count_nodes_of(after, is_loop);
    EXPECT_EQ(loops, nested ? 4 : 2) << print(after);
    EXPECT_EQ(count_contractions(after), program.captured.size() == 2 ? 3 : 0) << print(after);
  }
}

// The matmul of two captured operands is the same on every iteration, in the loop and in its gradient:
// one node outside serves both.
TEST(Pipeline, SharesWhatALoopAndItsGradientMoveOut) {
  GraphBuilder builder;
  const TensorType matrix{DType::f64, {3, 3}};
  const Tensor x = builder.input("x", Role::batch, matrix);
  const Tensor context = builder.input("context", Role::batch, matrix);
  const Tensor weight = builder.input("weight", Role::frozen, matrix);
  const LoopResult result = loop(builder, {x}, {}, {.iterations = 4}, [&](const LoopBody& body) {
    return IterationResults{.carried = {tanh(body.carried[0] * matmul(context, weight))}};
  });
  builder.output("y", result.carried[0]);
  builder.output("d", gradient(reduce_sum(result.carried[0], {0, 1}), std::span(&x, 1))[0]);
  const Graph graph = run_passes(builder.take(), {});
  EXPECT_EQ(count_contractions(graph), 1) << print(graph);
  EXPECT_EQ(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                          [](const Node& node) { return node.op->is(Tag::contraction); }),
            1)
      << print(graph);
}

// A kernel has room for 64 buffers. The norms of many small parameters are one chain of sums.
TEST(Pipeline, FusesNoMoreOperandsThanAKernelHasRoomFor) {
  GraphBuilder builder;
  Tensor sum;
  for (int i = 0; i < 120; ++i) {
    const auto operand = [&](const char* name) {
      return builder.input(name + std::to_string(i), Role::batch, {DType::f32, {8}});
    };
    const Tensor term = select(less(operand("a"), operand("b")), operand("c"), operand("d"));
    sum = sum.valid() ? sum + term : term;
  }
  builder.output("sum", sum);
  const Graph graph = run_passes(builder.take(), {});
  size_t most = 0;
  for (const Node& node : graph.nodes())
    most = std::max(most, node.inputs.size() + node.outputs.size());
  EXPECT_LE(most, 64U);
  EXPECT_GE(most, 40U);  // but as many as that allows
}

// The gradient of a recurrence in bf16, node by node: among its fused groups are some that begin early and end
// late, so that what comes before all of one group may yet depend on it by way of another.
TEST(Pipeline, GroupsThatAreFusedNeverWaitForOneAnother) {
  GraphBuilder builder;
  std::vector<Tensor> x;
  const auto add = [&](DType dtype, Shape shape) {
    x.push_back(
        builder.input(fmt::format("x{}", x.size()), Role::batch, {dtype, std::move(shape)}));
  };
  add(DType::bf16, {1, 2, 2, 1});
  add(DType::f32, {1, 2, 2});
  add(DType::f32, {2});
  for (int i = 0; i < 2; ++i) add(DType::bf16, {1, 2, 1, 1});
  add(DType::f32, {2});
  add(DType::f32, {1, 2, 1, 1});
  const RecurrenceResult made =
      ssd(x[0], x[1], x[2], x[3], x[4], x[5], {.initial = x[6], .chunk = 2});
  builder.output("y", made.y);
  const Tensor dy = builder.input("dy", Role::batch, x[0].type());
  const std::vector<Tensor> gradients =
      backward(builder, std::span(&made.y, 1), std::span(&dy, 1), x);
  for (size_t i = 0; i < gradients.size(); ++i)
    builder.output(fmt::format("gradient{}", i), gradients[i]);
  const Graph graph = builder.take();
  const Graph fused = run_passes(graph, {}, {});
  EXPECT_EQ(fused.outputs().size(), graph.outputs().size());
  EXPECT_EQ(verify(fused), "");
}

}  // namespace
}  // namespace fullbore
