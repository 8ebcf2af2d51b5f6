#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "fullbore/device/interpret.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ir/print.h"
#include "fullbore/ir/verify.h"
#include "tests/support/evaluate.h"
#include "tests/support/samples.h"

/// What must hold of every op that is registered, present or future.
namespace fullbore {
namespace {

using ::testing::HasSubstr;

class EveryOp : public ::testing::TestWithParam<const OpDef*> {};

bool is_differentiable(const OpDef& op) {
  return !op.is(Tag::zero_gradient) && !op.is(Tag::region) && !op.is(Tag::composite) &&
         !op.dtypes.empty();
}

TEST_P(EveryOp, IsComplete) {
  const OpDef& op = *GetParam();
  EXPECT_FALSE(op.summary.empty());
  ASSERT_TRUE(op.samples);
  EXPECT_FALSE(op.samples().empty());
  for (const Sample& sample : op.samples()) EXPECT_FALSE(sample.why.empty());
  ASSERT_TRUE(op.error_samples);
  EXPECT_FALSE(op.error_samples().empty());
  EXPECT_TRUE(!is_differentiable(op) || op.vjp) << "no gradient, and no tag that says why";
  EXPECT_TRUE(!op.is(Tag::zero_gradient) || !op.vjp) << "a gradient that is never asked for";
  EXPECT_TRUE(op.is(Tag::elementwise) || op.is(Tag::region) || op.decompose || op.reference)
      << "nothing defines what it computes";
}

TEST_P(EveryOp, RefusesErrorSamples) {
  const OpDef& op = *GetParam();
  for (const ErrorSample& sample : op.error_samples()) {
    const std::string message = usage_error([&] {
      op.infer(
          {op, sample.inputs, sample.attributes, nullptr, SourceLoc{"models/example.cpp", 88}});
    });
    ASSERT_FALSE(sample.message_contains.empty()) << sample.why;
    EXPECT_THAT(message, HasSubstr(sample.message_contains)) << sample.why;
    EXPECT_THAT(message, HasSubstr(std::string(op.name) + ": ")) << sample.why;
    EXPECT_THAT(message, HasSubstr("(models/example.cpp:88)")) << sample.why;
  }
}

bool all_finite(const Literal& literal) {
  for (double value : literal.reals())
    if (!std::isfinite(value)) return false;
  return true;
}

TEST_P(EveryOp, SamplesEvaluateInEveryDType) {
  const OpDef& op = *GetParam();
  for (DType dtype : sample_dtypes(op)) {
    for (const Sample& sample : op.samples()) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + ": " + sample.why);
      const MaterialisedSample call = materialise(op, sample, dtype, 1);
      ASSERT_EQ(verify(call.graph), "");
      const std::vector<Literal> outputs = interpret(call.graph, call.inputs);
      ASSERT_EQ(outputs.size(), call.graph.outputs().size());
      for (size_t i = 0; i < outputs.size(); ++i) {
        EXPECT_EQ(outputs[i].type(), call.graph.type(call.graph.outputs()[i].value));
        EXPECT_TRUE(!sample.gradcheck || all_finite(outputs[i]));
      }
    }
  }
}

TEST_P(EveryOp, SamplesSurvivePrintingAndParsing) {
  for (const Sample& sample : GetParam()->samples()) {
    const std::string text = print(materialise(*GetParam(), sample, DType::f32, 1).graph);
    const Result<Graph> parsed = parse_graph(text);
    ASSERT_TRUE(parsed.ok()) << parsed.error() << "\n" << text;
    EXPECT_EQ(print(parsed.value()), text);
  }
}

TEST_P(EveryOp, HasAFiniteCost) {
  for (const Sample& sample : GetParam()->samples()) {
    const Cost cost = graph_cost(materialise(*GetParam(), sample, DType::f32, 1).graph);
    EXPECT_TRUE(cost.flops >= 0 && std::isfinite(cost.flops)) << sample.why;
    EXPECT_TRUE(cost.bytes >= 0 && std::isfinite(cost.bytes)) << sample.why;
  }
}

// A composite with a reference of its own says the same thing twice: both must agree.
TEST_P(EveryOp, ReferenceAgreesWithDecomposition) {
  const OpDef& op = *GetParam();
  if (!op.decompose) return;
  for (const Sample& sample : op.samples()) {
    SCOPED_TRACE(sample.why);
    const MaterialisedSample call = materialise(op, sample, DType::f64, 1);
    std::vector<TensorType> types;
    for (const Literal& input : call.inputs) types.push_back(input.type());
    const Node& node = call.graph.nodes()[0];
    const Graph inner = decomposition(op, types, node.attributes);
    ASSERT_EQ(verify(inner), "");
    const std::vector<Literal> expected = interpret(call.graph, call.inputs);
    const std::vector<Literal> actual = interpret(inner, call.inputs);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      ASSERT_EQ(actual[i].type(), expected[i].type());
      for (int64_t j = 0; j < actual[i].elements(); ++j) {
        const double a = actual[i].at(j), e = expected[i].at(j);
        const bool agrees = std::isnan(e)   ? std::isnan(a)
                            : std::isinf(e) ? a == e
                                            : std::fabs(a - e) <= 1e-10 * (1 + std::fabs(e));
        EXPECT_TRUE(agrees) << a << " for " << e;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryOp, ::testing::ValuesIn(all_ops()),
                         [](const auto& op) { return std::string(op.param->name); });

// Elementwise ops are the scalar ops, one each, by the same names; the interpreter and every
// device rely on it.
TEST(ElementwiseOps, AreTheScalarOps) {
  std::map<std::string_view, const OpDef*> elementwise;
  for (const OpDef* op : all_ops())
    if (op->is(Tag::elementwise)) elementwise[op->name] = op;
  EXPECT_EQ(static_cast<int>(elementwise.size()), kScalarOpCount);
  for (int i = 0; i < kScalarOpCount; ++i) {
    const auto scalar = static_cast<ScalarOp>(i);
    ASSERT_TRUE(elementwise.contains(scalar_op_name(scalar))) << scalar_op_name(scalar);
    const OpDef& op = *elementwise[scalar_op_name(scalar)];
    EXPECT_EQ(op.scalar, scalar);
    for (const Sample& sample : op.samples())
      EXPECT_EQ(static_cast<int>(sample.inputs.size()), scalar_op_arity(scalar)) << op.name;
  }
}

}  // namespace
}  // namespace fullbore
