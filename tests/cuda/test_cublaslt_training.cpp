// Training steps whose products are cuBLASLt's: loops that the host steps, with operands that move, conditional nodes,
// microbatches.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "fullbore/device/cuda/driver/result_code.h"
#include "fullbore/device/device_error.h"
#include "fullbore/lab/ablation/switches.h"
#include "fullbore/ops/ops.h"
#include "fullbore/trace/control.h"
#include "fullbore/train/step_runner.h"
#include "tests/cuda/fake_card.h"

namespace fullbore::cuda {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRows = 8, kInputs = 3, kWidth = 4;
constexpr int64_t kWithConditionalNodes = 12040, kWithout = 12030;

class Waves : public BatchSource {
 public:
  const std::vector<BatchField>& fields() const override { return fields_; }
  void fill(uint64_t position, std::span<void* const> buffers) const override {
    auto* x = static_cast<float*>(buffers[0]);
    auto* y = static_cast<float*>(buffers[1]);
    for (int i = 0; i < kRows * kInputs; ++i)
      x[i] = static_cast<float>((position * 7 + static_cast<uint64_t>(i) * 5) % 13) / 13 - 0.5F;
    for (int row = 0; row < kRows; ++row, x += kInputs)
      y[row] = std::sin(x[0] - 2 * x[1] + 3 * x[2]);
  }

 private:
  std::vector<BatchField> fields_ = {{"x", {DType::f32, {kRows, kInputs}}},
                                     {"y", {DType::f32, {kRows}}}};
};

struct Guess {
  Tensor y;
};

/// Of a fixed point of products, which is sought until it moves little. Its gradient reads rows that were saved.
Loss fixed_point_error(Trace& trace, std::span<const Tensor> batch) {
  const Tensor into = trace.parameter("into", {kInputs, kWidth}, Initializer::normal(0.5));
  const Tensor within = trace.parameter("within", {kWidth, kWidth}, Initializer::normal(0.2));
  const Tensor drive = matmul(batch[0], into);
  const WhileResult<Guess> found =
      while_loop(Guess{0.0 * drive}, {.at_most = 20}, [&](const Guess& now) {
        const Guess next{tanh(drive + matmul(now.y, within))};
        const Tensor moved = next.y - now.y;
        return Iteration<Guess>{next, less(reduce_max(moved * moved, {0, 1}), 1e-4)};
      });
  const Tensor error = reduce_sum(found.state.y, {1}) - batch[1];
  return reduce_mean(error * error, {0});
}

struct Trained {
  std::vector<double> losses;
  std::vector<float> weight;
  int64_t products = 0;        ///< of the last step
  int64_t graph_launches = 0;  ///< likewise
};

class CublasLtTraining : public FakeCard {
 protected:
  static Trained trained(bool cublaslt, Microbatches parts = {.accumulate = 1, .parallel = 1}) {
    TrainingJob job;
    job.training = std::make_shared<Waves>();
    job.loss = fixed_point_error;
    job.options.device = "cuda";
    job.options.parts = parts;
    job.options.compile.cublaslt = cublaslt;
    job.options.optimizer.schedule = {"constant", 0.05, 0, 0, 1};
    StepRunner runner(job);
    Trained trained;
    for (int i = 0; i < 6; ++i) {
      const FakeCuda before = fake();
      trained.losses.push_back(runner.run().loss);
      trained.products = fake().lt_products - before.lt_products;
      trained.graph_launches = fake().graph_launches - before.graph_launches;
    }
    trained.weight = runner.state().read<float>("within");
    return trained;
  }
};

TEST_F(CublasLtTraining, HasTheLossesOfOwnKernels) {
  for (const Microbatches& parts :
       {Microbatches{.accumulate = 1, .parallel = 1}, Microbatches{.accumulate = 2, .parallel = 1},
        Microbatches{.accumulate = 2, .parallel = 2}}) {
    const Trained own = trained(false, parts);
    EXPECT_EQ(own.products, 0);
    const Trained library = trained(true, parts);
    EXPECT_GT(library.products, 6);
    // As many graphs: products are nodes of the step's, in its loops too.
    EXPECT_EQ(library.graph_launches, own.graph_launches);
    // Six steps, each of some hundred roundings of 2^-24.
    for (size_t i = 0; i < own.losses.size(); ++i)
      EXPECT_NEAR(library.losses[i], own.losses[i], 6 * 100 * 0x1p-24 * own.losses[0]) << i;
    EXPECT_LT(library.losses.back(), library.losses.front());
  }
}

// Conditional nodes, loops that the host steps, every launch by the host: the same algorithms, the same bits.
TEST_F(CublasLtTraining, HasTheSameBitsHoweverItIsReplayed) {
  fake().version = kWithConditionalNodes;
  const Trained first = trained(true);
  for (const int64_t version : {kWithConditionalNodes, kWithout})
    for (const uint64_t seed : {0, 4}) {
      fake().version = version;
      fake().seed = seed;
      const Trained other = trained(true);
      EXPECT_EQ(other.losses, first.losses) << version << ", " << seed;
      EXPECT_EQ(other.weight, first.weight) << version << ", " << seed;
      EXPECT_EQ(other.graph_launches > first.graph_launches, version == kWithout);
    }
  const Variable blocking("FULLBORE_CUDA_BLOCKING", "1");
  const Trained alone = trained(true);
  EXPECT_EQ(alone.losses, first.losses);
  EXPECT_EQ(alone.weight, first.weight);
  EXPECT_EQ(alone.graph_launches, 0);
}

// A product whose operands move is told anew in each iteration.
TEST_F(CublasLtTraining, NamesTheCallThatTellsWhereOperandsAre) {
  fake().version = kWithout;
  std::strncpy(fake().fail_call, "cuGraphExecChildGraphNodeSetParams", sizeof fake().fail_call - 1);
  fake().fail_at = 1;
  fake().fail_code = kInvalidValue;
  EXPECT_THAT(message_of<DeviceError>([] { trained(true); }),
              HasSubstr("cuGraphExecChildGraphNodeSetParams"));
}

// An arm of it without the library would be the arm that it is compared with.
TEST_F(CublasLtTraining, IsASwitchWhereTheLibraryIsFound) {
  const auto is_known = [](const char* device) {
    Config config;
    config.engine.device = device;
    return std::ranges::count(known_switches(config), "engine.cublaslt=true", &Switch::name) == 1;
  };
  EXPECT_TRUE(is_known("cuda"));
  EXPECT_FALSE(is_known("cpu"));
  const Variable nowhere("FULLBORE_CUBLASLT", "/nowhere/libcublasLt.so.13");
  EXPECT_FALSE(is_known("cuda"));
}

}  // namespace
}  // namespace fullbore::cuda
