#include <gtest/gtest.h>

#include <algorithm>

#include "fullbore/device/interpret.h"
#include "fullbore/ir/op_def.h"
#include "tests/support/gradcheck.h"
#include "tests/support/samples.h"

namespace fullbore {
namespace {

std::string op_name(const ::testing::TestParamInfo<const OpDef*>& info) {
  return std::string(info.param->name);
}

GradcheckCase case_of(const OpDef& op, const Sample& sample) {
  MaterialisedSample call = materialise(op, sample, DType::f64, 5);
  return {std::move(call.graph), std::move(call.inputs), std::move(call.wanted)};
}

bool differentiates(const GradcheckCase& check) {
  return std::find(check.wanted.begin(), check.wanted.end(), true) != check.wanted.end();
}

class Gradcheck : public ::testing::TestWithParam<const OpDef*> {};

TEST_P(Gradcheck, AgreesWithFiniteDifferences) {
  for (const Sample& sample : GetParam()->samples()) {
    const GradcheckCase check = case_of(*GetParam(), sample);
    if (!differentiates(check)) continue;
    EXPECT_EQ(gradcheck(check).problem, "") << sample.why;
  }
}

// The test of the test: a gradient that is wrong by one per cent must not pass.
TEST_P(Gradcheck, RejectsCotangentsScaledBy1Point01) {
  bool differentiable = false, rejected = false;
  for (const Sample& sample : GetParam()->samples()) {
    const GradcheckCase check = case_of(*GetParam(), sample);
    if (!differentiates(check)) continue;
    const GradcheckResult result = gradcheck(check, {.gradient_scale = 1.01});
    differentiable |= result.derivatives > 0;
    if (result.all_zero) continue;
    rejected = true;
    EXPECT_NE(result.problem, "") << sample.why;
  }
  EXPECT_TRUE(rejected || !differentiable || GetParam()->is(Tag::zero_gradient))
      << "every sample has a gradient of zero";
}

// A composite's own gradient and the one of its decomposition are the same.
TEST_P(Gradcheck, AgreesWithTheDecomposition) {
  const OpDef& op = *GetParam();
  if (!op.decompose || !op.vjp) return;
  for (const Sample& sample : op.samples()) {
    GradcheckCase check = case_of(op, sample);
    if (!differentiates(check)) continue;
    const Node& node = check.graph.nodes()[0];
    std::vector<TensorType> types;
    for (Value input : node.inputs) types.push_back(check.graph.type(input));
    const Graph decomposed = decomposition(op, types, node.attributes);
    std::vector<Literal> operands = check.inputs;
    uint64_t stream = 0;
    for (const Graph::Output& output : check.graph.outputs())
      if (is_floating(check.graph.type(output.value).dtype))
        operands.push_back(random_literal(check.graph.type(output.value), 6, stream++));
    EXPECT_EQ(compare_literals(interpret(gradient_graph(check.graph, check.wanted), operands),
                               interpret(gradient_graph(decomposed, check.wanted), operands), 1e-9),
              "")
        << sample.why;
  }
}

INSTANTIATE_TEST_SUITE_P(EveryOp, Gradcheck, ::testing::ValuesIn(all_ops()), op_name);

}  // namespace
}  // namespace fullbore
