#include <gtest/gtest.h>

#include "fullbore/optim/schedule.h"
#include "tests/support/evaluate.h"
#include "workloads/latentwire/schedules.h"

namespace fullbore::latentwire {
namespace {

// Check 12 of the specification.
TEST(Schedules, OfTheFirstTokensWeight) {
  const FirstWeight cosine{FirstWeight::Kind::cosine, .5, 8, .4};
  EXPECT_EQ(cosine.at(399, 1000), 8);
  EXPECT_NEAR(cosine.at(550, 1000), 6.901650, 1e-6);
  EXPECT_NEAR(cosine.at(700, 1000), 4.25, 1e-12);
  EXPECT_NEAR(cosine.at(850, 1000), 1.598350, 1e-6);
  EXPECT_NEAR(cosine.at(1000, 1000), .5, 1e-12);
  EXPECT_EQ((FirstWeight{FirstWeight::Kind::cosine, 6, 0, .4}.at(0, 10)), 12);
  EXPECT_EQ((FirstWeight{FirstWeight::Kind::warmup, 2}.at(50, 1000)), 0.5);
  EXPECT_EQ((FirstWeight{FirstWeight::Kind::warmup, 2}.at(300, 1000)), 2);
  EXPECT_EQ(FirstWeight{}.at(3, 4), 0.5);
}

TEST(Schedules, OfKeepAndK) {
  const Curriculum keep{.7, 1, 2}, tokens{2, 8, 1};
  const int64_t keep_steps[] = {0, 25, 50, 75, 100};
  const double keeps[] = {.7, .71875, .775, .86875, 1};
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(keep.at(keep_steps[i], 101), keeps[i], 1e-12);
  const int64_t token_steps[] = {0, 8, 9, 25, 50, 75, 100}, counts[] = {2, 2, 3, 4, 5, 6, 8};
  for (int i = 0; i < 7; ++i) EXPECT_EQ(tokens.whole_at(token_steps[i], 101), counts[i]);
  EXPECT_EQ(tokens.whole_at(500, 101), 8);
  EXPECT_EQ(tokens.whole_at(0, 1), 8);
}

TEST(Schedules, OfTheLearningRateAreTheEnginesCosine) {
  const int64_t steps[] = {50, 100, 150, 200};
  const double rates[] = {4.282412e-5, 2.55e-5, 8.175884e-6, 1e-6};
  for (int i = 0; i < 4; ++i) {
    const Literal rate =
        evaluate({integers(DType::i64, {}, {static_cast<double>(steps[i])})},
                 [](GraphBuilder&, const std::vector<Tensor>& given) {
                   return scheduled_learning_rate(given[0], {.schedule = "cosine",
                                                             .learning_rate = 5e-5,
                                                             .minimum_learning_rate = 1e-6,
                                                             .total_steps = 200});
                 });
    EXPECT_NEAR(elements(rate)[0], rates[i], 5e-12);
  }
}

TEST(Schedules, OfStepsThatReadTheText) {
  const TextSteps steps{40, 0.1, 1};
  const int64_t places[] = {0, 10, 20, 38, 40};
  const double scales[] = {.2, .4, .6, .96, 1};
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(steps.latent_scale(places[i]), scales[i], 1e-12);
  int64_t tail = 0;
  for (int64_t i = 0; i < 40; ++i) EXPECT_EQ(steps.is_text(i), i % 2 == 0);
  for (int64_t i = 40; i < 4040; ++i) tail += steps.is_text(i) ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(tail) / 4000, 0.1, 0.02);  // four deviations
  EXPECT_FALSE((TextSteps{0, 0, 1}.is_text(0)));
  EXPECT_EQ((TextSteps{0, 0, 1}.latent_scale(0)), 1);
}

}  // namespace
}  // namespace fullbore::latentwire
