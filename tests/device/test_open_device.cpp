#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/evaluate.h"
#include "fullbore/device/device.h"
#include "fullbore/device/cpu/kernel_list.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/ops.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

TEST(MakeBackend, KnowsEachByItsName) {
  for (const char* name : {"cpu", "null"}) EXPECT_EQ(make_backend(name)->target().name, name);
  EXPECT_GE(make_backend("cpu")->target().threads, 1);
}

TEST(MakeBackend, NamesTheNearestForAnUnknownOne) {
  EXPECT_THAT(usage_error([] { make_backend("cpus"); }), HasSubstr("Did you mean 'cpu'?"));
  EXPECT_THAT(usage_error([] { make_backend("tpu-pod"); }), HasSubstr("'cpu' and 'null'"));
}

// A graph of one node: a product of [2,3] and [3,4].
Graph product(DType dtype) {
  GraphBuilder builder;
  const Tensor a = builder.input("a", Role::batch, {dtype, {2, 3}});
  const Tensor b = builder.input("b", Role::batch, {dtype, {3, 4}});
  builder.output("y", matmul(a, b));
  return builder.take();
}

TEST(NullBackend, HasItemsAndTouchesNothing) {
  const Graph graph = product(DType::f32);
  const auto backend = make_null_backend();
  const auto kernel = backend->compile(graph, graph.nodes()[0], 2);
  backend->finish();
  EXPECT_EQ(kernel->items(), 8);
  kernel->run(nullptr, 0, kernel->items(), 0);
  EXPECT_THAT(kernel->description(), HasSubstr("null matmul"));
}

TEST(CpuBackend, SaysWhyItHasNoKernel) {
  Graph graph;
  const Value x = graph.add_input("x", Role::batch, {DType::f32, {4}});
  graph.add_node(get_op("softmax"), {x}, {{"axis", int64_t{0}}}, nullptr, {"models/gpt.cpp", 88});
  // A composite is expanded before it comes here.
  const std::string message =
      usage_error([&] { make_cpu_backend()->compile(graph, graph.nodes()[0], 1); });
  EXPECT_THAT(message, HasSubstr("softmax: the cpu backend has no kernel for f32[4]"));
  EXPECT_THAT(message, HasSubstr("models/gpt.cpp:88"));
}

TEST(CpuBackend, SaysWhyAKernelIsPassedOver) {
  const Graph graph = product(DType::f16);
  for (const KernelMaker& maker : kernel_list()) {
    if (maker.op != "matmul") continue;
    KernelRequest request(graph, graph.nodes()[0], 1);
    const bool made = maker.make(request) != nullptr;
    EXPECT_EQ(made, maker.name == "panel") << maker.name;
    EXPECT_EQ(made, request.reason().empty()) << maker.name;
  }
}

TEST(CpuBackend, NeedsNoWorkForResultsWithoutElements) {
  Graph graph;
  const Value x = graph.add_input("x", Role::batch, {DType::f32, {3, 0}});
  graph.add_node(get_op("exp"), {x}, {});
  EXPECT_EQ(make_cpu_backend()->compile(graph, graph.nodes()[0], 1)->items(), 0);
}

}  // namespace
}  // namespace fullbore
