#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <span>

#include "../support/program_check.h"
#include "../support/random_samples.h"
#include "../support/samples.h"
#include "fullbore/ir/op_def.h"
#include "op_check.h"
#include "tests/support/device.h"

/// Every op on the cpu device against the oracle, in every dtype that it declares.
namespace fullbore {
namespace {

using testing_support::cpu_device;

using testing_support::OpCheck;

constexpr int kRandomSamples = 40;

class CpuOps : public ::testing::TestWithParam<const OpDef*> {};

bool has_regions(const OpDef& op, std::span<const TensorType> types, const Attributes& attributes) {
  if (op.is(Tag::region) || !op.decompose) return op.is(Tag::region);
  const Graph inner = decomposition(op, types, attributes);
  for (const Node& node : inner.nodes()) {
    std::vector<TensorType> operands;
    for (Value input : node.inputs) operands.push_back(inner.type(input));
    if (has_regions(*node.op, operands, node.attributes)) return true;
  }
  return false;
}

// Is it a region, or made of some?
bool has_regions(const OpDef& op) {
  for (const Sample& sample : op.samples()) {
    std::vector<TensorType> types;
    for (const SampleInput& input : sample.inputs) types.push_back(input.type);
    if (has_regions(op, types, sample.attributes)) return true;
  }
  return false;
}

std::vector<const OpDef*> ops(bool regions) {
  std::vector<const OpDef*> result;
  for (const OpDef* op : all_ops())
    if (has_regions(*op) == regions) result.push_back(op);
  return result;
}

TEST_P(CpuOps, AgreeWithTheOracle) {
  const OpDef& op = *GetParam();
  std::vector<Sample> samples = op.samples();
  for (Sample& sample : random_samples(op, 1, kRandomSamples)) samples.push_back(std::move(sample));
  const std::shared_ptr<Device> device = cpu_device(3);
  const auto compiler = device->compiler();
  std::deque<OpCheck> checks;
  for (DType dtype : sample_dtypes(op))
    for (const Sample& sample : samples)
      checks.emplace_back(device->target(), *compiler, op, sample, dtype, 1);
  compiler->finish();
  for (const OpCheck& check : checks) EXPECT_EQ(check.run(), "");
}

INSTANTIATE_TEST_SUITE_P(All, CpuOps, ::testing::ValuesIn(ops(false)),
                         [](const auto& op) { return std::string(op.param->name); });

// Loops, what is made of loops, and fused nodes are run as programs: the planner and the runtime have a part in them.
class CpuRegions : public ::testing::TestWithParam<const OpDef*> {};

TEST_P(CpuRegions, AgreeWithTheOracle) {
  const OpDef& op = *GetParam();
  const std::shared_ptr<Device> device = cpu_device(2);
  for (DType dtype : sample_dtypes(op))
    for (const Sample& sample : op.samples()) {
      const MaterialisedSample call = materialise(op, sample, dtype, 1);
      EXPECT_EQ(testing_support::check_against_oracle(call.graph, call.inputs, device, {}), "")
          << sample.why << ", " << dtype_name(dtype);
    }
}

INSTANTIATE_TEST_SUITE_P(All, CpuRegions, ::testing::ValuesIn(ops(true)),
                         [](const auto& op) { return std::string(op.param->name); });

// --- the check itself: it must see what is wrong, and not what is right -----------------------------

std::string check_tampered(const char* op, DType dtype, OpCheck::Tamper tamper) {
  const std::shared_ptr<Device> device = cpu_device(3);
  const auto compiler = device->compiler();
  const Sample sample = random_samples(get_op(op), 1, 1)[0];
  const OpCheck check(device->target(), *compiler, get_op(op), sample, dtype, 1);
  compiler->finish();
  return check.run(tamper);
}

// An eighth of the largest element: far beyond rounding in any dtype.
void change_one_element(Literal& result) {
  for (int64_t i = 0; i < result.elements(); ++i) {
    const double x = result.at(i);
    if (!std::isfinite(x) || x == 0) continue;
    result.put(i, result.floating() ? x * 1.125 : x + 1);
    return;
  }
}

void forget_an_element(Literal& result) { result.put(result.elements() - 1, std::nan("")); }

TEST(CpuOpsCheck, RejectsOneWrongElement) {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16})
    for (const char* op : {"matmul", "reduce_sum", "exp", "transpose", "scatter_add"})
      EXPECT_NE(check_tampered(op, dtype, change_one_element), "") << op << dtype_name(dtype);
}

TEST(CpuOpsCheck, RejectsAnElementThatNobodyWrote) {
  for (const char* op : {"matmul", "exp", "gather"})
    EXPECT_NE(check_tampered(op, DType::f32, forget_an_element), "") << op;
}

TEST(CpuOpsCheck, NamesOpSampleDTypeElementAndBound) {
  const std::string message = check_tampered("matmul", DType::f32, change_one_element);
  for (const char* part : {"matmul", "random", "f32", "element", "expected", "got", "bound"})
    EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
}

}  // namespace
}  // namespace fullbore
