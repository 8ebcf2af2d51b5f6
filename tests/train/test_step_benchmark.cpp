#include "fullbore/train/step_benchmark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fullbore/base/error.h"
#include "fullbore/base/philox.h"

namespace fullbore {
namespace {

/// Two numbers a row; `bad`: the position whose batch is not finite.
class Rows : public BatchSource {
 public:
  explicit Rows(int64_t bad = -1) : bad_(bad) {}
  const std::vector<BatchField>& fields() const override { return fields_; }
  void fill(uint64_t position, std::span<void* const> buffers) const override {
    PhiloxStream draws(3, position);
    auto* x = static_cast<float*>(buffers[0]);
    for (int i = 0; i < 8; ++i) x[i] = static_cast<float>(draws.uniform(-1, 1));
    if (static_cast<int64_t>(position) == bad_) x[0] = std::numeric_limits<float>::infinity();
  }

 private:
  int64_t bad_;
  std::vector<BatchField> fields_ = {{"x", {DType::f32, {4, 2}}}};
};

TrainingJob job_of(int64_t bad = -1) {
  TrainingJob job;
  job.loss = [](Trace& trace, std::span<const Tensor> batch) {
    const Tensor weight = trace.parameter("weight", {2}, Initializer::normal(0.1));
    const Tensor error = reduce_sum(batch[0] * weight, {1}) - reduce_sum(batch[0], {1});
    return reduce_mean(error * error, {0});
  };
  job.training = std::make_shared<Rows>(bad);
  job.options.workers = 1;
  job.options.optimizer.schedule = {.schedule = "constant",
                                    .learning_rate = 0.05,
                                    .minimum_learning_rate = 0.05,
                                    .warmup_steps = 0,
                                    .total_steps = 1000};
  return job;
}

TEST(StepRunner, MakesTheStepsThatTrainingMakes) {
  StepRunner runner(job_of());
  StepRunner again(job_of());
  const double first = runner.run().loss;
  EXPECT_GT(first, 0);
  EXPECT_EQ(again.run().loss, first);
  double last = first;
  for (int i = 0; i < 200; ++i) last = runner.run().loss;
  EXPECT_LT(last, 0.1 * first) << "it learns";
  EXPECT_EQ(runner.steps(), 201);
  EXPECT_EQ(runner.samples_per_step(), 4);
  EXPECT_EQ(runner.tokens_per_step(), 0);
}

TEST(StepRunner, FillsParametersAsTheJobSays) {
  TrainingJob job = job_of();
  job.initialize = [](State& state) {
    for (float& value : state.span<float>("weight")) value = 100;
  };
  EXPECT_GT(StepRunner(job).run().loss, 100);
}

TEST(StepBenchmark, MeasuresEachContenderAsOftenAsTheOthers) {
  StepRunner a(job_of());
  StepRunner b(job_of());
  std::vector<std::string> doings;
  const BenchmarkOptions options = {.warm_up_steps = 3, .rounds = 4, .steps_per_round = 5};
  const std::vector<BenchmarkTimes> times =
      measure_steps({&a, &b}, options, [&](const std::string& doing) { doings.push_back(doing); });
  ASSERT_EQ(times.size(), 2U);
  for (const BenchmarkTimes& each : times) {
    EXPECT_EQ(each.step_seconds.size(), 20U);
    EXPECT_EQ(each.round_seconds.size(), 4U);
    for (const double seconds : each.step_seconds) EXPECT_GT(seconds, 0);
    EXPECT_GE(each.wait_seconds, 0);
  }
  EXPECT_EQ(a.steps(), 23);
  EXPECT_EQ(b.steps(), 23);
  EXPECT_EQ(times[0].first_loss, times[1].first_loss);
  EXPECT_EQ(times[0].last_loss, times[1].last_loss) << "the same steps on the same batches";
  EXPECT_EQ(doings.size(), 5U);
}

TEST(StepBenchmark, FillsARoundWithSteps) {
  StepRunner runner(job_of());
  const std::vector<BenchmarkTimes> times =
      measure_steps({&runner}, {.warm_up_steps = 3, .rounds = 3});
  EXPECT_GE(times[0].steps_per_round, 1);
  EXPECT_EQ(times[0].step_seconds.size(), 3 * static_cast<size_t>(times[0].steps_per_round));
}

TEST(StepBenchmark, WhatIsNotFiniteIsNotMeasured) {
  StepRunner runner(job_of(2));
  EXPECT_THROW(measure_steps({&runner}, {.warm_up_steps = 5, .rounds = 3, .steps_per_round = 1}),
               NumericalError);
}

/// Batches of 4 rows or of 2.
class SeveralShapes : public Rows {
 public:
  std::vector<std::vector<BatchField>> shapes() const override {
    return {fields(), {{"x", {DType::f32, {2, 2}}}}};
  }
};

TEST(StepRunner, RefusesBatchesOfSeveralShapes) {
  TrainingJob job = job_of();
  job.training = std::make_shared<SeveralShapes>();
  EXPECT_THROW(StepRunner{job}, UsageError);
}

TEST(StepRunner, CountsPredictionsWhereTheStepTellsThem) {
  TrainingJob job = job_of();
  job.tokens_per_step = 100;
  EXPECT_EQ(StepRunner(job).run().tokens, 100);
  const LossFunction loss = job.loss;
  job.loss = [loss](Trace& trace, std::span<const Tensor> batch) {
    const Loss plain = loss(trace, batch);
    return Loss(plain.mean, stop_gradient(reduce_sum(batch[0] * 0.0 + 3.0, {0, 1})));
  };
  EXPECT_EQ(StepRunner(job).run().tokens, 24);
}

TEST(StepBenchmark, RatiosAreOfThroughputsInTheSameRound) {
  BenchmarkTimes a;
  BenchmarkTimes b;
  a.round_seconds = {1, 2, 4};  // the machine becomes slower, for both alike
  b.round_seconds = {0.5, 1, 2};
  const ThroughputRatio ratio = compare_throughput(a, 10, b, 10);
  EXPECT_DOUBLE_EQ(ratio.median, 2);
  EXPECT_DOUBLE_EQ(ratio.interval.low, 2);
  EXPECT_DOUBLE_EQ(ratio.interval.high, 2);
  EXPECT_DOUBLE_EQ(compare_throughput(a, 10, b, 30).median, 6) << "three times the work per step";
}

}  // namespace
}  // namespace fullbore
