#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/base/dtype.h"
#include "fullbore/base/philox.h"
#include "fullbore/ops/ops.h"
#include "fullbore/passes/gemm/derived_weights.h"
#include "fullbore/runtime/program.h"
#include "tests/support/device.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;
using testing_support::Edited;

constexpr int64_t kWidth = 48;
const TensorType kMatrix{DType::f32, {kWidth, kWidth}};

// y = x w^T, and a step that takes a little off w, or leaves it alone.
Graph matmul_graph(int64_t rows, bool updates) {
  GraphBuilder builder("matmul");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {rows, kWidth}});
  const Tensor w = builder.input("w", Role::parameter, kMatrix);
  builder.output("y", matmul(x, w, {.transpose_b = true}));
  if (updates) builder.output("w", 0.875 * w, 1);
  return builder.take();
}

int copies_of(const Program& program) {
  return static_cast<int>(
      std::ranges::count(program.plan().graph.inputs(), Role::derived, &Graph::Input::role));
}

struct Bound {
  Bound(State& state, const Graph& graph, DType precision, bool keeps) {
    CompileOptions options{.precision = precision};
    if (!keeps) options.passes.disabled = {"low_precision_weight_copies", "prepack_operands"};
    program.emplace(Program::compile(graph, state, options));
    const Shape& rows = graph.type(graph.inputs()[0].value).shape;
    for (int64_t i = 0; i < rows[0] * kWidth; ++i)
      batch[static_cast<size_t>(i)] = static_cast<float>((i * 37) % 101) / 101 - 0.5F;
  }
  std::vector<float> run() {
    const void* const pointers[] = {batch};
    program->run(pointers);
    return program->read_result<float>(program->output("y"));
  }
  std::optional<Program> program;
  alignas(64) float batch[64 * kWidth];
};

State some_state(uint64_t seed) {
  State state({{"w", Role::parameter, kMatrix}}, cpu_device(2));
  PhiloxStream draws(seed);
  for (float& value : Edited<float>(state, "w")) value = static_cast<float>(draws.normal());
  return state;
}

class KeptCopies : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Precision, KeptCopies,
                         ::testing::Values(DType::f32, DType::bf16, DType::f16),
                         [](const auto& each) { return std::string(dtype_name(each.param)); });

// Whatever writes the parameter - a program that keeps the copy in step, one that knows nothing of it, somebody by
// hand - the next matmul is that of the parameter as it is, to the bit where packed operands sum in the same order.
TEST_P(KeptCopies, FollowWhoeverWritesTheParameter) {
  for (const int64_t rows : {1, 8, 64}) {
    State with = some_state(3), without = some_state(3);
    std::vector<std::vector<float>> results[2];
    for (const bool keeps : {true, false}) {
      State& state = keeps ? with : without;
      Bound reader(state, matmul_graph(rows, false), GetParam(), keeps);
      Bound writer(state, matmul_graph(rows, true), GetParam(), keeps);
      Bound stranger(state, matmul_graph(64, true), DType::f32, false);
      EXPECT_EQ(copies_of(*stranger.program), 0);
      if (GetParam() != DType::f32) {
        EXPECT_EQ(copies_of(*reader.program), keeps ? 1 : 0);
        EXPECT_EQ(copies_of(*writer.program), keeps ? 1 : 0);
      }
      auto& found = results[keeps];
      found.push_back(reader.run());
      found.push_back(writer.run());
      found.push_back(writer.run());
      found.push_back(reader.run());
      stranger.run();
      found.push_back(reader.run());
      std::ranges::fill(Edited<float>(state, "w"), 0.25F);
      found.push_back(writer.run());
      found.push_back(reader.run());
    }
    EXPECT_TRUE(std::ranges::equal(with.read<float>("w"), without.read<float>("w")));
    for (size_t run = 0; run < results[0].size(); ++run)
      for (size_t i = 0; i < results[0][run].size(); ++i)
        EXPECT_NEAR(results[1][run][i], results[0][run][i],
                    8e-3 * std::max(1.0, std::abs(static_cast<double>(results[0][run][i]))))
            << "run " << run << " element " << i;
  }
}

// A weight that is read once a step is read from the copy as it lies: not a bit differs.
TEST(KeptCopiesTraining, ChangeNoBit) {
  std::vector<float> results[2];
  for (const bool keeps : {true, false}) {
    State state = some_state(5);
    Bound step(state, matmul_graph(64, true), DType::bf16, keeps);
    for (int i = 0; i < 3; ++i) results[keeps] = step.run();
    EXPECT_EQ(state.derived_bytes(), keeps ? kWidth * kWidth * 2 : 0);
    EXPECT_EQ(step.program->plan().derived_bytes, keeps ? kWidth * kWidth * 2 : 0);
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(KeptCopiesState, KnowsWhatIsOutdated) {
  State state = some_state(1);
  const TensorType low{DType::bf16, kMatrix.shape};
  const DerivedWeight bf16{.parameter = "w", .dtype = DType::bf16};
  const DerivedWeight f16{.parameter = "w", .dtype = DType::f16};
  const int copy = state.add_derived(bf16, low);
  EXPECT_EQ(state.add_derived(bf16, low), copy);
  EXPECT_NE(state.add_derived(f16, {DType::f16, kMatrix.shape}), copy);
  EXPECT_TRUE(state.is_outdated(copy));
  state.derived_was_made(copy);
  EXPECT_FALSE(state.is_outdated(copy));
  (void)state.read<float>("w");
  EXPECT_FALSE(state.is_outdated(copy));
  Edited<float>(state, "w")[0] = 1;
  EXPECT_TRUE(state.is_outdated(copy));
}

// The optimiser's sweep: one kernel writes parameter and copy.
TEST(KeptCopiesTraining, AreWrittenByTheKernelThatUpdatesTheParameter) {
  State state = some_state(5);
  const Program program =
      Program::compile(matmul_graph(64, true), state, {.precision = DType::bf16});
  const Graph& graph = program.plan().graph;
  const int w = graph.find_output("w"), copy = graph.find_output("w as bf16");
  ASSERT_GE(w, 0);
  ASSERT_GE(copy, 0);
  EXPECT_EQ(graph.producer(graph.outputs()[static_cast<size_t>(w)].value),
            graph.producer(graph.outputs()[static_cast<size_t>(copy)].value));
}

TEST(KeptCopiesShared, AreCountedOnceByProgramsOfOneState) {
  State state = some_state(5);
  const CompileOptions options{.precision = DType::bf16};
  const Program a = Program::compile(matmul_graph(64, true), state, options);
  const Program b = Program::compile(matmul_graph(48, false), state, options);
  ASSERT_GT(a.plan().derived_bytes, 0);
  const std::array<const Plan*, 2> both{&a.plan(), &b.plan()};
  int64_t own = 0;
  for (const Plan* plan : both)
    own += plan->batch_bytes + plan->result_bytes + static_cast<int64_t>(plan->constants.size());
  EXPECT_EQ(shared_peak_bytes(both), own + std::max(a.plan().arena_bytes, b.plan().arena_bytes) +
                                         a.plan().state_bytes + state.derived_bytes());
}

}  // namespace
}  // namespace fullbore
