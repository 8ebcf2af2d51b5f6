// Matrices of loops are packed once, outside, and that changes no bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/philox.h"
#include "fullbore/base/processor.h"
#include "fullbore/device/device.h"
#include "fullbore/ir/fused_matmul.h"
#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/ops.h"
#include "fullbore/passes/pass.h"
#include "fullbore/runtime/prepare.h"
#include "tests/support/device.h"
#include "tests/support/program_check.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;

constexpr int64_t kWidth = 70;
constexpr int64_t kWholeSteps = 96;  // of depth, for tiles of bf16

/// h <- tanh(h W^T + b), and the gradients of W and h.
Graph recurrence(int64_t rows, int64_t width = kWidth) {
  GraphBuilder builder;
  const Tensor h = builder.input("h", Role::batch, {DType::f32, {rows, width}});
  const Tensor w = builder.input("w", Role::parameter, {DType::f32, {width, width}});
  const Tensor b = builder.input("b", Role::parameter, {DType::f32, {width}});
  const LoopResult result = loop(builder, {h}, {}, {.iterations = 6}, [&](const LoopBody& body) {
    return IterationResults{.carried = {tanh(linear(body.carried[0], w, b))}};
  });
  const Tensor loss = reduce_sum(result.carried[0], {0, 1});
  builder.output("loss", loss);
  const std::vector<Tensor> wanted = {w, h};
  const std::vector<Tensor> gradients = gradient(loss, wanted);
  for (size_t i = 0; i < gradients.size(); ++i)
    builder.output("gradient" + std::to_string(i), gradients[i]);
  return builder.take();
}

struct Counts {
  int packed = 0;       ///< outside of loops
  int in_loops = 0;     ///< packed in a body
  int prepacked = 0;    ///< matmuls in bodies
  int by_matrices = 0;  ///< likewise
  bool operator==(const Counts&) const = default;
};

void count(const Graph& graph, bool in_loop, Counts& counts) {
  for (const Node& node : graph.nodes()) {
    if (node.op->name == "prepack") ++(in_loop ? counts.in_loops : counts.packed);
    const Node* matmul = fused_matmul(node);
    const std::string_view op = matmul ? matmul->op->name : node.op->name;
    if (in_loop && op == "prepacked_matmul") ++counts.prepacked;
    if (in_loop && op == "matmul") ++counts.by_matrices;
    if (is_loop(node)) count(*node.body, true, counts);
  }
}

Counts counts_of(int64_t rows, DType precision) {
  Target target = cpu_device(2)->target();
  target.precision = precision;
  Counts counts;
  count(run_passes(recurrence(rows, kWholeSteps), target), false, counts);
  return counts;
}

std::vector<Literal> run(int64_t rows, int64_t width, DType precision, bool packed) {
  const Graph graph = recurrence(rows, width);
  PhiloxStream draws(11);
  std::vector<Literal> inputs;
  for (const Graph::Input& input : graph.inputs()) {
    Literal& literal = inputs.emplace_back(graph.type(input.value));
    for (int64_t i = 0; i < literal.elements(); ++i) literal.put(i, 0.3 * draws.normal());
    literal.round();
  }
  CompileOptions options{.precision = precision};
  if (!packed) options.passes.disabled = {"prepack_operands"};
  const std::shared_ptr<Device> device = cpu_device(2);
  return testing_support::run_graph(graph, inputs, device, options);
}

// Forward and backward pass read one weight transposed to one another: two packings, each made once.
TEST(Packing, OfARecurrenceIsDoneOncePerStep) {
  for (const DType precision : {DType::bf16, DType::f16}) {
    const Counts counts = counts_of(20, precision);
    EXPECT_EQ(counts.packed, 2) << dtype_name(precision);
    EXPECT_EQ(counts.in_loops, 0);
    EXPECT_EQ(counts.prepacked, 2);
    EXPECT_EQ(counts.by_matrices, 0) << dtype_name(precision);
  }
}

