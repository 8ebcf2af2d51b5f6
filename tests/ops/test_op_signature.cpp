// What the registry says of how an op is called.
#include "fullbore/ops/op_signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

namespace fullbore {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

std::vector<std::string> names_of(const OpSignature& signature) {
  std::vector<std::string> names;
  for (const OpSignature::Operand& each : signature.operands) names.push_back(each.name);
  return names;
}

OpSignature signature_of(const char* op) { return op_signature(get_op(op)); }

class EverySignature : public ::testing::TestWithParam<const OpDef*> {};

TEST_P(EverySignature, IsComplete) {
  const OpDef& op = *GetParam();
  const OpSignature signature = op_signature(op);
  EXPECT_FALSE(signature.results.empty());
  EXPECT_EQ(signature.operands.empty(), op.is(Tag::source));
  for (const OpSignature::Operand& operand : signature.operands) {
    EXPECT_THAT(operand.dtypes, Not(IsEmpty())) << operand.name;
    EXPECT_LE(operand.least_rank, operand.largest_rank) << operand.name;
    const bool is_numbered = operand.name.size() > 1 && operand.name[0] == 'x' &&
                             std::isdigit(static_cast<unsigned char>(operand.name[1])) != 0;
    EXPECT_TRUE(!is_numbered || signature.variadic)
        << operand.name << ": no check of the op's infer says what it is called";
  }
  for (const OpSignature::Attribute& attribute : signature.attributes)
    EXPECT_THAT(attribute.values, Not(IsEmpty())) << attribute.name;
  for (const Sample& sample : op.samples())
    for (const Attributes::Entry& entry : sample.attributes.entries())
      EXPECT_TRUE(std::ranges::any_of(signature.attributes, [&](const auto& attribute) {
        return attribute.name == entry.name;
      })) << entry.name;
}

INSTANTIATE_TEST_SUITE_P(All, EverySignature, ::testing::ValuesIn(all_ops()),
                         [](const auto& op) { return std::string(op.param->name); });

TEST(OpSignature, HasOperandsAttributesAndResults) {
  const OpSignature softmax = signature_of("softmax");
  ASSERT_EQ(softmax.attributes.size(), 1U);
  EXPECT_EQ(softmax.attributes[0].name, "axis");
  EXPECT_EQ(softmax.attributes[0].type, "integer");
  EXPECT_TRUE(softmax.attributes[0].required);
  EXPECT_THAT(softmax.attributes[0].values, IsSupersetOf({"0", "1"}));
  ASSERT_THAT(names_of(softmax), ElementsAre("x"));
  EXPECT_THAT(softmax.operands[0].dtypes,
              ElementsAre(DType::f64, DType::f32, DType::bf16, DType::f16));
  EXPECT_TRUE(softmax.operands[0].has_gradient);
  EXPECT_FALSE(softmax.variadic);
  ASSERT_EQ(softmax.results.size(), 1U);
  EXPECT_EQ(softmax.results[0].dtype, "as x");
  EXPECT_EQ(softmax.results[0].shape, "as x");
}

TEST(OpSignature, FindsWhatDecidesAResult) {
  EXPECT_EQ(signature_of("cast").results[0].dtype, "attribute dtype");
  EXPECT_EQ(signature_of("cast").results[0].shape, "as x");
  EXPECT_EQ(signature_of("argmax").results[0].dtype, "i32");
  EXPECT_EQ(signature_of("matmul").results[0].dtype, "as a; with wide: as a, at least f32");
  EXPECT_EQ(signature_of("cross_entropy").results[0].dtype, "as logits, at least f32");
  EXPECT_EQ(signature_of("less").results[0].dtype, "bool");
  EXPECT_EQ(signature_of("select").results[0].dtype, "as a");
  EXPECT_EQ(signature_of("reshape").results[0].shape, "attribute shape");
  EXPECT_EQ(signature_of("matmul").results[0].shape, "computed");
}

TEST(OpSignature, TellsOperandsThatOnlySomeCallsHave) {
  const OpSignature attention = signature_of("attention");
  ASSERT_GT(attention.operands.size(), 3U);
  EXPECT_EQ(attention.operands[2].name, "v");
  EXPECT_TRUE(attention.operands[2].required);
  EXPECT_EQ(attention.operands[3].name, "mask or seed");
  EXPECT_FALSE(attention.operands[3].required);
  EXPECT_THAT(attention.operands[3].dtypes, Contains(DType::boolean));
  EXPECT_TRUE(signature_of("concat").variadic);
  EXPECT_FALSE(signature_of("packed_attention").variadic);
  EXPECT_FALSE(signature_of("select").variadic);
  EXPECT_FALSE(signature_of("select").operands[0].has_gradient);
  EXPECT_TRUE(signature_of("select").operands[1].has_gradient);
}

TEST(OpSignature, OfALoopHasABodyAndAGradient) {
  const OpSignature loop = signature_of("loop");
  EXPECT_TRUE(loop.has_body);
  EXPECT_TRUE(loop.variadic);
  EXPECT_TRUE(has_gradient(get_op("loop")));
  EXPECT_FALSE(has_gradient(get_op("argmax")));
  const auto required = [&](const char* name) {
    return std::ranges::find(loop.attributes, name, &OpSignature::Attribute::name)->required;
  };
  EXPECT_TRUE(required("iterations"));
  EXPECT_FALSE(required("parallel"));
  EXPECT_FALSE(required("segments"));
}

}  // namespace
}  // namespace fullbore
