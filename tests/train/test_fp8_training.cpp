// Training in 8-bit floats, decomposed: runs learn, go on to the bit, and are refused where that would be slow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "fullbore/train/step_runner.h"
#include "tests/support/evaluate.h"
#include "tests/support/small_transformer.h"
#include "tests/train/trainer_test.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using testing_support::small_transformer;
using testing_support::TokenChains;

TrainingJob transformer_job(bool fp8, int64_t accumulate = 1) {
  TrainingJob job;
  job.loss = small_transformer;
  job.training = std::make_shared<TokenChains>();
  job.options.workers = 2;
  job.options.parts.accumulate = accumulate;
  job.options.compile.precision = DType::bf16;
  job.options.optimizer.fp8_matmuls = fp8;
  job.options.optimizer.schedule = {"constant", 0.01, 0, 0, 1};
  return job;
}

// An operand of e4m3 is off by 2^-4 at most and by a 50th on average, one of e5m2 by twice that, with either sign: means of
// a few per cent, of a loss that falls by far more.
TEST(Fp8Matmuls, LearnAsBf16Does) {
  for (const int64_t accumulate : {1, 2}) {
    StepRunner bf16(transformer_job(false, accumulate)), fp8(transformer_job(true, accumulate));
    double first = 0, last = 0, apart = 0;
    for (int i = 0; i < 60; ++i) {
      const double expected = bf16.run().loss, found = fp8.run().loss;
      if (i == 0) first = expected;
      last = found;
      apart = std::max(apart, std::abs(found - expected));
    }
    EXPECT_LT(last, 0.2 * first) << accumulate;
    EXPECT_LT(apart, 0.1 * first) << accumulate;
    EXPECT_GT(apart, 1e-4 * first) << "nothing was rounded";
  }
}

class Fp8Trainer : public TrainerTest {
 protected:
  Fp8Trainer() {
    job_.loss = small_transformer;
    job_.training = std::make_shared<TokenChains>();
    job_.validation->source = job_.training;
    job_.options.steps = 20;
    job_.options.optimizer.fp8_matmuls = true;
    job_.options.optimizer.schedule.learning_rate = 0.01;
  }
};

TEST_F(Fp8Trainer, GoesOnToTheBit) {
  ASSERT_EQ(train_in("whole"), ExitCode::kOk);
  job_.options.steps = 10;
  ASSERT_EQ(train_in("parts"), ExitCode::kOk);
  job_.options.steps = 20;
  ASSERT_EQ(train_in("parts", true), ExitCode::kOk);
  EXPECT_TRUE(last("whole") == last("parts"));
}

TEST_F(Fp8Trainer, DoesNotGoOnWithoutWhatItRemembers) {
  for (const bool fp8 : {true, false}) {
    const std::string name = fp8 ? "with" : "without";
    job_.options.steps = 10;
    job_.options.optimizer.fp8_matmuls = fp8;
    ASSERT_EQ(train_in(name), ExitCode::kOk);
    job_.options.steps = 20;
    job_.options.optimizer.fp8_matmuls = !fp8;
    EXPECT_THAT(usage_error([&] { train_in(name, true); }),
                HasSubstr(fp8 ? "started with engine.fp8=true, not false"
                              : "started with engine.fp8=false, not true"));
  }
}

TEST(Fp8Matmuls, AreRefusedWhereTheyWouldBeDecomposed) {
  TrainingJob job = transformer_job(true);
  job.options.compile.fp8 = true;
  EXPECT_THAT(usage_error([&] { StepRunner runner(job); }),
              HasSubstr("engine.fp8=true: the cpu device multiplies no 8-bit floats: tensor cores "
                        "of NVIDIA's cards alone do so; engine.fp8=false"));
}

}  // namespace
}  // namespace fullbore
