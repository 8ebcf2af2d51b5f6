#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "fullbore/base/philox.h"
#include "fullbore/base/tensor_memory.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/step_function.h"
#include "tests/support/device.h"
#include "workloads/hybrid/hybrid_model.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;

HybridConfig tiny(HybridBranch branch = HybridBranch::finch) {
  return {.branch = branch,
          .vocabulary = 20,
          .layers = 2,
          .width = 32,
          .heads = 2,
          .mix_rank = 8,
          .decay_rank = 8,
          .inner = 64,
          .mamba_heads = 2,
          .states = 16,
          .hidden = 128,
          .chunk = 16};
}

LossFunction loss_of(const HybridConfig& config) {
  return [config](Trace& trace, std::span<const Tensor> batch) -> Loss {
    const HybridLoss made = hybrid_loss(trace, {.tokens = batch[0]}, batch[1], config);
    return {made.loss.mean, made.loss.predictions};
  };
}

struct Training {
  HybridConfig config = tiny();
  int64_t batch = 8;
  int64_t length = 24;
  Microbatches parts = {};
  OptimizerOptions optimizer = {.schedule = {"constant", 3e-3, 0, 10, 1}};
  CompileOptions compile = {};

  std::vector<BatchField> fields() const {
    const TensorType type{DType::i32, {batch, length}};
    return {{"inputs", type}, {"targets", type}};
  }
};

struct Steps {
  std::vector<double> losses;
  std::vector<float> parameters;  ///< behind the last
};

/// So many steps on one batch of random tokens.
Steps train(const Training& training, int steps) {
  const TracedStep step = trace_training_step(loss_of(training.config), training.fields(),
                                              training.optimizer, training.parts);
  State state = initial_state(step, 3, cpu_device(2));
  Program program = Program::compile(step.graph, state, training.compile);
  const int64_t count = training.batch * training.length;
  const TensorMemory inputs = allocate_tensor_memory(4 * count);
  const TensorMemory targets = allocate_tensor_memory(4 * count);
  auto* const x = static_cast<int32_t*>(static_cast<void*>(inputs.get()));
  auto* const y = static_cast<int32_t*>(static_cast<void*>(targets.get()));
  PhiloxStream draws(11);
  for (int64_t row = 0; row < training.batch; ++row)
    for (int64_t t = 0; t <= training.length; ++t) {
      const auto token = static_cast<int32_t>(draws.below(20));
      if (t < training.length) x[row * training.length + t] = token;
      if (t > 0) y[row * training.length + t - 1] = token;
    }
  const void* const batch[] = {x, y};
  Steps result;
  for (int i = 0; i < steps; ++i) {
    program.run(batch);
    result.losses.push_back(program.scalar("loss"));
  }
  for (const StateEntry& entry : state.entries()) {
    if (entry.role != Role::parameter) continue;
    const std::vector<float> values = state.read<float>(entry.name);
    result.parameters.insert(result.parameters.end(), values.begin(), values.end());
  }
  return result;
}

TEST(HybridTraining, TenSamplesAreLearnedByHeart) {
  for (const HybridBranch branch : {HybridBranch::finch, HybridBranch::static_decay}) {
    const std::vector<double> losses =
        train({.config = tiny(branch), .batch = 10, .length = 16}, 250).losses;
    EXPECT_NEAR(losses.front(), std::log(20), 0.1 * std::log(20));
    EXPECT_LT(losses.back(), 0.5);
  }
}

TEST(HybridTraining, TheFirstRunLearnsToo) {
  const std::vector<double> losses =
      train({.config = tiny(HybridBranch::channel_softmax), .batch = 4, .length = 12}, 60).losses;
  EXPECT_LT(losses.back(), losses.front() - 1);
}

// Largest difference of what one step of plain gradient descent makes of the parameters, by the size of the
// gradient.
double gradient_difference(const Training& a, const Training& b) {
  const auto after = [](Training training) {
    training.optimizer = {.name = "sgd",
                          .schedule = {"constant", 1, 0, 0, 1},
                          .momentum = 0,
                          .weight_decay = 0,
                          .clip_norm = 0};
    return train(training, 1).parameters;
  };
  const std::vector<float> of_a = after(a), of_b = after(b);
  const TracedStep step = trace_training_step(loss_of(a.config), a.fields(), a.optimizer);
  const State start = initial_state(step, 3, cpu_device(2));
  double most = 0, squares = 0;
  size_t at = 0;
  for (const StateEntry& entry : start.entries()) {
    if (entry.role != Role::parameter) continue;
    for (const float value : start.read<float>(entry.name)) {
      most = std::max(most, std::abs(static_cast<double>(of_a[at]) - of_b[at]));
      squares += std::pow(static_cast<double>(of_a[at]) - value, 2);
      ++at;
    }
  }
  return most / std::sqrt(squares);
}

TEST(HybridTraining, ABatchInPartsHasTheSameGradients) {
  EXPECT_LE(gradient_difference({}, {.parts = {.accumulate = 2}}), 1e-6);
  EXPECT_LE(gradient_difference({}, {.parts = {.parallel = 2}}), 1e-6);
  EXPECT_LE(gradient_difference({}, {.parts = {.accumulate = 2, .parallel = 4}}), 1e-6);
  EXPECT_GT(gradient_difference({}, {.length = 23}), 1e-3);
}

TEST(HybridTraining, ActivationsMadeAgainAreTheSame) {
  EXPECT_LE(gradient_difference({}, {.compile = {.recompute = Recompute::full}}), 1e-6);
}

TEST(HybridTraining, LowPrecisionFollows) {
  const std::vector<double> single = train({}, 20).losses;
  const std::vector<double> low = train({.compile = {.precision = DType::bf16}}, 20).losses;
  for (size_t i = 0; i < single.size(); ++i) EXPECT_NEAR(low[i], single[i], 0.02 * single[i]) << i;
  EXPECT_NE(low, single);
}

TEST(HybridTraining, IsTheSameToTheBit) {
  const Steps first = train({}, 10), again = train({}, 10);
  EXPECT_EQ(first.losses, again.losses);
  EXPECT_EQ(first.parameters, again.parameters);
}

// The models of the recipes know nothing before they learn.
TEST(HybridTraining, BeginsAtTheEntropyOfTheVocabulary) {
  for (const HybridBranch branch : {HybridBranch::finch, HybridBranch::static_decay})
    for (const bool recorded : {false, true}) {
      const Training training{
          .config = {.branch = branch, .vocabulary = 97, .layers = 4, .recorded_init = recorded},
          .batch = 2,
          .length = 32};
      const std::vector<BatchField> fields = training.fields();
      const TracedStep step = trace_evaluation(loss_of(training.config), fields);
      State state = initial_state(step, 5, cpu_device(2));
      Program program = Program::compile(step.graph, state, {});
      const TensorMemory memory = allocate_tensor_memory(4 * 128);
      auto* const tokens = static_cast<int32_t*>(static_cast<void*>(memory.get()));
      PhiloxStream draws(7);
      for (int i = 0; i < 128; ++i) tokens[i] = static_cast<int32_t>(draws.below(97));
      const void* const batch[] = {tokens, tokens + 64};  // 256 bytes on
      program.run(batch);
      EXPECT_NEAR(program.scalar("loss"), std::log(97), 0.02 * std::log(97)) << recorded;
    }
}

}  // namespace
}  // namespace fullbore
