// Programs that are compiled with less, and kernels that cannot be made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/philox.h"
#include "fullbore/device/cpu/codegen/jit_kernel.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/ops.h"
#include "fullbore/runtime/prepare.h"
#include "tests/support/device.h"
#include "tests/support/program_check.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using testing_support::check_against_oracle;
using testing_support::cpu_device;

/// A step with what the compiler has special ways for: matmuls with elementwise work behind them, a loop, attention, a
/// softmax.
Graph training_step() {
  GraphBuilder builder("train");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {2, 6, 16}});
  const Tensor w = builder.input("w", Role::parameter, {DType::f32, {16, 16}});
  const Tensor bias = builder.input("bias", Role::parameter, {DType::f32, {16}});
  builder.push_scope("hidden");
  const Tensor hidden = tanh(matmul(reshape(x, {12, 16}), w) + broadcast_to(bias, {12, 16}));
  builder.pop_scope();
  const Tensor heads = reshape(hidden, {2, 2, 6, 8});  // of any rows: it is about the kernel
  const Tensor attended = attention(heads, heads, heads, {.causal = true});
  const LoopResult loop_result =
      loop(builder, {zeros_like(bias)}, {reshape(attended, {12, 16})}, {.iterations = 12},
           [&](const LoopBody& body) {
             return IterationResults{{body.carried[0] * 0.5 + body.slices[0]}, {}};
           });
  const Tensor loss = reduce_mean(softmax(loop_result.carried[0], 0) * bias, {0}) +
                      reduce_mean(hidden * hidden, {0, 1});
  const std::vector<Tensor> wanted = {w, bias};
  const std::vector<Tensor> gradients = gradient(loss, wanted);
  builder.output("loss", loss);
  builder.output("w", w - gradients[0] * 0.1, 1);
  builder.output("bias", bias - gradients[1] * 0.1, 2);
  return builder.take();
}

std::vector<Literal> inputs_of(const Graph& graph) {
  PhiloxStream draws(3);
  std::vector<Literal> inputs;
  for (const Graph::Input& input : graph.inputs()) {
    Literal literal(graph.type(input.value));
    for (int64_t i = 0; i < literal.elements(); ++i) literal.put(i, draws.normal());
    literal.round();
    inputs.push_back(std::move(literal));
  }
  return inputs;
}

std::string difference(const Graph& graph, const CompileOptions& options) {
  return check_against_oracle(graph, inputs_of(graph), cpu_device(2), options);
}

TEST(CompileEffort, EveryEffortComputesTheSame) {
  const Graph graph = training_step();
  for (const CompileEffort effort : {CompileEffort::off, CompileEffort::fast, CompileEffort::full})
    EXPECT_EQ(difference(graph, {.compile = effort}), "") << compile_effort_name(effort);
}

void expect_references(const Plan& plan, const std::vector<PlannedLaunch>& launches) {
  int last = -1;
  for (const PlannedLaunch& launch : launches) {
    if (launch.loop) expect_references(plan, launch.loop->body);
    if (launch.node >= 0) {
      EXPECT_GT(launch.node, last);
      last = launch.node;
    }
    if (launch.kind != PlannedLaunch::Kind::kernel) continue;
    EXPECT_THAT(plan.kernels[static_cast<size_t>(launch.kernel)]->description(),
                StartsWith("reference "));
  }
}

TEST(CompileEffort, OffHasOneReferenceKernelForEachOpInTheGraphsOrder) {
  const auto device = cpu_device(2);
  const PreparedProgram program =
      prepare_program(training_step(), *device, {.compile = CompileEffort::off});
  expect_references(program.plan, program.plan.launches);
  EXPECT_TRUE(std::ranges::none_of(program.plan.graph.nodes(), [](const Node& node) {
    return node.op->name == "fused" || node.op->name == "attention";
  }));
  EXPECT_THAT(program.report.fallbacks, IsEmpty());  // they were asked for
}

TEST(CompileEffort, FastRunsFewerPasses) {
  const auto device = cpu_device(2);
  const auto ran = [&](CompileEffort effort) {
    const auto report = prepare_program(training_step(), *device, {.compile = effort}).report;
    return std::ranges::count_if(report.passes, &PassRecord::ran);
  };
  EXPECT_LT(ran(CompileEffort::fast), ran(CompileEffort::full));
  EXPECT_LT(ran(CompileEffort::off), ran(CompileEffort::fast));
}

TEST(KernelFallback, ANodeWithoutCodeRunsItsReference) {
  const Graph graph = training_step();
  for (const std::string op : {"tanh", "hidden", "reduce_sum"}) {
    const PlantedCodeFailure failure(op);
    EXPECT_EQ(difference(graph, {}), "") << op;
    const auto device = cpu_device(2);
    const std::vector<KernelFallback> fallbacks =
        prepare_program(graph, *device, {}).report.fallbacks;
    ASSERT_FALSE(fallbacks.empty()) << op;
    EXPECT_EQ(fallbacks.front().reason, "a failure was planted");
    EXPECT_THAT(fallbacks.front().location, HasSubstr("test_compile_effort.cpp:"));
  }
  const auto device = cpu_device(2);
  EXPECT_THAT(prepare_program(graph, *device, {}).report.fallbacks, IsEmpty());
}

TEST(KernelFallback, AMatmulWhoseEpilogueHasNoCodeRunsItsReference) {
  GraphBuilder builder("matmul");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {64, 32}});
  const Tensor w = builder.input("w", Role::parameter, {DType::f32, {32, 48}});
  builder.output("y", relu(matmul(x, w)) * 0.5);
  const Graph graph = builder.take();
  const PlantedCodeFailure failure("matmul");
  const auto device = cpu_device(2);
  const PreparedProgram program = prepare_program(graph, *device, {});
  ASSERT_EQ(program.report.fallbacks.size(), 1U);
  EXPECT_THAT(program.report.fallbacks.front().node, HasSubstr("matmul"));
  EXPECT_EQ(difference(graph, {}), "");
}

}  // namespace
}  // namespace fullbore
