// Training with matmuls of weights in 8-bit floats on a card: by its kernels, with the losses of their definition, and refused
// where the card or its driver has none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/lab/ablation/switches.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/train/fp8_matmuls.h"
#include "fullbore/train/step_runner.h"
#include "tests/cuda/fake_card.h"
#include "tests/support/small_transformer.h"

namespace fullbore::cuda {
namespace {

using ::testing::HasSubstr;

using Fp8Training = FakeCard;

TrainingJob job_of(const std::string& device, bool fp8, const Microbatches& parts = {}) {
  TrainingJob job;
  job.loss = testing_support::small_transformer;
  job.training = std::make_shared<testing_support::TokenChains>();
  job.options.device = device;
  job.options.parts = parts;
  job.options.compile.precision = DType::bf16;
  job.options.compile.fp8 = fp8 && device != "cpu";  // the processor's are decomposed, as in no run
  job.options.optimizer.fp8_matmuls = fp8;
  job.options.optimizer.schedule = {"constant", 0.02, 0, 0, 1};
  return job;
}

int count_products(const Graph& graph) {
  int count = 0;
  for (const Node& node : graph.nodes())
    count += (node.op == op::fp8_matmul) + (node.body ? count_products(*node.body) : 0);
  return count;
}

struct Trained {
  std::vector<double> losses;
  std::vector<float> amax;
  int products = 0;  ///< of the plan
};

Trained trained(const TrainingJob& job, int steps) {
  StepRunner runner(job);
  Trained result;
  result.products = count_products(runner.plan(0).graph);
  for (int i = 0; i < steps; ++i) result.losses.push_back(runner.run().loss);
  if (job.options.optimizer.fp8_matmuls) result.amax = runner.state().read<float>(kFp8Amax);
  return result;
}

// bf16 on both sides, summed in other orders: what is near the middle of two numbers of 8 bits may go either way, by 2^-3 at
// most of one operand of many.
TEST_F(Fp8Training, HasTheLossesOfItsDefinition) {
  constexpr int kSteps = 6;
  for (const Microbatches& parts : {Microbatches{.accumulate = 1, .parallel = 1},
                                    Microbatches{.accumulate = 2, .parallel = 1}}) {
    const Trained expected = trained(job_of("cpu", true, parts), kSteps);
    const Trained found = trained(job_of("cuda", true, parts), kSteps);
    EXPECT_EQ(expected.products, 0) << "decomposed";
    EXPECT_EQ(found.products, 3 * 12);
    const double first = expected.losses.front();
    EXPECT_NEAR(found.losses.front(), first, 0.005 * first);
    for (size_t i = 0; i < kSteps; ++i)
      EXPECT_NEAR(found.losses[i], expected.losses[i], 0.03 * first) << i;
    ASSERT_EQ(found.amax.size(), expected.amax.size());
    // What the first step had, the oldest that is remembered. Weights, and what the first three layers read, no rounding to
    // 8 bits has touched; behind them one that went the other way moves an activation by up to 2^-4 of a product.
    for (size_t row = 0; row < expected.amax.size() / kFp8History; ++row)
      if (row % 3 != 2) {
        const float of_first = expected.amax[row * kFp8History + kSteps - 1];
        const bool is_exact = row % 3 == 1 || row < 9;
        EXPECT_NEAR(found.amax[row * kFp8History + kSteps - 1], of_first,
                    (is_exact ? 0.004F : 0.0625F) * of_first)
            << row;
      }
  }
}

TEST_F(Fp8Training, LearnsAsBf16DoesAndAlikeInAnyOrder) {
  constexpr int kSteps = 12;
  const Trained bf16 = trained(job_of("cuda", false), kSteps);
  fake().seed = 5;
  const Trained found = trained(job_of("cuda", true), kSteps);
  fake().seed = 0;
  EXPECT_EQ(trained(job_of("cuda", true), kSteps).losses, found.losses);
  EXPECT_EQ(bf16.products, 0);
  EXPECT_LT(found.losses.back(), 0.7 * found.losses.front());
  // Operands are off by a few per cent each, either way (tests/train/test_fp8_matmuls.cpp).
  for (size_t i = 0; i < kSteps; ++i)
    EXPECT_NEAR(found.losses[i], bf16.losses[i], 0.1 * bf16.losses.front()) << i;
}

TEST_F(Fp8Training, IsRefusedWhereCardOrDriverHaveNone) {
  const auto refusal = [] {
    return message_of<UsageError>([] { StepRunner runner(job_of("cuda", true)); });
  };
  fake().capability = 86;
  EXPECT_THAT(refusal(), HasSubstr("engine.fp8=true: the cuda device multiplies no 8-bit floats: "
                                   "compute capability 8.9 or later is needed, the card has 8.6"));
  fake().capability = 89;
  fake().version = 12030;
  EXPECT_THAT(refusal(),
              HasSubstr("a driver of CUDA 12.4 or later is needed, this one is of 12.3"));
  fake().version = 12040;
  EXPECT_EQ(refusal(), "");
}

// Elsewhere an arm of it would be refused, and end the comparison.
TEST_F(Fp8Training, IsASwitchOfTheLabWhereTheCardHasIt) {
  const auto is_known = [](const char* device) {
    Config config;
    config.engine.device = device;
    return std::ranges::count(known_switches(config), "engine.fp8=true", &Switch::name);
  };
  EXPECT_EQ(is_known("cuda"), 1);
  EXPECT_EQ(is_known("cpu"), 0);
  fake().capability = 86;
  EXPECT_EQ(is_known("cuda"), 0);
  fake().capability = 89;
  EXPECT_EQ(is_known("cuda"), 1);
  EXPECT_EQ(is_known("cuda:7"), 0) << "there is no such card";
}

}  // namespace
}  // namespace fullbore::cuda
