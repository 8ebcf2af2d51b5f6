#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "../support/evaluate.h"
#include "fullbore/device/automatic_device.h"
#include "fullbore/device/cpu/kernel_list.h"
#include "fullbore/device/registry.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/ops/ops.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

TEST(OpenDevice, KnowsEachByItsName) {
  // A card is there or not, and to plan for one takes its name.
  EXPECT_THAT(device_names(), IsSupersetOf({"card", "cpu", "cuda", "null", "reference"}));
  for (const std::string& name : device_names()) {
    if (name == "card" || name == "cuda") continue;
    EXPECT_EQ(open_device(name)->target().name, name);
    EXPECT_EQ(open_device(name)->facts().name, name);
  }
  EXPECT_GE(open_device("cpu")->facts().workers, 1);
  EXPECT_EQ(open_device("cpu", 3)->facts().workers, 3);
  EXPECT_EQ(open_device("cpu", 3)->target().threads, 3);
}

TEST(OpenDevice, TakesTheProcessorWhereNoCardCanBeUsed) {
  ::setenv("FULLBORE_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
  EXPECT_EQ(automatic_device().name, "cpu");
  EXPECT_THAT(automatic_device().why, HasSubstr("/nowhere/libcuda.so.1 cannot be loaded"));
  EXPECT_EQ(open_device("auto", 2)->facts().name, "cpu");
  EXPECT_EQ(open_device("auto", 2)->facts().workers, 2);
  EXPECT_EQ(own_memory_bytes("auto"), std::nullopt);
  ::unsetenv("FULLBORE_CUDA_DRIVER");
}

TEST(OpenDevice, NamesTheNearestForAnUnknownOne) {
  EXPECT_THAT(usage_error([] { open_device("cpus"); }), HasSubstr("Did you mean 'cpu'?"));
  EXPECT_THAT(usage_error([] { open_device("tpu-pod:1"); }),
              HasSubstr("no device 'tpu-pod:1'; there are card, cpu, cuda, "));
}

// A graph of one node: a gemm of [2,3] and [3,4].
Graph matmul_graph(DType dtype) {
  GraphBuilder builder;
  const Tensor a = builder.input("a", Role::batch, {dtype, {2, 3}});
  const Tensor b = builder.input("b", Role::batch, {dtype, {3, 4}});
  builder.output("y", matmul(a, b));
  return builder.take();
}

TEST(NullDevice, HasAKernelForAnything) {
  const Graph graph = matmul_graph(DType::f32);
  const auto compiler = open_device("null")->compiler();
  const auto kernel = compiler->compile(graph, graph.nodes()[0], 2);
  compiler->finish();
  EXPECT_EQ(kernel->nanoseconds(), 8);
  EXPECT_THAT(kernel->description(), HasSubstr("null matmul"));
}

TEST(CpuDevice, SaysWhyItHasNoKernel) {
  Graph graph;
  const Value x = graph.add_input("x", Role::batch, {DType::f32, {4}});
  graph.add_node(get_op("softmax"), {x}, {{"axis", int64_t{0}}}, nullptr,
                 {"models/example.cpp", 88});
  // A composite is expanded before it comes here.
  const auto compiler = open_device("cpu")->compiler();
  const auto kernel = compiler->compile(graph, graph.nodes()[0], 1);
  compiler->finish();
  EXPECT_EQ(kernel->description(), "reference softmax");
  ASSERT_EQ(compiler->fallbacks().size(), 1U);
  const KernelFallback fallback = compiler->fallbacks().front();
  EXPECT_EQ(fallback.node, "softmax f32[4]");
  EXPECT_EQ(fallback.location, "models/example.cpp:88");
  EXPECT_THAT(fallback.reason, HasSubstr("softmax: the cpu device has no kernel for f32[4]"));

  // Its rows would have other bits than those of a kernel.
  const auto row_invariant = open_device("cpu")->compiler();
  Target target = open_device("cpu")->target();
  target.row_invariant = true;
  row_invariant->compile_for(target);
  const std::string message =
      usage_error([&] { row_invariant->compile(graph, graph.nodes()[0], 1); });
  EXPECT_THAT(message, HasSubstr("softmax: the cpu device has no kernel for f32[4]"));
  EXPECT_THAT(message, HasSubstr("models/example.cpp:88"));
}

TEST(CpuDevice, SaysWhyAKernelIsPassedOver) {
  const Graph graph = matmul_graph(DType::f16);
  for (const cpu::ListedKernel& maker : cpu::kernel_list()) {
    if (maker.op != op::matmul) continue;
    KernelRequest request(graph, graph.nodes()[0], 1);
    const bool made = maker.make(request) != nullptr;
    EXPECT_EQ(made, maker.name == "tiled") << maker.name;
    EXPECT_EQ(made, request.reason().empty()) << maker.name;
  }
}

TEST(CpuDevice, NeedsNoWorkForResultsWithoutElements) {
  Graph graph;
  const Value x = graph.add_input("x", Role::batch, {DType::f32, {3, 0}});
  graph.add_node(get_op("exp"), {x}, {});
  const auto kernel = open_device("cpu")->compiler()->compile(graph, graph.nodes()[0], 1);
  EXPECT_EQ(dynamic_cast<const CpuKernel&>(*kernel).items(), 0);
}

}  // namespace
}  // namespace fullbore
