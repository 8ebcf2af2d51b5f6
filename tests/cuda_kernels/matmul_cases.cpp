#include "tests/cuda_kernels/matmul_cases.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "fullbore/device/cuda/makers/makers.h"
#include "fullbore/ir/op_def.h"
#include "tests/support/comparison.h"
#include "tests/support/ptx/edited_text.h"

namespace fullbore::testing_support {
namespace {

Sample sample_of(const MatmulCase& of) {
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

}  // namespace

std::string MatmulCase::text() const {
  return fmt::format("{} x [{},{},{}], {}{}{}{}{}, {}, {} columns{}, {} multiprocessors{}", batches,
                     m, n, k, transpose_a ? "T" : "N", transpose_b ? "T" : "N",
                     is_wide ? ", wide" : "", adds ? ", added" : "", has_bias ? ", biased" : "",
                     dtype_name(dtype), columns, fmt::format(", {} shares", shares),
                     multiprocessors, by_clusters ? ", by pairs" : "");
}

MatmulRun::MatmulRun(const MatmulCase& of)
    : call(materialise(get_op(of.adds       ? "matmul_add"
                              : of.has_bias ? "matmul_bias"
                                            : "matmul"),
                       sample_of(of), DType::f32, 1)) {
  const Node& node = call.graph.nodes().front();
  const cuda::CardFacts card{.multiprocessors = of.multiprocessors};
  const cuda::Request request{call.graph, node, card};
  kernel = of.by_clusters ? cuda::cluster_matmul(request, of.columns, of.shares)
                          : cuda::warpgroup_matmul(request, of.columns, of.shares);
  for (const Literal& input : call.inputs) operands.push_back(&input);
  for (const Value output : node.outputs) outputs.push_back(call.graph.type(output));
}

std::string check(const MatmulCase& of) {
  const MatmulRun run(of);
  const MachineResult made = run_in_all_ways(*run.kernel, run.operands, run.outputs);
  if (!made.problem.empty()) return made.problem;
  const std::vector<Expected> expected =
      expect(run.call.graph, run.call.graph.nodes().front(), run.operands);
  return compare(expected[0], Literal::from_bytes(run.outputs[0], made.outputs[0].data()), 0);
}

int met_of(const MatmulCase& of, const std::string& what, std::string* not_met) {
  const MatmulRun run(of);
  const MachineResult intact = run_on_machine(*run.kernel, run.operands, run.outputs, {});
  EXPECT_EQ(intact.problem, "") << of.text();
  int met = 0;
  for (int n = 0;; ++n) {
    std::vector<cuda::Launch> launches = run.kernel->launches();
    const auto text = ptx::without(launches[0].module->ptx, what, n);
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

}  // namespace fullbore::testing_support
