// Every sample of every op that kernel IR covers, in every dtype, against the oracle.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>
#include <vector>

#include "../support/samples.h"
#include "fullbore/device/interpret.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ir/print.h"
#include "fullbore/ops/ops.h"
#include "jit_harness.h"

namespace fullbore {
namespace {

// Ops that kernels are generated for; the others are products, indexing, sorting and control flow.
bool generated(const OpDef& op) {
  static const std::set<std::string_view> named = {
      "iota",         "argmax",    "cumsum", "dynamic_slice", "dynamic_update_slice",
      "broadcast_to", "transpose", "slice",  "pad",           "concat",
      "reverse"};
  return op.is(Tag::elementwise) || op.is(Tag::reduction) || named.count(op.name) > 0;
}

struct Call {
  std::string name;
  MaterialisedSample sample;
  std::unique_ptr<Kernel> kernel;
};

std::vector<const OpDef*> generated_ops() {
  std::vector<const OpDef*> result;
  for (const OpDef* op : all_ops())
    if (generated(*op) && op->samples != nullptr) result.push_back(op);
  return result;
}

class JitSamples : public ::testing::TestWithParam<const OpDef*> {};

TEST_P(JitSamples, AgreeWithTheOracle) {
  const OpDef& op = *GetParam();
  JitCompiler compiler;
  std::vector<Call> calls;
  for (DType dtype : sample_dtypes(op))
    for (const Sample& sample : op.samples()) {
      Call call{fmt::format("{}, {}", sample.why, dtype_name(dtype)),
                materialise(op, sample, dtype, 1), nullptr};
      std::string why_not;
      const Node& node = call.sample.graph.nodes().back();
      call.kernel = compiler.add(call.sample.graph, node, 2, &why_not);
      ASSERT_NE(call.kernel, nullptr) << call.name << ": " << why_not;
      calls.push_back(std::move(call));
    }
  compiler.finish();
  for (const Call& call : calls) {
    const Node& node = call.sample.graph.nodes().back();
    std::vector<TensorType> types;
    for (Value output : node.outputs) types.push_back(call.sample.graph.type(output));
    std::vector<const Literal*> operands;
    for (const Literal& input : call.sample.inputs) operands.push_back(&input);
    std::vector<std::vector<double>> magnitudes;
    const std::vector<Literal> expected = interpret_node(node, types, operands, &magnitudes);
    const std::vector<Literal> found = run_kernel(*call.kernel, call.sample.inputs, types);
    EXPECT_EQ(compare_with_oracle(node, expected, magnitudes, found), "")
        << call.name << "\n"
        << print(call.sample.graph);
    // The same bits however the items are handed out.
    const std::vector<Literal> again = run_kernel(*call.kernel, call.sample.inputs, types, 3);
    for (size_t o = 0; o < types.size(); ++o) EXPECT_EQ(found[o].bytes(), again[o].bytes());
  }
}

// All upper halves of f32, infinities and NaN among them, with what is above, at and below the half.
TEST(JitCasts, RoundToBf16AsScalarsDo) {
  std::vector<float> numbers;
  for (uint32_t upper = 0; upper <= 0xffff; ++upper)
    for (const uint32_t lower : {0x0000U, 0x0001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU})
      numbers.push_back(std::bit_cast<float>(upper << 16 | lower));
  numbers.resize(numbers.size() - 3);  // no whole vectors
  const TensorType type{DType::f32, Shape{static_cast<int64_t>(numbers.size())}};
  GraphBuilder builder("step");
  builder.output("y", cast(builder.input("x", Role::batch, type), DType::bf16));
  const Graph graph = builder.take();
  JitCompiler compiler;
  const auto kernel = compiler.add(graph, graph.nodes().back(), 1);
  ASSERT_NE(kernel, nullptr);
  compiler.finish();
  const Literal found = run_kernel(*kernel, {Literal::from_bytes(type, numbers.data())},
                                   {TensorType{DType::bf16, type.shape}})[0];
  int64_t wrong = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const float expected = bf16_to_f32(f32_to_bf16(numbers[i]));
    const double got = found.at(static_cast<int64_t>(i));
    if (std::isnan(expected) ? std::isnan(got) : got == static_cast<double>(expected)) continue;
    // The instruction of AVX512_BF16, VCVTNEPS2BF16, takes a denormal for zero whatever MXCSR says.
    if (std::fpclassify(numbers[i]) == FP_SUBNORMAL && got == 0) continue;
    if (wrong++ == 0) ADD_FAILURE() << numbers[i] << " to " << got << ", not " << expected;
  }
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Ops, JitSamples, ::testing::ValuesIn(generated_ops()),
                         [](const auto& op) { return std::string(op.param->name); });

}  // namespace
}  // namespace fullbore