// f32 is read where it lies if it is not transposed, up to many rows.
TEST(Packing, IsDoneOnlyWhereItPays) {
  EXPECT_EQ(counts_of(20, DType::f32).packed, 1);
  EXPECT_EQ(counts_of(20, DType::f32).prepacked, 1);
  EXPECT_EQ(counts_of(1, DType::f32).packed, 0);
  EXPECT_EQ(counts_of(1000, DType::bf16).packed, 0);
}

// The packed matrix beside the matrix is what nothing but time depends on.
TEST(Packing, IsGivenUpWhereMemoryIsShort) {
  const Graph graph = recurrence(20);
  const std::shared_ptr<Device> device = cpu_device(2);
  const auto planned = [&](int64_t bytes) {
    return prepare_program(graph, *device, {.memory_bytes = bytes}).plan;
  };
  const auto counts_of_plan = [](const Plan& plan) {
    Counts counts;
    count(plan.graph, false, counts);
    return counts;
  };
  const Plan packed = planned(0);
  EXPECT_EQ(counts_of_plan(packed).prepacked, 1);
  EXPECT_EQ(counts_of_plan(planned(packed.peak_bytes())), counts_of_plan(packed));
  const Plan without = planned(packed.peak_bytes() - 1);
  EXPECT_EQ(counts_of_plan(without).prepacked, 0);
  // By less than the packed matrix: matmuls that pack it themselves need memory for that, more with wider vectors.
  EXPECT_LT(without.peak_bytes(), packed.peak_bytes());

  // Beside a second copy of the State, of which what is lent is no part.
  const auto beside_snapshot = [&](int64_t lent) {
    const CompileOptions options{.memory_bytes = packed.peak_bytes() + packed.state_bytes / 2,
                                 .keeps_snapshot = true,
                                 .lent_state_bytes = lent};
    return counts_of_plan(prepare_program(graph, *device, options).plan).prepacked;
  };
  ASSERT_GT(packed.state_bytes, 0);
  EXPECT_EQ(beside_snapshot(packed.state_bytes), 1);
  EXPECT_EQ(beside_snapshot(0), 0);
}

// Widths: one that no kernel of prepacked operands takes where the processor has tiles for bf16, and one that it takes.
TEST(Packing, ChangesNoBit) {
  for (const int64_t width : {kWidth, kWholeSteps})
    for (const DType precision : {DType::f32, DType::bf16, DType::f16})
      for (const int64_t rows : {17, 50, 128}) {
        const std::vector<Literal> packed = run(rows, width, precision, true);
        const std::vector<Literal> apart = run(rows, width, precision, false);
        const std::string text = std::string(dtype_name(precision)) + ", " + std::to_string(rows) +
                                 " x " + std::to_string(width);
        EXPECT_EQ(testing_support::compare_bits(packed, apart), "") << text;
      }
}

bool multiplies_prepacked(const Plan& plan, const std::vector<PlannedLaunch>& launches) {
  return std::ranges::any_of(launches, [&](const PlannedLaunch& launch) {
    if (launch.loop && multiplies_prepacked(plan, launch.loop->body)) return true;
    return launch.kind == PlannedLaunch::Kind::kernel &&
           plan.kernels[static_cast<size_t>(launch.kernel)]->description().find("prepacked") !=
               std::string::npos;
  });
}

// Tiles take prepacked operands of whole steps of depth; the other kernels of bf16 take all.
TEST(Packing, IsForWidthsThatItsKernelTakes) {
  for (const int64_t width : {kWidth, kWholeSteps}) {
    const PreparedProgram program =
        prepare_program(recurrence(17, width), *cpu_device(2), {.precision = DType::bf16});
    EXPECT_EQ(multiplies_prepacked(program.plan, program.plan.launches),
              width == kWholeSteps || !this_processor().amx_bf16)
        << width;
  }
}

}  // namespace
}  // namespace fullbore
