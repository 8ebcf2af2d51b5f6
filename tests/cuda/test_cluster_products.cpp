// Products by clusters of two blocks within a recorded step: tensor maps are made of the addresses that a launch has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "fullbore/base/dtype.h"
#include "fullbore/device/cuda/executor/compiled_node.h"
#include "fullbore/ir/loop.h"
#include "fullbore/ops/ops.h"
#include "fullbore/runtime/prepare.h"
#include "tests/cuda/fake_card.h"
#include "tests/support/program_check.h"

namespace fullbore::cuda {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ClusterProducts = FakeCard;

constexpr int64_t kRows = 256, kWidth = 2048, kLayers = 2;  // 2.1 GFLOP a layer

/// h <- h W[i] for each layer i, in bf16.
Graph layers() {
  GraphBuilder builder;
  const Tensor h = builder.input("h", Role::batch, {DType::bf16, {kRows, kWidth}});
  const Tensor w = builder.input("w", Role::batch, {DType::bf16, {kLayers, kWidth, kWidth}});
  const LoopResult result =
      loop(builder, {h}, {w}, {.iterations = kLayers}, [](const LoopBody& body) {
        return IterationResults{.carried = {matmul(body.carried[0], body.slices[0])}};
      });
  builder.output("y", result.carried[0]);
  return builder.take();
}

/// By place, without a period that a product could hide: of mean square 1/2.
double element(int64_t i) { return std::sin(0.37 * static_cast<double>(i % 40009)); }

double rounded(double x) { return bf16_to_f32(f32_to_bf16(static_cast<float>(x))); }

std::vector<std::string> entries_of(Device& device) {
  const PreparedProgram program = prepare_program(layers(), device, {});
  std::vector<std::string> entries;
  for (const auto& kernel : program.plan.kernels)
    if (const auto* of_card = dynamic_cast<const CompiledNode*>(kernel.get()))
      for (const Launch& launch : of_card->launches()) entries.push_back(launch.entry);
  return entries;
}

// No card has run them.
TEST_F(ClusterProducts, AreAskedFor) {
  fake().multiprocessors = 132;
  EXPECT_THAT(entries_of(*open()),
              AllOf(Not(IsEmpty()), Not(Contains(StartsWith("matmul_clusters")))));
}

TEST_F(ClusterProducts, OfSlicesAreThatOfEachLayer) {
  const Variable asked("FULLBORE_CUDA_CLUSTERS", "1");
  const Graph graph = layers();
  std::vector<Literal> inputs;
  for (const Graph::Input& input : graph.inputs()) {
    Literal& literal = inputs.emplace_back(graph.type(input.value));
    const double scale = inputs.size() == 1 ? 1 : 1 / std::sqrt(0.5 * kWidth);
    for (int64_t i = 0; i < literal.elements(); ++i) literal.put(i, scale * element(i));
    literal.round();
  }
  fake().multiprocessors = 132;
  const auto device = open();
  EXPECT_THAT(entries_of(*device), Contains(StartsWith("matmul_clusters_bf16")));
  const std::vector<Literal> results = testing_support::run_graph(graph, inputs, device, {});
  for (const int64_t row : {int64_t{0}, int64_t{129}, kRows - 1}) {
    std::vector<double> h(kWidth), next(kWidth);
    for (int64_t k = 0; k < kWidth; ++k) h[k] = inputs[0].at(row * kWidth + k);
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      std::ranges::fill(next, 0.0);
      for (int64_t k = 0; k < kWidth; ++k)
        for (int64_t column = 0; column < kWidth; ++column)
          next[column] += h[k] * inputs[1].at((layer * kWidth + k) * kWidth + column);
      for (int64_t column = 0; column < kWidth; ++column) h[column] = rounded(next[column]);
    }
    for (int64_t column = 0; column < kWidth; ++column)
      ASSERT_NEAR(results[0].at(row * kWidth + column), h[column], 0.05) << row << " " << column;
  }
}

}  // namespace
}  // namespace fullbore::cuda
