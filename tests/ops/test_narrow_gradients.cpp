#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fullbore/device/interpret.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ir/verify.h"
#include "tests/support/gradcheck.h"
#include "tests/support/samples.h"

/// Gradients of 16-bit operands may take other nodes than those of f64, which gradcheck sees alone.
/// The oracle rounds nothing but constants, so for equal operands both must nearly be equal.
namespace fullbore {
namespace {

class NarrowGradient : public ::testing::TestWithParam<const OpDef*> {};

std::vector<const OpDef*> differentiable_ops() {
  std::vector<const OpDef*> ops;
  for (const OpDef* op : all_ops())
    if (!op->is(Tag::zero_gradient) &&
        std::count(op->dtypes.begin(), op->dtypes.end(), DType::bf16))
      ops.push_back(op);
  return ops;
}

// Cotangents that both dtypes hold exactly.
std::vector<Literal> cotangents(const Graph& graph) {
  std::vector<Literal> literals;
  for (const Graph::Output& output : graph.outputs()) {
    const TensorType& type = graph.type(output.value);
    if (!is_floating(type.dtype)) continue;
    Literal literal = random_literal({DType::bf16, type.shape}, 8, literals.size());
    literal.round();
    literals.push_back(Literal::of(type, literal.reals()));
  }
  return literals;
}

std::vector<Literal> gradients(const MaterialisedSample& call, std::vector<Literal> inputs) {
  const Graph graph = gradient_graph(call.graph, call.wanted);
  EXPECT_EQ(verify(graph), "");
  for (Literal& each : cotangents(call.graph)) inputs.push_back(std::move(each));
  return interpret(graph, inputs);
}

double largest_of(const Literal& literal) {
  double largest = 0;
  for (double value : literal.reals()) largest = std::max(largest, std::abs(value));
  return largest;
}

TEST_P(NarrowGradient, EqualsThatOfF64) {
  for (const Sample& sample : GetParam()->samples()) {
    SCOPED_TRACE(sample.why);
    const MaterialisedSample narrow = materialise(*GetParam(), sample, DType::bf16, 1);
    const MaterialisedSample wide = materialise(*GetParam(), sample, DType::f64, 1);
    if (std::count(wide.wanted.begin(), wide.wanted.end(), true) == 0) continue;
    std::vector<Literal> same;
    for (size_t i = 0; i < wide.inputs.size(); ++i)
      same.push_back(narrow.inputs[i].floating()
                         ? Literal::of(wide.inputs[i].type(), narrow.inputs[i].reals())
                         : narrow.inputs[i]);
    const std::vector<Literal> actual = gradients(narrow, narrow.inputs);
    const std::vector<Literal> expected = gradients(wide, same);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t k = 0; k < actual.size(); ++k) {
      const double tolerance = 0.01 * largest_of(expected[k]) + 1e-12;
      for (int64_t i = 0; i < actual[k].elements(); ++i)
        ASSERT_NEAR(actual[k].at(i), expected[k].at(i), tolerance) << "cotangent " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, NarrowGradient, ::testing::ValuesIn(differentiable_ops()),
                         [](const auto& op) { return std::string(op.param->name); });

}  // namespace
}  // namespace fullbore
