// Whole training steps on a card: losses and weights of the processor's, to rounding.
#include <gmock/gmock.h>

#include <cmath>

#include "fullbore/ops/ops.h"
#include "fullbore/trace/control.h"
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
    for (int row = 0; row < 8; ++row, x += 3) y[row] = std::sin(x[0] - 2 * x[1] + 3 * x[2]);
  }

 private:
  std::vector<BatchField> fields_ = {{"x", {DType::f32, {8, 3}}}, {"y", {DType::f32, {8}}}};
};

Loss squared_error(Trace& trace, std::span<const Tensor> batch) {
  const Tensor weight = trace.parameter("weight", {3}, Initializer::normal(0.1));
  const Tensor error = tanh(reduce_sum(batch[0] * weight, {1})) - batch[1];
  return reduce_mean(error * error, {0});
}

struct Guess {
  Tensor y;
};

/// Of a fixed point, which is sought until it moves little: with the weight grows how often.
Loss fixed_point_error(Trace& trace, std::span<const Tensor> batch) {
  const Tensor weight = trace.parameter("weight", {3}, Initializer::normal(0.1));
  const Tensor drive = reduce_sum(batch[0] * weight, {1});
  const WhileResult<Guess> found =
      while_loop(Guess{0.0 * drive}, {.at_most = 20}, [&](const Guess& now) {
        const Guess next{tanh(drive + 0.4 * now.y)};
        const Tensor moved = next.y - now.y;
        return Iteration<Guess>{next, less(reduce_max(moved * moved, {0}), 1e-4)};
      });
  const Tensor error = found.state.y - batch[1];
  return reduce_mean(error * error, {0});
}

struct Trained {
  std::vector<double> losses;
  std::vector<float> weight;
  LoopIterations iterations;  ///< of the last step
};

Trained trained_on(const std::string& device, Microbatches parts,
                   const decltype(TrainingJob::loss)& loss = squared_error) {
  TrainingJob job;
  job.training = std::make_shared<Waves>();
  job.loss = loss;
  job.options.device = device;
  job.options.parts = parts;
  job.options.optimizer.schedule = {"constant", 0.05, 0, 0, 1};
  StepRunner runner(job);
  Trained trained;
  for (int i = 0; i < 12; ++i) trained.losses.push_back(runner.run().loss);
  trained.weight = runner.state().read<float>("weight");
  trained.iterations = runner.program(0).iterations_made();
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

// Forward and backward, by conditional nodes and stepped by the host: as many graphs as of a step without loops, the same bits.
TEST_F(Training, HasAdaptiveLoopsInItsGraph) {
  for (const Microbatches& parts : {Microbatches{.accumulate = 1, .parallel = 1},
                                    Microbatches{.accumulate = 2, .parallel = 2}}) {
    const auto launches_of = [&](const decltype(TrainingJob::loss)& loss, Trained& trained) {
      const int64_t before = fake().graph_launches;
      trained = trained_on("cuda", parts, loss);
      return fake().graph_launches - before;
    };
    Trained straight, found, stepped;
    const int64_t without_loops = launches_of(squared_error, straight);
    const int64_t bodies = fake().conditional_bodies;
    EXPECT_EQ(launches_of(fixed_point_error, found), without_loops);
    EXPECT_GT(fake().conditional_bodies, bodies);
    fake().version = 12030;  // no conditional nodes
    EXPECT_GT(launches_of(fixed_point_error, stepped), without_loops);
    fake().version = 12040;
    EXPECT_EQ(found.losses, stepped.losses);
    EXPECT_EQ(found.weight, stepped.weight);
    EXPECT_EQ(found.iterations, stepped.iterations);
    EXPECT_LT(found.losses.back(), found.losses.front());
    const Trained expected = trained_on("cpu", parts, fixed_point_error);
    for (size_t i = 0; i < expected.losses.size(); ++i)
      EXPECT_NEAR(found.losses[i], expected.losses[i], kBound * expected.losses[0]) << i;
  }
}

}  // namespace
}  // namespace fullbore::cuda
