#include "fullbore/train/step_function.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "fullbore/base/philox.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/evaluator.h"
#include "tests/support/device.h"
#include "tests/support/evaluate.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;
using testing_support::Edited;

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kRows = 6;
constexpr int64_t kWidth = 4;
const std::vector<BatchField> kFields = {{"x", {DType::f32, {kRows, kWidth}}},
                                         {"y", {DType::f32, {kRows}}}};

Tensor squared_error(Trace& trace, std::span<const Tensor> batch) {
  const Tensor weight = trace.parameter("weight", {kWidth}, Initializer::normal(0.5));
  const Tensor error = reduce_sum(batch[0] * weight, {1}) - batch[1];
  return reduce_mean(error * error, {0});
}

struct alignas(64) Batch {
  float x[kRows * kWidth];
  alignas(64) float y[kRows];
};

Batch batch_of(uint64_t position) {
  Batch batch = {};
  PhiloxStream draws(5, position);
  for (float& value : batch.x) value = static_cast<float>(draws.normal());
  for (float& value : batch.y) value = static_cast<float>(draws.normal());
  return batch;
}

class Numbers : public BatchSource {
 public:
  const std::vector<BatchField>& fields() const override { return kFields; }
  void fill(uint64_t position, std::span<void* const> buffers) const override {
    const Batch batch = batch_of(position);
    std::memcpy(buffers[0], batch.x, sizeof batch.x);
    std::memcpy(buffers[1], batch.y, sizeof batch.y);
  }
};

OptimizerOptions with_ema() { return {.schedule = {"constant", 0.1, 0, 0, 1}, .ema_decay = 0.9}; }

/// Ten steps; with `evaluate`, the loss of those weights is measured after each of them.
std::vector<float> trained(std::optional<Weights> evaluate, std::vector<double>& losses) {
  const TracedStep step = trace_training_step(squared_error, kFields, with_ema());
  State state = initial_state(step, 3, cpu_device(2));
  Program program = Program::compile(step.graph, state);
  ValidationSet set;
  set.source = std::make_shared<Numbers>();
  set.batches = 2;
  std::optional<Evaluator> evaluator;
  if (evaluate) evaluator.emplace(squared_error, set, state, CompileOptions{}, *evaluate);
  for (uint64_t position = 0; position < 10; ++position) {
    const Batch batch = batch_of(position);
    const void* const pointers[] = {batch.x, batch.y};
    if (evaluator) losses.push_back(evaluator->evaluate([](uint64_t) { return true; })->loss);
    program.run(pointers);
  }
  std::vector<float> bits;
  for (const char* name : {"weight", "weight.average", "weight.moment1", "weight.moment2"})
    std::ranges::copy(state.read<float>(name), std::back_inserter(bits));
  return bits;
}

TEST(StepFunction, EvaluationOfEitherWeightsLeavesTrainingItsBits) {
  std::vector<double> none;
  std::vector<double> raw;
  std::vector<double> averaged;
  const std::vector<float> undisturbed = trained(std::nullopt, none);
  EXPECT_EQ(trained(Weights::raw, raw), undisturbed);
  EXPECT_EQ(trained(Weights::ema, averaged), undisturbed);
  EXPECT_EQ(averaged[0], raw[0]) << "averages start as the weights do";
  for (size_t i = 1; i < raw.size(); ++i) EXPECT_NE(averaged[i], raw[i]) << i;
}

TEST(StepFunction, AveragesStartAsTheirParametersAndFollowNewOnes) {
  const TracedStep step = trace_training_step(squared_error, kFields, with_ema());
  State state = initial_state(step, 3, cpu_device(2));
  EXPECT_TRUE(std::ranges::equal(state.read<float>("weight.average"), state.read<float>("weight")));
  EXPECT_NE(state.read<float>("weight")[0], 0);
  std::ranges::fill(Edited<float>(state, "weight"), 7.0F);
  start_ema(state);
  EXPECT_THAT(state.read<float>("weight.average"), ElementsAre(7, 7, 7, 7));
}

TEST(StepFunction, ABadBatchIsSkippedAndTold) {
  const TracedStep step = trace_training_step(squared_error, kFields, with_ema());
  State state = initial_state(step, 3, cpu_device(2));
  Program program = Program::compile(step.graph, state);
  const std::vector<float> before = state.read<float>("weight");
  Batch batch = batch_of(0);
  batch.x[5] = std::numeric_limits<float>::infinity();
  const void* const pointers[] = {batch.x, batch.y};
  program.run(pointers);
  EXPECT_EQ(program.scalar("skipped"), 1);
  EXPECT_TRUE(std::ranges::equal(state.read<float>("weight"), before));
  EXPECT_EQ(state.read<int64_t>("step")[0], 1);
  EXPECT_EQ(state.read<int64_t>("updates")[0], 0);
  batch.x[5] = 1;
  program.run(pointers);
  EXPECT_EQ(program.scalar("skipped"), 0);
  EXPECT_EQ(state.read<int64_t>("updates")[0], 1);
}

