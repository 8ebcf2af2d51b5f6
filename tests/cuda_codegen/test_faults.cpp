// Faults planted into generated PTX are met: what is executed tells right from wrong.
#include <gtest/gtest.h>

#include <optional>

#include "../support/card_run.h"
#include "../support/ptx/module.h"
#include "fullbore/device/cuda/codegen/generated_kernel.h"
#include "fullbore/ops/ops.h"
#include "ptx_run.h"
#include "tests/support/ptx/edited_text.h"

namespace fullbore {
namespace {

using testing_support::run_on_ptx;
using testing_support::runs_on_card;

constexpr const char* kNotTold = "a card does not tell what is planted";

struct Case {
  Graph graph;
  std::vector<Literal> inputs;
  std::vector<TensorType> types;
  std::unique_ptr<cuda::CudaKernel> kernel;

  Case(const TensorType& type, const std::function<Tensor(Tensor)>& write) {
    GraphBuilder builder("step");
    builder.output("y", write(builder.input("x", Role::batch, type)));
    graph = builder.take();
    Literal x(type);
    for (int64_t i = 0; i < x.elements(); ++i) x.put(i, static_cast<double>(i % 17) - 5);
    inputs.push_back(std::move(x));
    const Node& node = graph.nodes().back();
    for (Value output : node.outputs) types.push_back(graph.type(output));
    const cuda::CardFacts card;
    kernel = cuda::make_generated_kernel({graph, node, card}, nullptr);
  }
  std::vector<Literal> run(const std::function<std::string(std::string)>& edit = {},
                           uint64_t seed = 1) const {
    return run_on_ptx(*kernel, {&inputs[0]}, types, {.seed = seed, .edit = edit});
  }
};

int barriers_missed(const Case& each) {
  const std::string& text = each.kernel->launches()[0].module->ptx;
  int removed = 0;
  for (; const auto edited = ptx::without(text, "bar.sync", removed); ++removed)
    EXPECT_THROW(each.run([&](const std::string&) { return *edited; }), ptx::Fault) << removed;
  return removed;
}

TEST(PtxFaults, EachBarrierIsMissed) {
  if (runs_on_card()) GTEST_SKIP() << kNotTold;
  const Case row({DType::f32, {3, 4096}}, [](Tensor x) { return reduce_sum(x, {1}); });
  EXPECT_EQ(barriers_missed(row), 1);
  const Case column({DType::f32, {64, 40}}, [](Tensor x) { return reduce_sum(x, {0}); });
  EXPECT_EQ(barriers_missed(column), 1);
  // Two for each of eight steps at once, and for one by itself.
  const Case scan({DType::f32, {2, 5000}}, [](Tensor x) { return cumsum(x, 1); });
  EXPECT_EQ(barriers_missed(scan), 18);
}

TEST(PtxFaults, ReadsBeyondABufferAreMet) {
  if (runs_on_card()) GTEST_SKIP() << kNotTold;
  // The last row of an input that has one row less.
  Case rows({DType::f32, {5, 64}}, [](Tensor x) { return reduce_sum(x, {1}); });
  rows.inputs[0] = Literal(TensorType{DType::f32, {4, 64}});
  EXPECT_THROW(rows.run(), ptx::Fault);
}

TEST(PtxFaults, WritesBeyondABufferAreMet) {
  if (runs_on_card()) GTEST_SKIP() << kNotTold;
  Case map({DType::f32, {130}}, [](Tensor x) { return exp(x); });
  EXPECT_NO_THROW(map.run());
  map.types[0] = {DType::f32, {129}};
  EXPECT_THROW(map.run(), ptx::Fault);
}

TEST(PtxFaults, ASumHasOneOrder) {
  const Case sum({DType::f32, {70000}}, [](Tensor x) { return reduce_sum(x, {0}); });
  EXPECT_EQ(sum.kernel->launches().size(), 2U);
  const std::vector<char> bits = sum.run()[0].bytes();
  for (uint64_t seed = 2; seed < 5; ++seed) EXPECT_EQ(sum.run({}, seed)[0].bytes(), bits);
  const Case by_warps({DType::f32, {320001}}, [](Tensor x) { return reduce_sum(x, {0}); });
  const std::vector<char> more = by_warps.run()[0].bytes();
  for (uint64_t seed = 2; seed < 4; ++seed) EXPECT_EQ(by_warps.run({}, seed)[0].bytes(), more);
}

TEST(PtxFaults, WhatIsNotLoweredIsSaid) {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {4, 4}});
  builder.output("y", matmul(x, x));
  const Graph graph = builder.take();
  const cuda::CardFacts card;
  std::string why_not;
  EXPECT_EQ(cuda::make_generated_kernel({graph, graph.nodes().back(), card}, &why_not), nullptr);
  EXPECT_NE(why_not, "");
}

}  // namespace
}  // namespace fullbore
