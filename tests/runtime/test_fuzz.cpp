#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "fullbore/device/cpu/executor/worker_choice.h"
#include "fullbore/device/device.h"
#include "fullbore/ir/fused_matmul.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/passes/pass.h"
#include "tests/support/device.h"
#include "tests/support/program_check.h"
#include "tests/support/random_graph.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;

using testing_support::check_against_oracle;
using testing_support::compare_bits;
using testing_support::run_graph;
using testing_support::with_all_values;

// Buffers that are shared in time must change nothing: the plan in which every value stays until
// the end gives the same bits.
std::string check_sharing_of_memory(const RandomGraph& random,
                                    const std::shared_ptr<Device>& device) {
  const Graph optimised = run_passes(random.graph, cpu_device(2)->target());
  CompileOptions as_is;
  for (const Pass& pass : pipeline())
    if (pass.optional) as_is.passes.disabled.insert(std::string(pass.name));
  const std::vector<Literal> shared = run_graph(optimised, random.inputs, device, as_is);
  std::vector<Literal> apart = run_graph(with_all_values(optimised), random.inputs, device, as_is);
  apart.resize(shared.size(), Literal({DType::f32, {}}));
  const std::string difference = compare_bits(shared, apart);
  return difference.empty() ? "" : "sharing memory changes the result: " + difference;
}

// What is made a second time is the same to the bit.
std::string check_recomputation(const RandomGraph& random, const std::shared_ptr<Device>& device,
                                DType precision) {
  const std::vector<Literal> kept =
      run_graph(random.graph, random.inputs, device, {.precision = precision});
  const std::vector<Literal> again = run_graph(
      random.graph, random.inputs, device, {.precision = precision, .recompute = Recompute::full});
  const std::string difference = compare_bits(kept, again);
  return difference.empty() ? "" : "recomputation changes the result: " + difference;
}

// What is behind a matmul does to its tiles what a kernel of its own does to all of it.
std::string check_epilogues(const RandomGraph& random, const std::shared_ptr<Device>& device,
                            DType precision) {
  const std::vector<Literal> together =
      run_graph(random.graph, random.inputs, device, {.precision = precision});
  const std::vector<Literal> apart =
      run_graph(random.graph, random.inputs, device,
                {.passes = {.disabled = {"fuse_epilogues"}}, .precision = precision});
  const std::string difference = compare_bits(together, apart);
  return difference.empty() ? "" : "fuse_epilogues changes the result: " + difference;
}

// Matmuls by prepacked operands of at least so many rows.
int count_prepacked(const Graph& graph, int64_t fewest_rows) {
  int found = 0;
  for (const Node& node : graph.nodes()) {
    if (node.body) found += count_prepacked(*node.body, fewest_rows);
    if (node.op->name != "prepacked_matmul") continue;
    const Shape& y = graph.type(node.outputs[0]).shape;
    found += y[y.rank() - 2] >= fewest_rows;
  }
  return found;
}

// Those of them that prepack_operands makes.
int count_packed(const Graph& graph, DType precision, int64_t fewest_rows) {
  Target target = cpu_device(2)->target();
  target.precision = precision;
  return count_prepacked(run_passes(graph, target), fewest_rows) -
         count_prepacked(run_passes(graph, target, {.disabled = {"prepack_operands"}}),
                         fewest_rows);
}

// Operands that are prepacked hold what the matmuls' kernels would pack, but matmuls of few rows would
// sum along depth instead, in another order: check_against_oracle() has judged these.
std::string check_packing(const RandomGraph& random, const std::shared_ptr<Device>& device,
                          DType precision) {
  constexpr int64_t kMostDotRows = 16;
  const int packed = count_packed(random.graph, precision, 0);
  if (packed == 0 || packed > count_packed(random.graph, precision, kMostDotRows + 1)) return "";
  const std::vector<Literal> together =
      run_graph(random.graph, random.inputs, device, {.precision = precision});
  const std::vector<Literal> apart =
      run_graph(random.graph, random.inputs, device,
                {.passes = {.disabled = {"prepack_operands"}}, .precision = precision});
  const std::string difference = compare_bits(together, apart);
  return difference.empty() ? "" : "prepack_operands changes the result: " + difference;
}

// One worker that makes what all share makes the same.
std::string check_alone(const RandomGraph& random, const std::shared_ptr<Device>& device,
                        DType precision) {
  const std::vector<Literal> together =
      run_graph(random.graph, random.inputs, device, {.precision = precision});
  const cpu::AlwaysAlone always;
  const std::string difference = compare_bits(
      together, run_graph(random.graph, random.inputs, device, {.precision = precision}));
  return difference.empty() ? "" : "one worker alone changes the result: " + difference;
}

std::string check(const RandomGraph& random, const std::shared_ptr<Device>& device,
                  DType precision) {
  std::string problem =
      check_against_oracle(random.graph, random.inputs, device, {.precision = precision});
  if (problem.empty()) problem = check_sharing_of_memory(random, device);
  if (problem.empty()) problem = check_epilogues(random, device, precision);
  if (problem.empty()) problem = check_packing(random, device, precision);
  if (problem.empty() && precision == DType::f32) problem = check_alone(random, device, precision);
  return problem.empty() ? check_recomputation(random, device, precision) : problem;
}

RandomGraph some_graph(uint64_t seed) {
  RandomGraphOptions options;
  if (seed % 6 == 0) options.choices = 25;
  if (seed % 3 != 0) options.dtype = DType::f32;  // most of what runs is
  options.mixed_dtypes = seed % 3 == 1;
  RandomGraph random = random_graph(seed, options);
  for (Literal& input : random.inputs) input.round();
  return random;
}

constexpr DType kPrecisions[] = {DType::f32, DType::f32, DType::bf16, DType::f16};

bool has_epilogue(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
    return fused_matmul(node) || (node.body && has_epilogue(*node.body));
  });
}

TEST(Fuzz, ReachesProductsWithEpilogues) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed)
    found += has_epilogue(run_passes(some_graph(seed).graph, cpu_device(2)->target()));
  EXPECT_GE(found, 5);
}

TEST(Fuzz, ReachesPrepackedOperands) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed)
    found += count_packed(some_graph(seed).graph, DType::f32, 0) > 0;
  EXPECT_GE(found, 3);
}

TEST(Fuzz, TheCpuDeviceAgreesWithTheOracle) {
  const std::shared_ptr<Device> device = cpu_device(2);
  std::string failure;
  const int graphs = fuzz(400, [&](uint64_t seed) {
    const RandomGraph random = some_graph(seed);
    const DType precision = kPrecisions[seed / 7 % std::size(kPrecisions)];
    failure = check(random, device, precision);
    if (failure.empty()) return true;
    const RandomGraph small = shrink(random, [&](const RandomGraph& smaller) {
      return !check(smaller, device, precision).empty();
    });
    failure = fmt::format("{}\nprecision {}, {}", check(small, device, precision),
                          dtype_name(precision), describe(seed, small));
    return false;
  });
  EXPECT_TRUE(failure.empty()) << failure;
  EXPECT_GT(graphs, 0);
  std::cout << graphs << " graphs\n";
}

}  // namespace
}  // namespace fullbore
