#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "fullbore/runtime/compare_nodes.h"
#include "fullbore/train/bad_step.h"
#include "tests/support/device.h"
#include "tests/train/trainer_test.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;

using ::testing::HasSubstr;

/// Lines in batches of 8, 4 or 2: three programs, one State.
class UnevenLines : public Lines {
 public:
  const std::vector<BatchField>& fields() const override { return shapes_[0]; }
  std::vector<std::vector<BatchField>> shapes() const override { return shapes_; }
  size_t shape_at(uint64_t position) const override { return position % 7 % 3; }
  void fill(uint64_t position, std::span<void* const> buffers) const override {
    float x[kRows * kWidth];
    float y[kRows];
    void* const whole[] = {x, y};
    Lines::fill(position, whole);
    if (position == bad_) y[1] = INFINITY;
    const std::vector<BatchField>& shape = shapes_[shape_at(position)];
    std::memcpy(buffers[0], x, static_cast<size_t>(shape[0].type.bytes()));
    std::memcpy(buffers[1], y, static_cast<size_t>(shape[1].type.bytes()));
  }
  uint64_t bad_ = ~uint64_t{0};

 private:
  static std::vector<BatchField> shape(int64_t rows) {
    return {{"x", {DType::f32, {rows, kWidth}}}, {"y", {DType::f32, {rows}}}};
  }
  std::vector<std::vector<BatchField>> shapes_ = {shape(8), shape(4), shape(2)};
};

class UnevenTrainerTest : public TrainerTest {
 protected:
  UnevenTrainerTest() {
    job_.training = lines_;
    job_.validation->source = lines_;
    job_.validation->batches = 7;
    job_.loss = [](Trace& trace, std::span<const Tensor> batch) {
      const double rows = static_cast<double>(batch[1].dim(0));
      return Loss(squared_error(trace, batch).mean, full(trace.builder(), {DType::f32, {}}, rows));
    };
  }
  std::shared_ptr<UnevenLines> lines_ = std::make_shared<UnevenLines>();
};

TEST_F(UnevenTrainerTest, BatchesOfSeveralShapesTrainOneModel) {
  job_.options.steps = 300;
  job_.options.log_interval = 1;
  ASSERT_EQ(train_in("run"), ExitCode::kOk);
  const auto json = nlohmann::json::parse(file("run/summary.json"));
  EXPECT_LT(json["final_validation_loss"], 1e-3);
  EXPECT_THAT(file("run/log.txt"), HasSubstr("6 programs compiled in"));
  std::istringstream lines(file("run/metrics.jsonl"));
  const double rows[] = {8, 4, 2};
  for (std::string line; std::getline(lines, line);) {
    const auto record = nlohmann::json::parse(line);
    if (record["kind"] != "train") continue;
    const size_t shape = lines_->shape_at(record["step"].get<uint64_t>() - 1);
    EXPECT_EQ(record["predictions"], rows[shape]) << line;
  }
}

TEST_F(UnevenTrainerTest, StagesWorkersAndLoadersMakeTheSameBits) {
  ASSERT_EQ(train_in("whole"), ExitCode::kOk);
  for (const int64_t steps : {9, 13, 30, 40}) {
    job_.options.steps = steps;
    job_.options.workers = 1 + static_cast<int>(steps % 2);
    job_.options.loader = {.workers = static_cast<int>(steps % 4), .prefetch = 2};
    ASSERT_EQ(train_in("parts", steps != 9), ExitCode::kOk);
  }
  EXPECT_TRUE(last("whole") == last("parts"));
}

TEST_F(UnevenTrainerTest, ABadStepIsKeptWithTheGraphOfItsShape) {
  lines_->bad_ = 22;  // a batch of 4
  ASSERT_EQ(train_in("run"), ExitCode::kOk);
  EXPECT_EQ(nlohmann::json::parse(file("run/summary.json"))["skipped_steps"], 1);
  const LoadedStep bad = load_bad_step(folder_ / "run/bad_steps/step-00000023");
  EXPECT_EQ(bad.step.finding, "batch 'y' f32[4] held an infinity before the step");
  const std::shared_ptr<Device> device = cpu_device(2);
  EXPECT_EQ(first_difference(bad.step.graph, bad.inputs, device, bad.step.compile), "");
}

}  // namespace
}  // namespace fullbore
