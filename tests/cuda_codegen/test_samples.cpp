// Every sample of every op that kernel IR covers, in every dtype: its PTX is executed, and held to the op's reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "../support/comparison.h"
#include "../support/ptx/module.h"
#include "../support/random_samples.h"
#include "../support/samples.h"
#include "fullbore/device/cuda/codegen/generated_kernel.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ir/print.h"
#include "ptx_run.h"

namespace fullbore {
namespace {

using testing_support::PtxRunOptions;
using testing_support::run_on_ptx;

// Ops that kernels are generated for; the others are products, indexing, sorting and control flow.
bool generated(const OpDef& op) {
  static const std::set<std::string_view> named = {
      "iota",         "argmax",    "cumsum", "dynamic_slice", "dynamic_update_slice",
      "broadcast_to", "transpose", "slice",  "pad",           "concat",
      "reverse"};
  return op.is(Tag::elementwise) || op.is(Tag::reduction) || named.count(op.name) > 0;
}

std::vector<const OpDef*> generated_ops() {
  std::vector<const OpDef*> result;
  for (const OpDef* op : all_ops())
    if (generated(*op) && op->samples != nullptr) result.push_back(op);
  return result;
}

// "" or what is wrong: in order, in another order of the threads, off alignment, and in place.
std::string check(const MaterialisedSample& sample) {
  const Node& node = sample.graph.nodes().back();
  const cuda::CardFacts card;
  std::string why_not;
  const auto kernel = cuda::make_generated_kernel({sample.graph, node, card}, &why_not);
  if (kernel == nullptr) return "no kernel: " + why_not;
  std::vector<TensorType> types;
  for (Value output : node.outputs) types.push_back(sample.graph.type(output));
  std::vector<const Literal*> operands;
  for (Value input : node.inputs)
    for (size_t i = 0; i < sample.graph.inputs().size(); ++i)
      if (sample.graph.inputs()[i].value == input) operands.push_back(&sample.inputs[i]);
  const auto expected = testing_support::expect(sample.graph, node, operands);
  std::vector<Literal> found;
  try {
    found = run_on_ptx(*kernel, operands, types);
    for (size_t o = 0; o < types.size(); ++o)
      if (std::string problem = testing_support::compare(expected[o], found[o], o);
          !problem.empty())
        return problem;
    const auto same = [&](const std::vector<Literal>& others) {
      for (size_t o = 0; o < types.size(); ++o)
        if (others[o].bytes() != found[o].bytes()) return false;
      return true;
    };
    if (!same(run_on_ptx(*kernel, operands, types, {.seed = 7})))
      return "other bits in another order of the threads";
    if (!same(run_on_ptx(*kernel, operands, types, {.misaligned = 8}))) {
      // Neighbours are not read at once there, so that sums may come in another order.
      if (!node.op->is(Tag::reduction)) return "other bits off alignment";
    }
    for (int input = 0; input < static_cast<int>(operands.size()); ++input)
      for (int output = 0; output < static_cast<int>(types.size()); ++output) {
        if (!kernel->may_alias(input, output)) continue;
        std::vector<int> on_input(types.size(), -1);
        on_input[static_cast<size_t>(output)] = input;
        if (!same(run_on_ptx(*kernel, operands, types, {}, on_input)))
          return fmt::format("other bits with output {} on input {}", output, input);
      }
  } catch (const ptx::Fault& fault) {
    return fault.what();
  }
  return "";
}

class PtxSamples : public ::testing::TestWithParam<const OpDef*> {};

TEST_P(PtxSamples, AgreeWithTheReference) {
  const OpDef& op = *GetParam();
  for (DType dtype : sample_dtypes(op))
    for (const Sample& sample : op.samples()) {
      const MaterialisedSample call = materialise(op, sample, dtype, 1);
      ASSERT_EQ(check(call), "") << sample.why << ", " << dtype_name(dtype) << "\n"
                                 << print(call.graph);
    }
}

// Fewer than the CPU's kernels are given: a machine that executes PTX is slow.
TEST_P(PtxSamples, AgreeOnRandomCalls) {
  const OpDef& op = *GetParam();
  constexpr uint64_t kSeed = 3;
#if defined(__SANITIZE_ADDRESS__)
  constexpr int kCalls = 1;
#else
  constexpr int kCalls = 3;
#endif
  int64_t draw = 0;
  const std::vector<DType> dtypes = sample_dtypes(op);
  for (const Sample& sample : random_samples(op, kSeed, kCalls)) {
    const DType dtype = dtypes[static_cast<size_t>(draw++) % dtypes.size()];
    const MaterialisedSample call = materialise(op, sample, dtype, kSeed);
    ASSERT_EQ(check(call), "") << sample.why << ", " << dtype_name(dtype) << "\n"
                               << print(call.graph);
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, PtxSamples, ::testing::ValuesIn(generated_ops()),
                         [](const auto& op) { return std::string(op.param->name); });

}  // namespace
}  // namespace fullbore
