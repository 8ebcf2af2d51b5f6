// Runs whose moments or weights are stored in less than f32: what is saved and resumed, and bits on every processor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "fullbore/base/hash.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/step_function.h"
#include "fullbore/train/stored_weights.h"
#include "tests/support/evaluate.h"
#include "tests/train/trainer_test.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using testing_support::cpu_device;

constexpr int64_t kSide = 64;  // of the weight: 4096 elements, so that its moments are in blocks

/// y = x turned about, with signs.
class Turns : public BatchSource {
 public:
  const std::vector<BatchField>& fields() const override { return fields_; }
  void fill(uint64_t position, std::span<void* const> buffers) const override {
    PhiloxStream draws(3, position);
    auto* x = static_cast<float*>(buffers[0]);
    auto* y = static_cast<float*>(buffers[1]);
    for (int64_t i = 0; i < kRows * kSide; ++i) x[i] = static_cast<float>(draws.uniform(-1, 1));
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t i = 0; i < kSide; ++i)
        y[row * kSide + i] = (i % 2 == 0 ? 1.0F : -1.0F) * x[row * kSide + kSide - 1 - i];
  }

 private:
  std::vector<BatchField> fields_ = {{"x", {DType::f32, {kRows, kSide}}},
                                     {"y", {DType::f32, {kRows, kSide}}}};
};

Loss turn_error(Trace& trace, std::span<const Tensor> batch) {
  const Tensor weight = trace.parameter("weight", {kSide, kSide}, Initializer::normal(0.1));
  const Tensor bias = trace.parameter("bias", {kSide}, Initializer::zeros());
  const Tensor error = linear(batch[0], weight, bias) - batch[1];
  return reduce_mean(error * error, {0, 1});
}

struct Case {
  std::string name;
  StorageOptions storage;
  double ema_decay = 0;
};

class StoredState : public TrainerTest, public ::testing::WithParamInterface<Case> {
 protected:
  StoredState() {
    job_.loss = turn_error;
    job_.training = std::make_shared<Turns>();
    job_.validation->source = job_.training;
    job_.options.steps = 60;
    job_.options.checkpoint_interval = 30;
    job_.options.optimizer.schedule.learning_rate = 0.02;
    job_.options.optimizer.storage = GetParam().storage;
    job_.options.optimizer.ema_decay = GetParam().ema_decay;
    if (!GetParam().storage.master_weights) job_.options.compile.precision = DType::bf16;
  }
};

TEST_P(StoredState, LearnsAndGoesOnToTheBit) {
  ASSERT_EQ(train_in("whole"), ExitCode::kOk);
  const auto summary = nlohmann::json::parse(file("whole/summary.json"));
  EXPECT_LT(summary["final_validation_loss"], 0.05) << "it begins at a third";
  job_.options.steps = 30;
  ASSERT_EQ(train_in("parts"), ExitCode::kOk);
  job_.options.steps = 60;
  ASSERT_EQ(train_in("parts", true), ExitCode::kOk);
  EXPECT_TRUE(last("whole") == last("parts"));
}

TEST_P(StoredState, IsNotTakenForAnother) {
  job_.options.steps = 30;
  ASSERT_EQ(train_in("run"), ExitCode::kOk);
  const StorageOptions stored = GetParam().storage;
  job_.options.steps = 60;
  job_.options.optimizer.storage = {};
  job_.options.compile.precision = DType::f32;
  try {
    train_in("run", true);
    FAIL() << "resumed";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr(stored.master_weights ? "engine.moments=" + stored.moments + ", not f32"
                                                : "started with engine.master_weights=false"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, StoredState,
    ::testing::Values(Case{"bf16_moments", {.moments = "bf16"}},
                      Case{"int8_moments", {.moments = "int8"}},
                      Case{"all", {.moments = "int8", .master_weights = false}, 0.9}),
    [](const auto& parameter) { return parameter.param.name; });

// --- the graph -----------------------------------------------------------------------------------
TEST(StoredWeights, AreMatricesAloneAndTakeHalfTheBytes) {
  const TracedStep step =
      trace_training_step(turn_error, Turns().fields(), {.storage = {.master_weights = false}});
  for (const Graph::Input& input : step.graph.inputs()) {
    if (input.role != Role::parameter) continue;
    EXPECT_EQ(step.graph.type(input.value).dtype,
              input.name == "weight" ? DType::bf16 : DType::f32);
  }
  const auto parameters = [&](const TracedStep& traced) {
    const State state = initial_state(traced, 1, cpu_device(1));
    int64_t bytes = 0;
    for (const StateEntry& entry : state.entries())
      if (entry.role == Role::parameter) bytes += entry.type.bytes();
    return bytes;
  };
  const TracedStep whole = trace_training_step(turn_error, Turns().fields(), {});
  EXPECT_EQ(parameters(whole), 4 * (kSide * kSide + kSide));
  EXPECT_EQ(parameters(step), 2 * kSide * kSide + 4 * kSide);
}

TEST(StoredWeights, AreConvertedElementByElement) {
  const float values[] = {1, -0.3333F, 1e30F};
  uint16_t narrow[3];
  float back[3];
  convert_elements(std::as_bytes(std::span(values)), DType::f32,
                   std::as_writable_bytes(std::span(narrow)), DType::bf16);
  convert_elements(std::as_bytes(std::span(narrow)), DType::bf16,
                   std::as_writable_bytes(std::span(back)), DType::f32);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(back[i], bf16_to_f32(f32_to_bf16(values[i])));
  const TensorType wide{DType::f32, {3}};
  EXPECT_TRUE(is_convertible_weight({DType::bf16, {3}}, wide));
  EXPECT_FALSE(is_convertible_weight({DType::bf16, {4}}, wide));
  EXPECT_FALSE(is_convertible_weight({DType::i8, {3}}, wide));
}

// --- bits ----------------------------------------------------------------------------------------
// Eight updates with given gradients, where nothing is summed but within a block: the same bits on every processor.
TEST(StoredWeights, AndMomentsHaveTheSameBitsOnEveryProcessor) {
  uint64_t hash = 0;
  for (const std::string moments : {"bf16", "int8"}) {
    const LossFunction loss = [](Trace& trace, std::span<const Tensor> batch) {
      const Tensor weight = trace.parameter("weight", {kSide, kSide}, Initializer::normal(0.1));
      return Loss(reduce_sum(weight * batch[0], {0, 1}));
    };
    const TracedStep step =
        trace_training_step(loss, {{"gradient", {DType::f32, {kSide, kSide}}}},
                            {.schedule = {"constant", 1e-3, 0, 0, 1},
                             .clip_norm = 0,
                             .storage = {.moments = moments, .master_weights = false}});
    State state = initial_state(step, 5, cpu_device(2));
    Program program = Program::compile(step.graph, state);
    alignas(64) static float gradient[kSide * kSide];
    for (uint64_t position = 0; position < 8; ++position) {
      PhiloxStream draws(9, position);
      for (float& each : gradient) each = static_cast<float>(draws.uniform(-1, 1));
      const void* const batch[] = {gradient};
      program.run(batch);
    }
    for (const StateEntry& entry : state.entries()) {
      const std::vector<char> bytes = state.read<char>(entry.name);
      hash = hash * 31 + hash_text({bytes.data(), bytes.size()});
    }
  }
  EXPECT_EQ(hash, 16827380682222175589U);
}

}  // namespace
}  // namespace fullbore
