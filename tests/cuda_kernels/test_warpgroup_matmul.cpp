// Products by warpgroups, kernels/matmul_sm90a.cpp, on the machine that executes PTX: every layout, tile and way to share work
// out, against the oracle; and each barrier, wait and fence removed in turn.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/device/cuda/makers/makers.h"
#include "fullbore/ir/op_def.h"
#include "tests/cuda_kernels/machine_run.h"
#include "tests/support/card_run.h"
#include "tests/support/comparison.h"
#include "tests/support/samples.h"

namespace fullbore {
namespace {

using namespace testing_support;  // NOLINT: a test

struct Case {
  int64_t batches = 1;
  int64_t m, n, k;
  bool transpose_a = false, transpose_b = false, is_wide = false, adds = false, has_bias = false;
  DType dtype = DType::bf16;
  int64_t columns = 128;  ///< of a tile
  int64_t shares = 0;
  int multiprocessors = 2;

  std::string text() const {
    return fmt::format("{} x [{},{},{}], {}{}{}{}{}, {}, {} columns{}, {} multiprocessors", batches,
                       m, n, k, transpose_a ? "T" : "N", transpose_b ? "T" : "N",
                       is_wide ? ", wide" : "", adds ? ", added" : "", has_bias ? ", biased" : "",
                       dtype_name(dtype), columns, fmt::format(", {} shares", shares),
                       multiprocessors);
  }
};

Sample sample_of(const Case& of) {
  const auto input = [&](int64_t rows, int64_t width) {
    return SampleInput::normal({of.dtype, {of.batches, rows, width}});
  };
  Sample sample{.why = "products by warpgroups",
                .inputs = {of.transpose_a ? input(of.k, of.m) : input(of.m, of.k),
                           of.transpose_b ? input(of.n, of.k) : input(of.k, of.n)},
                .attributes = {{"transpose_a", of.transpose_a}, {"transpose_b", of.transpose_b}}};
  if (of.adds)
    sample.inputs.push_back(SampleInput::normal({DType::f32, {of.batches, of.m, of.n}}));
  else if (of.has_bias)
    sample.inputs.push_back(SampleInput::normal({DType::f32, {of.n}}));
  else
    sample.attributes.set("wide", of.is_wide);
  return sample;
}

struct Run {
  MaterialisedSample call;
  std::vector<const Literal*> operands;
  std::vector<TensorType> outputs;
  std::unique_ptr<cuda::CudaKernel> kernel;

  explicit Run(const Case& of)
      : call(materialise(get_op(of.adds       ? "matmul_add"
                                : of.has_bias ? "matmul_bias"
                                              : "matmul"),
                         sample_of(of), DType::f32, 1)) {
    const Node& node = call.graph.nodes().front();
    const cuda::CardFacts card{.multiprocessors = of.multiprocessors};
    kernel = cuda::warpgroup_matmul({call.graph, node, card}, of.columns, of.shares);
    for (const Literal& input : call.inputs) operands.push_back(&input);
    for (const Value output : node.outputs) outputs.push_back(call.graph.type(output));
  }
};

std::string check(const Case& of) {
  const Run run(of);
  const MachineResult made = run_in_all_ways(*run.kernel, run.operands, run.outputs);
  if (!made.problem.empty()) return made.problem;
  const std::vector<Expected> expected =
      expect(run.call.graph, run.call.graph.nodes().front(), run.operands);
  return compare(expected[0], Literal::from_bytes(run.outputs[0], made.outputs[0].data()), 0);
}

// More than one tile in each direction, and k beyond a multiple of 64.
TEST(WarpgroupMatmul, EveryLayoutAgreesWithTheOracle) {
  int number = 0;
  for (const int64_t columns : {128, 256})
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true}) {
        const Case of{.m = 136,
                      .n = columns + 8,
                      .k = 88,
                      .transpose_a = transpose_a,
                      .transpose_b = transpose_b,
                      .dtype = number++ % 2 == 0 ? DType::bf16 : DType::f16,
                      .columns = columns};
        EXPECT_EQ(check(of), "") << of.text();
      }
}

// Shares of a tile, of two, of none: the parts of each are summed in the order of k.
TEST(WarpgroupMatmul, SharesAgreeWithTheOracle) {
  for (const auto& [shares, columns] :
       {std::pair<int64_t, int64_t>{1, 128}, {2, 256}, {3, 256}, {5, 128}}) {
    const Case of{.m = 130,
                  .n = 40,
                  .k = 200,
                  .transpose_a = columns == 128,
                  .is_wide = columns == 128,
                  .columns = columns,
                  .shares = shares};
    EXPECT_EQ(check(of), "") << of.text();
  }
}

