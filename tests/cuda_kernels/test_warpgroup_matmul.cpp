// Products by warpgroups, kernels/matmul_sm90a.cpp, on the machine that executes PTX: every layout, tile and way to share work
// out, against the oracle; and each barrier, wait and fence removed in turn.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/device/cuda/makers/makers.h"
#include "fullbore/ir/op_def.h"
#include "tests/cuda_kernels/machine_run.h"
#include "tests/support/comparison.h"
#include "tests/support/samples.h"

namespace fullbore {
namespace {

using namespace testing_support;  // NOLINT: a test

struct Case {
  int64_t batches, m, n, k;
  bool transpose_a, transpose_b, is_wide, adds;
  DType dtype;
  int64_t columns;
  bool is_split;
  std::string text() const {
    return fmt::format("{} x [{},{},{}], {}{}{}{}, {}, {} columns{}", batches, m, n, k,
                       transpose_a ? "T" : "N", transpose_b ? "T" : "N", is_wide ? ", wide" : "",
                       adds ? ", added" : "", dtype_name(dtype), columns,
                       is_split ? ", shared out" : "");
  }
};

Sample sample_of(const Case& of) {
  const auto input = [&](int64_t rows, int64_t width) {
    return SampleInput::normal({DType::f32, {of.batches, rows, width}});
  };
  Sample sample{.why = "products by warpgroups",
                .inputs = {of.transpose_a ? input(of.k, of.m) : input(of.m, of.k),
                           of.transpose_b ? input(of.n, of.k) : input(of.k, of.n)},
                .attributes = {{"transpose_a", of.transpose_a}, {"transpose_b", of.transpose_b}}};
  if (of.adds)
    sample.inputs.push_back(input(of.m, of.n));
  else
    sample.attributes.set("wide", of.is_wide);
  return sample;
}

struct Run {
  MaterialisedSample call;
  std::vector<const Literal*> operands;
  std::vector<TensorType> outputs;
  std::unique_ptr<cuda::CudaKernel> kernel;

  // Three multiprocessors: blocks go through several tiles each.
  explicit Run(const Case& of)
      : call(materialise(get_op(of.adds ? "matmul_add" : "matmul"), sample_of(of), of.dtype, 1)) {
    const Node& node = call.graph.nodes().front();
    const cuda::CardFacts card{.multiprocessors = 3};
    kernel = cuda::warpgroup_matmul({call.graph, node, card}, of.columns, of.is_split);
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

TEST(WarpgroupMatmul, EveryLayoutAgreesWithTheOracle) {
  for (const int64_t columns : {128, 256})
    for (const bool is_split : {false, true})
      for (const bool transpose_a : {false, true})
        for (const bool transpose_b : {false, true})
          for (const DType dtype : {DType::bf16, DType::f16}) {
            const Case of{1,     136,   272,   200,     transpose_a, transpose_b,
                          false, false, dtype, columns, is_split};
            EXPECT_EQ(check(of), "") << of.text();
          }
}

}  // namespace
}  // namespace fullbore