// The gradient of the whole batch is the mean of its halves'.
TEST(StepFunction, TheNoiseScaleChangesTheStepByRoundingAlone) {
  const auto weights_after = [](bool noise_scale, std::vector<std::string>& metrics) {
    OptimizerOptions options = with_ema();
    options.noise_scale = noise_scale;
    const TracedStep step = trace_training_step(squared_error, kFields, options);
    metrics = step.metrics;
    State state = initial_state(step, 3, cpu_device(2));
    Program program = Program::compile(step.graph, state);
    const Batch batch = batch_of(0);
    const void* const pointers[] = {batch.x, batch.y};
    program.run(pointers);
    std::vector<double> results = {program.scalar("loss"), program.scalar("gradient_norm")};
    for (const float weight : state.read<float>("weight.average"))
      results.push_back(double{weight});
    return results;
  };
  std::vector<std::string> metrics;
  const std::vector<double> plain = weights_after(false, metrics);
  EXPECT_TRUE(metrics.empty());
  const std::vector<double> halves = weights_after(true, metrics);
  EXPECT_THAT(metrics, ElementsAre("gradient_noise_scale"));
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(halves[i], plain[i], 1e-5) << i;
}

// What a model returns by mistake is refused by the line that made it.
TEST(StepFunction, LossesAndMetricsAreFloatingScalars) {
  const auto refusal = [](const std::function<void(Trace&, Loss&, Tensor)>& spoil) {
    return usage_error([&] {
      trace_training_step(
          [&](Trace& trace, std::span<const Tensor> batch) {
            Loss loss = squared_error(trace, batch);
            spoil(trace, loss, batch[0]);
            return loss;
          },
          kFields, {});
    });
  };
  const std::string here = " (train/test_step_function.cpp:";
  const auto expect = [&](const std::function<void(Trace&, Loss&, Tensor)>& spoil,
                          const std::string& words) {
    EXPECT_THAT(refusal(spoil), HasSubstr(words));
  };
  const std::string shape = "f32[" + std::to_string(kRows) + "," + std::to_string(kWidth) + "]";
  expect(
      [](Trace&, Loss& loss, Tensor x) {
        loss.metrics = {{"hits", x * 2.0}};
      },
      "metric 'hits' must be a floating scalar, this is " + shape + here);
  expect(
      [](Trace&, Loss& l, Tensor) {
        l.metrics = {{"n", cast(l.mean, DType::i32)}};
      },
      "metric 'n' must be a floating scalar, this is i32[]" + here);
  expect(
      [](Trace&, Loss& loss, Tensor) {
        loss.metrics = {{"none", {}}};
      },
      "metric 'none' is an empty Tensor");
  expect([](Trace&, Loss& loss, Tensor) { loss.metrics = {{"", loss.mean}}; }, "has no name");
  expect(
      [](Trace&, Loss& l, Tensor) {
        l.metrics = {{"a", l.mean}, {"a", l.mean}};
      },
      "two metrics of the loss are called 'a'" + here);
  for (const std::string name : {"loss", "step", "learning_rate", "tokens_per_second", "loss_scale",
                                 "arena_bytes", "xxhash64"})
    expect(
        [&](Trace&, Loss& loss, Tensor) {
          loss.metrics = {{name, loss.mean}};
        },
        "a metric of the loss is called '" + name + "', which a step tells itself" + here);
  expect([](Trace&, Loss& loss, Tensor x) { loss.mean = x * 2.0; },
         "a step's loss must be a floating scalar, this is " + shape + here);
  expect([](Trace&, Loss& loss, Tensor) { loss.mean = Tensor(); }, "loss is an empty Tensor");
  expect(
      [](Trace&, Loss& loss, Tensor x) {
        loss.mean = reduce_mean(x, {0, 1});
      },
      "the loss depends on no trained parameter" + here);
}

TEST(StepFunction, TheNoiseScaleNeedsAnEvenBatchInEveryField) {
  const auto refusal = [](const std::vector<BatchField>& fields) {
    return usage_error([&] {
      OptimizerOptions options;
      options.noise_scale = true;
      trace_training_step(squared_error, fields, options);
    });
  };
  EXPECT_THAT(refusal({{"x", {DType::f32, {3, kWidth}}}, {"y", {DType::f32, {3}}}}),
              HasSubstr("needs an even batch size, along the batch axis of every field; 'x' is"));
  EXPECT_THAT(refusal({{"x", {DType::f32, {4, kWidth}}}, {"y", {DType::f32, {2}}}}),
              HasSubstr("'y' is f32[2]"));
  EXPECT_THAT(refusal({{"x", {DType::f32, {}}}}), HasSubstr("'x' is f32[]"));
}

}  // namespace
}  // namespace fullbore
