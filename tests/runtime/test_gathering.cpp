// Matmuls that a loop's iterations have in common become one where memory allows.
#include <gtest/gtest.h>

#include <algorithm>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/philox.h"
#include "fullbore/device/device.h"
#include "fullbore/ir/fused_matmul.h"
#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/ops.h"
#include "fullbore/runtime/compile.h"
#include "tests/support/device.h"
#include "tests/support/program_check.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;

constexpr int64_t kRows = 2;
constexpr int64_t kWidth = 32;

std::vector<Literal> random_inputs(const Graph& graph) {
  PhiloxStream draws(11);
  std::vector<Literal> inputs;
  for (const Graph::Input& input : graph.inputs()) {
    Literal literal(graph.type(input.value));
    for (int64_t i = 0; i < literal.elements(); ++i) literal.put(i, 0.3 * draws.normal());
    literal.round();
    inputs.push_back(std::move(literal));
  }
  return inputs;
}

/// h <- tanh(h W + x_t U + context C), and the gradients of all but x.
Graph recurrence(int64_t iterations) {
  GraphBuilder builder;
  const TensorType rows{DType::f32, {kRows, kWidth}};
  const TensorType matrix{DType::f32, {kWidth, kWidth}};
  const Tensor h = builder.input("h", Role::batch, rows);
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {iterations, kRows, kWidth}});
  const Tensor context = builder.input("context", Role::batch, rows);
  const std::vector<Tensor> weights = {builder.input("w", Role::parameter, matrix),
                                       builder.input("u", Role::parameter, matrix),
                                       builder.input("c", Role::parameter, matrix)};
  const LoopResult result =
      loop(builder, {h}, {x}, {.iterations = iterations}, [&](const LoopBody& body) {
        const Tensor next = tanh(matmul(body.carried[0], weights[0]) +
                                 matmul(body.slices[0], weights[1]) + matmul(context, weights[2]));
        return IterationResults{.carried = {next}};
      });
  const std::vector<Tensor> gradients = gradient(reduce_sum(result.carried[0], {0, 1}), weights);
  for (const Tensor& each : gradients) builder.output("", each);
  return builder.take();
}

/// The same, written iteration by iteration.
Graph unrolled(int64_t iterations) {
  GraphBuilder builder;
  const TensorType rows{DType::f32, {kRows, kWidth}};
  const TensorType matrix{DType::f32, {kWidth, kWidth}};
  Tensor h = builder.input("h", Role::batch, rows);
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {iterations, kRows, kWidth}});
  const Tensor context = builder.input("context", Role::batch, rows);
  const std::vector<Tensor> weights = {builder.input("w", Role::parameter, matrix),
                                       builder.input("u", Role::parameter, matrix),
                                       builder.input("c", Role::parameter, matrix)};
  for (int64_t i = 0; i < iterations; ++i)
    h = tanh(matmul(h, weights[0]) +
             matmul(reshape(slice(x, 0, i, i + 1), rows.shape), weights[1]) +
             matmul(context, weights[2]));
  const std::vector<Tensor> gradients = gradient(reduce_sum(h, {0, 1}), weights);
  for (const Tensor& each : gradients) builder.output("", each);
  return builder.take();
}

/// Matmuls of the plan's graph: those of the step itself, and those of each iteration.
struct Matmuls {
  int64_t of_step = 0;
  int64_t of_iterations = 0;
  bool operator==(const Matmuls&) const = default;
};

int64_t count_matmuls(const Graph& graph) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
    return node.op->is(Tag::contraction) || fused_matmul(node);
  });
}
Matmuls matmuls_of(const Graph& graph) {
  Matmuls result{count_matmuls(graph)};
  for (const Node& node : graph.nodes())
    if (is_loop(node)) result.of_iterations += count_matmuls(*node.body);
  return result;
}

Plan planned(const Graph& graph, const CompileOptions& options) {
  const std::shared_ptr<Device> device = cpu_device(1);
  return compile_plan(graph, *device, *device->compiler(), options);
}

const CompileOptions kWithout = {.passes = {.disabled = {"batch_weight_gradients"}}};

// Of five matmuls an iteration keeps those of the forward pass and the one that takes the gradient back to h.
// What is made of the context is outside anyway, for the trace itself sees that.
TEST(Gathering, MakesOneProductOfAllIterations) {
  for (const DType precision : {DType::f32, DType::bf16}) {
    CompileOptions with = {.precision = precision}, without = kWithout;
    without.precision = precision;
    const Matmuls before = matmuls_of(planned(recurrence(6), without).graph);
    const Matmuls after = matmuls_of(planned(recurrence(6), with).graph);
    EXPECT_EQ(before.of_iterations, 5);
    EXPECT_EQ(after.of_iterations, 3);
    EXPECT_EQ(after.of_step, before.of_step + 2);
  }
}

TEST(Gathering, MakesOneProductOfManyPlaces) {
  const Graph graph = unrolled(6);
  const Matmuls before = matmuls_of(planned(graph, kWithout).graph);
  const Matmuls after = matmuls_of(planned(graph, {}).graph);
  EXPECT_EQ(before.of_step - after.of_step, 3 * 5);
}

TEST(Gathering, KeepsTheGradients) {
  const std::shared_ptr<Device> device = cpu_device(2);
  for (const Graph& graph : {recurrence(6), unrolled(6), recurrence(1)})
    for (const DType precision : {DType::f32, DType::bf16})
      EXPECT_EQ(testing_support::check_against_oracle(graph, random_inputs(graph), device,
                                                      {.precision = precision}),
                "");
}

TEST(Gathering, IsGivenUpWherePlansWouldNotFit) {
  const Graph graph = recurrence(64);
  const int64_t without = planned(graph, kWithout).peak_bytes();
  const int64_t with = planned(graph, {}).peak_bytes();
  ASSERT_GT(with, without);
  const auto within = [&](int64_t bytes) {
    return planned(graph, {.memory_bytes = bytes}).peak_bytes();
  };
  EXPECT_EQ(within(with), with);
  EXPECT_EQ(within(with - 1), without);
  EXPECT_EQ(within(without), without);
  // And before anything is computed a second time.
  const Plan plan = planned(graph, {.recompute = Recompute::automatic, .memory_bytes = without});
  EXPECT_EQ(plan.peak_bytes(), without);
  EXPECT_EQ(matmuls_of(plan.graph), matmuls_of(planned(graph, kWithout).graph));
}

}  // namespace
}  // namespace fullbore
