// Whole training steps on a card: losses and weights of the processor's, to rounding.
#include <gmock/gmock.h>

#include <cmath>

#include "fullbore/ops/ops.h"
#include "fullbore/train/step_runner.h"
#include "tests/cuda/fake_card.h"

namespace fullbore::cuda {
namespace {

using Training = FakeCard;

/// y = sin of x . (1, -2, 3).
class Waves : public BatchSource {
 public:
  const std::vector<BatchField>& fields() const override { return fields_; }
  void fill(uint64_t position, std::span<void* const> buffers) const override {
    auto* x = static_cast<float*>(buffers[0]);
    auto* y = static_cast<float*>(buffers[1]);
    for (int i = 0; i < 24; ++i)
      x[i] = static_cast<float>((position * 7 + static_cast<uint64_t>(i) * 5) % 13) / 13 - 0.5F;
    for (int row = 0; row < 8; ++row)
      y[row] = std::sin(x[row * 3] - 2 * x[row * 3 + 1] + 3 * x[row * 3 + 2]);
  }

 private:
  std::vector<BatchField> fields_ = {{"x", {DType::f32, {8, 3}}}, {"y", {DType::f32, {8}}}};
};

Loss squared_error(Trace& trace, std::span<const Tensor> batch) {
  const Tensor weight = trace.parameter("weight", {3}, Initializer::normal(0.1));
  const Tensor error = tanh(reduce_sum(batch[0] * weight, {1})) - batch[1];
  return reduce_mean(error * error, {0});
}

struct Trained {
  std::vector<double> losses;
  std::vector<float> weight;
};

Trained trained_on(const std::string& device, Microbatches parts) {
  TrainingJob job;
  job.training = std::make_shared<Waves>();
  job.loss = squared_error;
  job.options.device = device;
  job.options.parts = parts;
  job.options.optimizer.schedule = {"constant", 0.05, 0, 0, 1};
  StepRunner runner(job);
  Trained trained;
  for (int i = 0; i < 12; ++i) trained.losses.push_back(runner.run().loss);
  trained.weight = runner.state().read<float>("weight");
  return trained;
}

// The bound: 12 steps, each of some hundred roundings of 2^-24.
constexpr double kBound = 12 * 100 * 0x1p-24;

TEST_F(Training, HasTheLossesOfTheProcessor) {
  for (const Microbatches& parts : {Microbatches{.accumulate = 1, .parallel = 1},
                                    Microbatches{.accumulate = 2, .parallel = 2}}) {
    const Trained expected = trained_on("cpu", parts);
    std::vector<Trained> found;
    for (const uint64_t seed : {0, 5}) {
      fake().seed = seed;
      found.push_back(trained_on("cuda", parts));
    }
    for (size_t i = 0; i < expected.losses.size(); ++i)
      EXPECT_NEAR(found[0].losses[i], expected.losses[i], kBound * expected.losses[0]) << i;
    for (size_t i = 0; i < expected.weight.size(); ++i)
      EXPECT_NEAR(found[0].weight[i], expected.weight[i], kBound) << i;
    EXPECT_LT(found[0].losses.back(), found[0].losses.front());
    // Equal runs have equal bits, in whatever order a card makes what nothing orders.
    EXPECT_EQ(found[1].losses, found[0].losses);
    EXPECT_EQ(found[1].weight, found[0].weight);
  }
  EXPECT_GT(fake().graph_launches, 0);
}

}  // namespace
}  // namespace fullbore::cuda
