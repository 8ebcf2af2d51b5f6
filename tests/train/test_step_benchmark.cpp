#include "fullbore/train/step_benchmark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "fullbore/base/error.h"
#include "fullbore/base/philox.h"
#include "tests/support/device.h"

namespace fullbore {
namespace {

using testing_support::Edited;

using ::testing::ElementsAre;

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
  EXPECT_EQ(runner.samples_per_step(0), 4);
  EXPECT_EQ(runner.tokens_per_step(), 0);
}

TEST(StepRunner, FillsParametersAsTheJobSays) {
  TrainingJob job = job_of();
  job.initialize = [](State& state) {
    for (float& value : Edited<float>(state, "weight")) value = 100;
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

const std::vector<BatchField> kShort = {{"x", {DType::f32, {2, 2}}}};

/// Batches of 4 rows, or the first 2 of them where `is_short` says so.
class SeveralShapes : public Rows {
 public:
  explicit SeveralShapes(std::function<bool(uint64_t position)> is_short)
      : is_short_(std::move(is_short)) {}
  std::vector<std::vector<BatchField>> shapes() const override { return {fields(), kShort}; }
  size_t shape_at(uint64_t position) const override { return is_short_(position) ? 1 : 0; }

 private:
  std::function<bool(uint64_t)> is_short_;
};

/// The first 2 rows of every batch.
class ShortRows : public Rows {
 public:
  const std::vector<BatchField>& fields() const override { return kShort; }
  void fill(uint64_t position, std::span<void* const> buffers) const override {
    float rows[8];
    void* const whole[] = {rows};
    Rows::fill(position, whole);
    std::copy_n(rows, 4, static_cast<float*>(buffers[0]));
  }
};

TrainingJob mixture_of(std::function<bool(uint64_t)> is_short) {
  TrainingJob job = job_of();
  job.training = std::make_shared<SeveralShapes>(std::move(is_short));
  return job;
}
bool every_third(uint64_t position) { return position % 3 == 2; }

// Without learning, so that a step's loss is of its batch alone.
TEST(StepRunner, RunsTheProgramOfTheBatchsShape) {
  TrainingJob mixture = mixture_of(every_third);
  TrainingJob whole = job_of();
  TrainingJob part = job_of();
  part.training = std::make_shared<ShortRows>();
  for (TrainingJob* job : {&mixture, &whole, &part})
    job->options.optimizer.schedule = {"constant", 0.0, 0.0, 0, 1000};
  StepRunner runner(mixture);
  StepRunner of_four(whole);
  StepRunner of_two(part);
  ASSERT_EQ(runner.shapes(), 2U);
  EXPECT_EQ(runner.samples_per_step(0), 4);
  EXPECT_EQ(runner.samples_per_step(1), 2);
  EXPECT_EQ(runner.batch_shape(1).text(), "[2,2]");
  for (uint64_t position = 0; position < 9; ++position) {
    const StepRunner::Step step = runner.run();
    const double four = of_four.run().loss;
    const double two = of_two.run().loss;
    EXPECT_NE(four, two);
    EXPECT_EQ(step.shape, every_third(position) ? 1U : 0U);
    EXPECT_EQ(step.loss, every_third(position) ? two : four) << position;
  }
  EXPECT_LT(runner.planned_bytes(), of_four.planned_bytes() + of_two.planned_bytes())
      << "one State, one arena";
}

TEST(StepRunner, ProgramsOfAllShapesTrainOneState) {
  StepRunner runner(mixture_of(every_third));
  const double first = runner.run().loss;
  double last = first;
  for (int i = 0; i < 200; ++i) last = runner.run().loss;
  EXPECT_LT(last, 0.1 * first);
  EXPECT_EQ(runner.state().read<int64_t>("step")[0], 201) << "counted by both programs";
}

TEST(StepRunner, KnowsWhenEveryShapeToComeWasMet) {
  const StepRunner rare(mixture_of([](uint64_t position) { return position == 12; }));
  EXPECT_EQ(rare.steps_to_warm_up(3, 9), 3) << "the steps 3 to 11 are of one shape";
  EXPECT_EQ(rare.steps_to_warm_up(3, 10), 13);
  EXPECT_EQ(rare.steps_to_warm_up(20, 10), 20);
  EXPECT_EQ(StepRunner(mixture_of(every_third)).steps_to_warm_up(0, 100), 3);
  EXPECT_EQ(StepRunner(job_of()).steps_to_warm_up(0, 100), 0);
}

TEST(StepBenchmark, AMixtureIsMeasuredByWhatWasDone) {
  StepRunner a(mixture_of(every_third));
  StepRunner b(mixture_of(every_third));
  const std::vector<BenchmarkTimes> times =
      measure_steps({&a, &b}, {.warm_up_steps = 1, .rounds = 4, .steps_per_round = 5});
  for (const BenchmarkTimes& each : times) {
    EXPECT_TRUE(each.mixture);
    EXPECT_EQ(each.warm_up_steps, 3) << "until the short shape was met";
    ASSERT_EQ(each.step_seconds.size(), 20U);
    ASSERT_EQ(each.shapes.size(), 2U);
    EXPECT_EQ(each.shapes[0].step_seconds.size(), 14U);
    EXPECT_EQ(each.shapes[1].step_seconds.size(), 6U);
    EXPECT_THAT(each.round_samples, ElementsAre(18, 16, 16, 18));
    EXPECT_EQ(each.samples, 14 * 4 + 6 * 2);
    EXPECT_NEAR(each.seconds_per_step() * 20, each.seconds(), 1e-12);
    double rounds = 0;
    for (const double seconds : each.round_seconds) rounds += 5 * seconds;
    EXPECT_NEAR(rounds, each.seconds(), 1e-12);
    const std::vector<double> rates = each.round_samples_per_second();
    EXPECT_NEAR(rates[0], 18 / (5 * each.round_seconds[0]), 1e-9 * rates[0]);
  }
  EXPECT_EQ(a.steps(), 23);
  EXPECT_EQ(times[0].last_loss, times[1].last_loss) << "the same steps on the same batches";
}

TEST(StepBenchmark, BesideAMixtureRoundsAreAsManySteps) {
  StepRunner mixture(mixture_of([](uint64_t position) { return position % 7 == 6; }));
  StepRunner plain(job_of());
  const std::vector<BenchmarkTimes> times =
      measure_steps({&plain, &mixture}, {.warm_up_steps = 3, .rounds = 3});
  EXPECT_EQ(times[0].steps_per_round, times[1].steps_per_round);
  EXPECT_EQ(times[0].warm_up_steps, times[1].warm_up_steps);
  EXPECT_EQ(plain.steps(), mixture.steps());
  EXPECT_TRUE(times[0].mixture) << "compared by means on both sides";
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
  a.round_seconds = a.step_seconds = {1, 2, 4};  // the machine becomes slower, for both alike
  b.round_seconds = b.step_seconds = {0.5, 1, 2};
  a.tokens = b.tokens = 30;
  const auto ratio_of_tokens = [&] {
    return compare_throughput(a.round_tokens_per_second(), b.round_tokens_per_second());
  };
  const ThroughputRatio ratio = ratio_of_tokens();
  EXPECT_DOUBLE_EQ(ratio.median, 2);
  EXPECT_DOUBLE_EQ(ratio.interval.low, 2);
  EXPECT_DOUBLE_EQ(ratio.interval.high, 2);
  b.tokens = 90;
  EXPECT_DOUBLE_EQ(ratio_of_tokens().median, 6) << "three times the work per step";
  a.mixture = b.mixture = true;
  a.steps_per_round = b.steps_per_round = 1;
  a.round_tokens = {10, 20, 30};
  b.round_tokens = {15, 30, 45};
  EXPECT_DOUBLE_EQ(ratio_of_tokens().interval.low, 3) << "what the very round held";
  EXPECT_DOUBLE_EQ(ratio_of_tokens().interval.high, 3);
}

}  // namespace
}  // namespace fullbore
