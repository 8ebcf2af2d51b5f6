// Convolutions in tiles, in whole programs of the CPU. That the kernel is right for each geometry is shown by the op's samples
// (test_cpu_ops.cpp), what the pass takes by tests/passes/winograd_convolutions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/philox.h"
#include "fullbore/device/interpret.h"
#include "fullbore/ops/convolution.h"
#include "fullbore/ops/winograd_convolution.h"
#include "op_check.h"
#include "tests/support/device.h"
#include "tests/support/program_check.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;
using testing_support::run_graph;

// A layer of 64 channels: its results and the gradients of their squares' sum.
Graph layer() {
  GraphBuilder builder("layer");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {2, 64, 18, 20}});
  const Tensor weight = builder.input("weight", Role::batch, {DType::f32, {48, 64, 3, 3}});
  const Tensor y = convolution(x, weight, {}, {.padding = 1});
  builder.output("y", y);
  const Tensor wanted[] = {x};
  builder.output("dx", gradient(reduce_sum(y * y, {0, 1, 2, 3}), wanted)[0]);
  return builder.take();
}

std::vector<Literal> drawn(const Graph& graph) {
  PhiloxStream draws(7);
  std::vector<Literal> inputs;
  for (const Graph::Input& input : graph.inputs()) {
    Literal& x = inputs.emplace_back(graph.type(input.value));
    for (double& each : x.reals()) each = static_cast<float>(draws.normal());
  }
  return inputs;
}

// The root mean square of what it misses, over that of what it should be.
double error_of(const Literal& found, const Literal& wanted) {
  double missed = 0, squares = 0;
  for (int64_t i = 0; i < wanted.elements(); ++i) {
    missed += std::pow(found.at(i) - wanted.at(i), 2);
    squares += std::pow(wanted.at(i), 2);
  }
  return std::sqrt(missed / squares);
}

TEST(WinogradConvolution, IsNearlyAsAccurateAsTheSumAsItIsWritten) {
  const Graph graph = layer();
  const std::vector<Literal> inputs = drawn(graph), wanted = interpret(graph, inputs);
  CompileOptions tiles, sums;
  sums.passes.disabled = {"winograd_convolutions"};
  const std::vector<Literal> by_tiles = run_graph(graph, inputs, cpu_device(2), tiles);
  const std::vector<Literal> by_sums = run_graph(graph, inputs, cpu_device(2), sums);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double of_tiles = error_of(by_tiles[i], wanted[i]);
    const double of_sums = error_of(by_sums[i], wanted[i]);
    EXPECT_NE(of_tiles, of_sums) << "both are the same kernel";
    EXPECT_LT(of_tiles, 4 * of_sums) << of_tiles << " and " << of_sums;
    EXPECT_LT(of_tiles, 1e-6);
  }
}

TEST(WinogradConvolution, IsMadeForwardAndForGradientsInInputs) {
  CompileOptions options;
  int made = 0, left = 0;
  options.passes.dump = [&](std::string_view pass, const Graph& graph) {
    if (pass != "winograd_convolutions") return;
    for (const Node& node : graph.nodes()) {
      made += node.op == op::winograd_convolution;
      left += node.op == op::convolution;
    }
  };
  const std::shared_ptr<Device> device = cpu_device(1);
  const auto compiler = device->compiler();
  compile_plan(layer(), *device, *compiler, options);
  compiler->finish();
  EXPECT_EQ(made, 2);
  EXPECT_EQ(left, 0);
}

// A worker keeps the transformed weights of some outputs alone.
TEST(WinogradConvolution, OfManyChannelsTakesItsOutputsInBlocks) {
  const std::shared_ptr<Device> device = cpu_device(3);
  for (const DType dtype : {DType::f32, DType::f16}) {
    const Shape x{3, 520, 4, 4}, weight{72, 3, 3, 520};
    GraphBuilder builder("layer");
    const Tensor y = convolution(builder.input("x", Role::batch, {dtype, x}),
                                 builder.input("weight", Role::batch, {dtype, {72, 520, 3, 3}}), {},
                                 {.padding = 1});
    builder.output("y", y);
    const Sample sample{
        .why = "blocks of outputs",
        .inputs = {SampleInput::normal({DType::f32, x}), SampleInput::normal({DType::f32, weight})},
        .attributes = builder.take().nodes().back().attributes};
    const auto compiler = device->compiler();
    const testing_support::OpCheck check(device->target(), *compiler,
                                         get_op("winograd_convolution"), sample, dtype, 1);
    compiler->finish();
    EXPECT_EQ(check.run(), "");
  }
}

}  // namespace
}  // namespace fullbore
