// The reference GPT in less memory: the same losses from a batch in parts, and from activations that are
// rematerialized.
#include <gtest/gtest.h>

#include "workloads/language/tests/gpt_steps.h"

namespace fullbore {
namespace {

TEST(GptAccumulation, IsTheStepOfTheWholeBatchInLessMemory) {
  const GptSteps whole = gpt_steps(5, {}, {});
  for (const int64_t parts : {3, 12}) {
    const GptSteps found = gpt_steps(5, {.accumulate = parts}, {});
    for (size_t i = 0; i < whole.losses.size(); ++i) {
      EXPECT_NEAR(found.losses[i], whole.losses[i], 1e-5 * whole.losses[i]);
      EXPECT_NEAR(found.norms[i], whole.norms[i], 1e-5 * whole.norms[i]);
    }
    EXPECT_LT(found.arena_bytes, 0.6 * static_cast<double>(whole.arena_bytes)) << parts << " parts";
  }
}

TEST(GptAccumulation, GoesWithLowPrecision) {
  const GptSteps whole = gpt_steps(5, {}, {.precision = DType::bf16});
  for (const Microbatches& parts : {Microbatches{3, 1}, Microbatches{1, 4}, Microbatches{3, 2}}) {
    const GptSteps found = gpt_steps(5, parts, {.precision = DType::bf16});
    for (size_t i = 0; i < whole.losses.size(); ++i)
      EXPECT_NEAR(found.losses[i], whole.losses[i], 2e-3 * whole.losses[i]);
  }
}

// Two thread groups take the memory of a whole batch between them.
TEST(GptMicrobatches, AreTheStepOfTheWholeBatch) {
  const GptSteps whole = gpt_steps(5, {}, {});
  for (const int64_t parallel : {2, 3, 12}) {
    const GptSteps found = gpt_steps(5, {.parallel = parallel}, {});
    for (size_t i = 0; i < whole.losses.size(); ++i) {
      EXPECT_NEAR(found.losses[i], whole.losses[i], 1e-5 * whole.losses[i]);
      EXPECT_NEAR(found.norms[i], whole.norms[i], 1e-5 * whole.norms[i]);
    }
    EXPECT_LT(found.arena_bytes, 1.4 * static_cast<double>(whole.arena_bytes)) << parallel;
  }
}

TEST(GptRecomputation, ChangesNoBitAndSavesMemory) {
  for (const DType precision : {DType::f32, DType::bf16}) {
    const GptSteps kept = gpt_steps(5, {}, {.precision = precision});
    const GptSteps again = gpt_steps(5, {}, {.precision = precision, .recompute = Recompute::full});
    EXPECT_EQ(again.losses, kept.losses);
    EXPECT_EQ(again.norms, kept.norms);
    EXPECT_LT(again.arena_bytes, 0.93 * static_cast<double>(kept.arena_bytes));
    // In the middle between them there is less to be rematerialized.
    const int64_t limit = (again.peak_bytes + kept.peak_bytes) / 2;
    const GptSteps within = gpt_steps(
        5, {}, {.precision = precision, .recompute = Recompute::automatic, .memory_bytes = limit});
    EXPECT_EQ(within.losses, kept.losses);
    EXPECT_LE(within.peak_bytes, limit);
    EXPECT_GT(within.peak_bytes, again.peak_bytes);
  }
}

TEST(GptRecomputation, GoesWithPartsOfABatch) {
  const GptSteps kept = gpt_steps(5, {.accumulate = 3}, {});
  const GptSteps again = gpt_steps(5, {.accumulate = 3}, {.recompute = Recompute::full});
  EXPECT_EQ(again.losses, kept.losses);
  EXPECT_LT(again.arena_bytes, kept.arena_bytes);
}

}  // namespace
}  // namespace fullbore
