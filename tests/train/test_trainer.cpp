#include "fullbore/train/trainer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "fullbore/base/files.h"
#include "fullbore/base/philox.h"
#include "fullbore/monitor/console.h"
#include "fullbore/monitor/machine.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr int64_t kRows = 8;
constexpr int64_t kWidth = 3;

/// y = x . (1, -2, 3): nothing of tokens or language.
class Lines : public BatchSource {
 public:
  const std::vector<BatchField>& fields() const override { return fields_; }
  void fill(uint64_t position, std::span<void* const> buffers) const override {
    PhiloxStream draws(11, position);
    auto* x = static_cast<float*>(buffers[0]);
    auto* y = static_cast<float*>(buffers[1]);
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t i = 0; i < kWidth; ++i)
        x[row * kWidth + i] = static_cast<float>(draws.uniform(-1, 1));
      y[row] = x[row * kWidth] - 2 * x[row * kWidth + 1] + 3 * x[row * kWidth + 2];
    }
  }

 private:
  std::vector<BatchField> fields_ = {{"x", {DType::f32, {kRows, kWidth}}},
                                     {"y", {DType::f32, {kRows}}}};
};

Tensor squared_error(Trace& trace, std::span<const Tensor> batch) {
  const Tensor weight = trace.parameter("weight", {kWidth}, Initializer::normal(0.1));
  const Tensor error = reduce_sum(batch[0] * weight, {1}) - batch[1];
  return reduce_mean(error * error, {0});
}

class TrainerTest : public ::testing::Test {
 protected:
  /// One cache for all: kernels are compiled and peaks measured once.
  static void SetUpTestSuite() {
    setenv("FULLBORE_CACHE", (::testing::TempDir() + "fullbore_train_cache").c_str(), 1);
    for (const int workers : {1, 2}) {
      Team team(workers);
      refresh_machine(team);
    }
  }
  static void TearDownTestSuite() { fs::remove_all(getenv("FULLBORE_CACHE")); }

  TrainerTest() : console_(open("/dev/null", O_WRONLY)) {
    job_.loss = squared_error;
    job_.training = std::make_shared<Lines>();
    ValidationSet validation;
    validation.source = job_.training;
    validation.batches = 2;
    validation.rows = kRows;
    validation.predictions = [](uint64_t) { return kRows; };
    job_.validation = validation;
    job_.tokens_per_step = kRows;
    job_.tokenizer = "none";
    job_.identity = {{"data", "lines"}};
    job_.config = "config: text\n";
    job_.options.steps = 40;
    job_.options.evaluation_interval = 10;
    job_.options.checkpoint_interval = 10;
    job_.options.workers = 2;
    job_.options.optimizer.schedule = {.schedule = "constant",
                                       .learning_rate = 0.1,
                                       .minimum_learning_rate = 0.1,
                                       .warmup_steps = 0,
                                       .total_steps = 40};
    job_.options.optimizer.weight_decay = 0;
  }

  ExitCode train_in(const std::string& name, bool resume = false) {
    const std::string path = folder_ / name;
    const RunDirectory run = resume ? RunDirectory::open(path) : RunDirectory::create(path);
    return train(job_, run, console_, resume, std::chrono::steady_clock::now());
  }
  std::string file(const std::string& name) const { return read_file(folder_ / name).value(); }

  testing::ScratchFolder folder_;
  Console console_;
  TrainingJob job_;
};

TEST_F(TrainerTest, LearnsAFunctionThatIsNoLanguageModel) {
  job_.options.steps = 300;
  ASSERT_EQ(train_in("run"), ExitCode::kOk);
  const auto json = nlohmann::json::parse(file("run/summary.json"));
  EXPECT_LT(json["final_validation_loss"], 1e-3);
  EXPECT_EQ(json["parameters"], kWidth);
  EXPECT_EQ(file("run/config.resolved.yaml"), job_.config);

  State state({{"weight", Role::parameter, {DType::f32, {kWidth}}}});
  load_parameters(read_checkpoint(folder_ / "run/checkpoints/best.safetensors").take_or_throw(),
                  state);
  const std::span<float> weight = state.span<float>("weight");
  EXPECT_NEAR(weight[0], 1, 0.05);
  EXPECT_NEAR(weight[1], -2, 0.05);
  EXPECT_NEAR(weight[2], 3, 0.05);
}