TEST(WarpgroupMatmul, BatchesWideResultsAndSumsAgreeWithTheOracle) {
  for (const Case& of :
       {Case{.batches = 3, .m = 72, .n = 24, .k = 16},
        Case{.m = 64, .n = 136, .k = 64, .is_wide = true},
        Case{.batches = 2, .m = 130, .n = 16, .k = 72, .transpose_b = true, .adds = true},
        Case{.m = 130, .n = 16, .k = 136, .adds = true, .shares = 2},
        Case{.m = 264, .n = 40, .k = 136, .adds = true, .columns = 256, .shares = 3},
        Case{.m = 264, .n = 40, .k = 8, .adds = true, .columns = 256}})
    EXPECT_EQ(check(of), "") << of.text();
}

// Of every column of a tile, by vectors and one by one, in the launch that makes the sums and in the one that adds shares.
TEST(WarpgroupMatmul, BiasesAgreeWithTheOracle) {
  for (const Case& of :
       {Case{.m = 136, .n = 264, .k = 88, .has_bias = true, .columns = 256},
        Case{
            .m = 72, .n = 136, .k = 24, .transpose_b = true, .has_bias = true, .dtype = DType::f16},
        Case{.batches = 2, .m = 40, .n = 24, .k = 16, .transpose_a = true, .has_bias = true},
        Case{.m = 130, .n = 40, .k = 200, .has_bias = true, .columns = 256, .shares = 3},
        Case{.m = 130, .n = 136, .k = 136, .has_bias = true, .dtype = DType::f16, .shares = 4},
        Case{.m = 65, .n = 131, .k = 9, .has_bias = true},
        Case{.m = 9, .n = 33, .k = 130, .transpose_b = true, .has_bias = true, .shares = 2}})
    EXPECT_EQ(check(of), "") << of.text();
}

// The kernel reads and writes element by element.
TEST(WarpgroupMatmul, OddExtentsAgreeWithTheOracle) {
  for (const Case& of :
       {Case{.m = 3, .n = 5, .k = 7},
        Case{.m = 65, .n = 33, .k = 1, .transpose_a = true, .is_wide = true},
        Case{.m = 129, .n = 131, .k = 65, .transpose_b = true, .adds = true, .shares = 2}})
    EXPECT_EQ(check(of), "") << of.text();
}

/// The text without its n-th line that has `what` in it; none if there are fewer.
std::optional<std::string> without(const std::string& text, const std::string& what, int n) {
  size_t at = text.find(what);
  for (; n > 0 && at != std::string::npos; --n) at = text.find(what, at + 1);
  if (at == std::string::npos) return std::nullopt;
  const size_t begin = text.rfind('\n', at) + 1, end = text.find('\n', at);
  return text.substr(0, begin) + text.substr(end + 1);
}

/// How many such lines there are, each of which is met when it lacks.
int met_of(const Case& of, const std::string& what, std::string* not_met) {
  const Run run(of);
  const MachineResult intact = run_on_machine(*run.kernel, run.operands, run.outputs, {});
  EXPECT_EQ(intact.problem, "") << of.text();
  int met = 0;
  for (int n = 0;; ++n) {
    std::vector<cuda::Launch> launches = run.kernel->launches();
    const auto text = without(launches[0].module->ptx, what, n);
    if (!text) return met;
    launches[0].module =
        std::make_shared<const cuda::Module>(cuda::Module{launches[0].entry, *text});
    const cuda::CudaKernel changed(std::move(launches), {.text = "changed"});
    const MachineResult made = run_on_machine(changed, run.operands, run.outputs, {});
    if (!made.problem.empty() || made.outputs != intact.outputs)
      ++met;
    else
      *not_met += fmt::format("{} {}; ", what, n);
  }
}

// A block goes through two tiles, so that each stage is brought, read and brought anew.
TEST(WarpgroupMatmul, EachMissingFenceWaitAndBarrierIsMet) {
  if (runs_on_card()) GTEST_SKIP() << "a card does not tell";
  for (const int64_t columns : {128, 256}) {
    const Case of{.m = 136, .n = 8, .k = 320, .columns = columns, .multiprocessors = 1};
    std::string not_met;
    EXPECT_EQ(met_of(of, "bar.sync", &not_met), 1);
    EXPECT_EQ(met_of(of, "fence.proxy.async", &not_met), 1);
    EXPECT_EQ(met_of(of, "wgmma.fence", &not_met), 1);
    EXPECT_EQ(met_of(of, "wgmma.commit_group", &not_met), 1);
    EXPECT_EQ(met_of(of, "wgmma.wait_group", &not_met), 2);
    EXPECT_EQ(met_of(of, "cp.async.commit_group", &not_met), 2);
    EXPECT_EQ(met_of(of, "cp.async.wait_group", &not_met), 1);
    // Of the last wait no copies are left.
    EXPECT_EQ(not_met, "cp.async.wait_group 1; ") << of.text();
  }
}

}  // namespace
}  // namespace fullbore
