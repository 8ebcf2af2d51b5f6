#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "fullbore/base/files.h"
#include "fullbore/base/philox.h"
#include "fullbore/monitor/console.h"
#include "fullbore/monitor/machine.h"
#include "fullbore/train/trainer.h"
#include "tests/support/device.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {

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

inline Loss squared_error(Trace& trace, std::span<const Tensor> batch) {
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
      const std::shared_ptr<Device> device = testing_support::cpu_device(workers);
      refresh_machine(*device);
    }
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(getenv("FULLBORE_CACHE")); }

  TrainerTest() : console_(open("/dev/null", O_WRONLY)) {
    job_.loss = squared_error;
    job_.training = std::make_shared<Lines>();
    ValidationSet validation;
    validation.source = job_.training;
    validation.batches = 2;
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
  /// All files of the run's last checkpoint.
  std::string last(const std::string& run) const {
    const OpenedCheckpoint checkpoint = open_checkpoint(folder_ / (run + "/checkpoints/last"));
    std::string bytes = file(run + "/checkpoints/last/manifest.json");
    for (const auto& [name, entry] : checkpoint.folder.manifest())
      bytes += file(run + "/checkpoints/last/" + name);
    return bytes;
  }

  testing::ScratchFolder folder_;
  Console console_;
  TrainingJob job_;
};

}  // namespace fullbore