TEST_F(TrainerTest, StagesMakeTheSameBitsAsOneRun) {
  ASSERT_EQ(train_in("whole"), ExitCode::kOk);
  for (const int64_t steps : {10, 13, 30}) {
    job_.options.steps = steps;
    ASSERT_EQ(train_in("parts", steps != 10), ExitCode::kOk);
  }
  job_.options.steps = 40;
  ASSERT_EQ(train_in("parts", true), ExitCode::kOk);
  EXPECT_TRUE(file("whole/checkpoints/last.safetensors") ==
              file("parts/checkpoints/last.safetensors"));
}

TEST_F(TrainerTest, NeitherWorkersNorLoadersChangeTheBits) {
  ASSERT_EQ(train_in("two"), ExitCode::kOk);
  job_.options.workers = 1;
  job_.options.loader = {.workers = 0, .prefetch = 1};
  ASSERT_EQ(train_in("one"), ExitCode::kOk);
  EXPECT_TRUE(file("one/checkpoints/last.safetensors") == file("two/checkpoints/last.safetensors"));
}

TEST_F(TrainerTest, RunsWithoutValidation) {
  job_.validation.reset();
  ASSERT_EQ(train_in("run"), ExitCode::kOk);
  const auto json = nlohmann::json::parse(file("run/summary.json"));
  EXPECT_TRUE(json["final_validation_loss"].is_null());
  EXPECT_TRUE(fs::exists(folder_ / "run/checkpoints/last.safetensors"));
  EXPECT_FALSE(fs::exists(folder_ / "run/checkpoints/best.safetensors"));
}

// The loss of step 25 is a division by zero: what was saved at 20 stays, nothing after it is.
TEST_F(TrainerTest, StopsAtNumbersThatAreNotFinite) {
  class Spoiled : public Lines {
   public:
    void fill(uint64_t position, std::span<void* const> buffers) const override {
      Lines::fill(position, buffers);
      if (position == 24) static_cast<float*>(buffers[1])[0] = INFINITY;
    }
  };
  job_.training = std::make_shared<Spoiled>();
  try {
    train_in("run");
    FAIL() << "it went on";
  } catch (const NumericalError& error) {
    EXPECT_THAT(error.what(), HasSubstr("step 25 is not finite: loss inf"));
    EXPECT_THAT(error.what(), HasSubstr("The last good state is"));
  }
  const auto checkpoint =
      read_checkpoint(folder_ / "run/checkpoints/last.safetensors").take_or_throw();
  EXPECT_EQ(read_run_record(checkpoint).take_or_throw().step, 20);
  const auto json = nlohmann::json::parse(file("run/summary.json"));
  EXPECT_EQ(json["status"], "failed");
  EXPECT_THAT(json["error"].get<std::string>(), HasSubstr("step 25"));
}

TEST_F(TrainerTest, ALossMustBeAScalar) {
  job_.loss = [](Trace& trace, std::span<const Tensor> batch) {
    squared_error(trace, batch);
    return batch[1];
  };
  try {
    train_in("run");
    FAIL() << "it ran";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("must be a floating scalar, this is f32[8]"));
  }
}

TEST_F(TrainerTest, AWriteThatFailsEndsTheRunWithAReason) {
  const RunDirectory run = RunDirectory::create(folder_ / "run");
  fs::remove_all(folder_ /
                 "run/checkpoints");  // a file in the folder's place: root may do anything
  folder_.put("run/checkpoints", "");
  EXPECT_THROW(train(job_, run, console_, false, std::chrono::steady_clock::now()), DataError);
  EXPECT_EQ(nlohmann::json::parse(file("run/summary.json"))["status"], "failed");
}

}  // namespace
}  // namespace fullbore
