// The reference GPT in less memory: the same losses from a batch in parts, and from activations that are
// made again.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "fullbore/base/philox.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/step_function.h"
#include "models/models.h"

namespace fullbore {
namespace {

constexpr int64_t kBatch = 12;
constexpr int64_t kContext = 64;
constexpr int64_t kVocabulary = 65;

struct Steps {
  std::vector<double> losses;
  std::vector<double> norms;
  int64_t arena_bytes = 0;
  int64_t peak_bytes = 0;
};

Steps five_steps(int64_t parts, const CompileOptions& options) {
  const TensorType type{DType::i32, {kBatch, kContext}};
  const LossFunction loss = [](Trace& trace, std::span<const Tensor> batch) -> Loss {
    const LanguageModelConfig config{.vocabulary = kVocabulary, .layers = 2};
    const LanguageModelLoss found = language_model_loss(gpt(trace, batch[0], config), batch[1]);
    return {found.mean, found.predictions};
  };
  const TracedStep step =
      trace_training_step(loss, {{"inputs", type}, {"targets", type}}, {}, parts);
  State state = initial_state(step, 3);
  Team team(2);
  Program program = Program::compile(step.graph, state, team, options);
  const auto bytes = static_cast<size_t>(type.bytes());
  const std::unique_ptr<int32_t, void (*)(void*)> inputs(
      static_cast<int32_t*>(std::aligned_alloc(64, bytes)), std::free);
  const std::unique_ptr<int32_t, void (*)(void*)> targets(
      static_cast<int32_t*>(std::aligned_alloc(64, bytes)), std::free);
  Steps result;
  result.arena_bytes = program.plan().arena_bytes;
  result.peak_bytes = program.plan().peak_bytes();
  PhiloxStream draws(11);
  for (int i = 0; i < 5; ++i) {
    for (int64_t at = 0; at < kBatch * kContext; ++at) {
      inputs.get()[at] = static_cast<int32_t>(draws.below(kVocabulary));
      // A target below 0 does not count: rows have unequally many.
      targets.get()[at] = at % kContext < (at / kContext + 1) * 5
                              ? static_cast<int32_t>(draws.below(kVocabulary))
                              : -1;
    }
    const void* const batch[] = {inputs.get(), targets.get()};
    program.run(batch);
    result.losses.push_back(program.scalar("loss"));
    result.norms.push_back(program.scalar("gradient_norm"));
  }
  return result;
}

TEST(GptAccumulation, IsTheStepOfTheWholeBatchInLessMemory) {
  const Steps whole = five_steps(1, {});
  for (const int64_t parts : {3, 12}) {
    const Steps found = five_steps(parts, {});
    for (size_t i = 0; i < whole.losses.size(); ++i) {
      EXPECT_NEAR(found.losses[i], whole.losses[i], 1e-5 * whole.losses[i]);
      EXPECT_NEAR(found.norms[i], whole.norms[i], 1e-5 * whole.norms[i]);
    }
    EXPECT_LT(found.arena_bytes, 0.6 * static_cast<double>(whole.arena_bytes)) << parts << " parts";
  }
}

TEST(GptAccumulation, GoesWithLowPrecision) {
  const Steps whole = five_steps(1, {.precision = DType::bf16});
  const Steps found = five_steps(3, {.precision = DType::bf16});
  for (size_t i = 0; i < whole.losses.size(); ++i)
    EXPECT_NEAR(found.losses[i], whole.losses[i], 2e-3 * whole.losses[i]);
}

TEST(GptRecomputation, ChangesNoBitAndSavesMemory) {
  for (const DType precision : {DType::f32, DType::bf16}) {
    const Steps kept = five_steps(1, {.precision = precision});
    const Steps again = five_steps(1, {.precision = precision, .recompute = Recompute::full});
    EXPECT_EQ(again.losses, kept.losses);
    EXPECT_EQ(again.norms, kept.norms);
    EXPECT_LT(again.arena_bytes, 0.9 * static_cast<double>(kept.arena_bytes));
    // In the middle between them there is less to be made again.
    const int64_t limit = (again.peak_bytes + kept.peak_bytes) / 2;
    const Steps within = five_steps(
        1, {.precision = precision, .recompute = Recompute::automatic, .memory_bytes = limit});
    EXPECT_EQ(within.losses, kept.losses);
    EXPECT_LE(within.peak_bytes, limit);
    EXPECT_GT(within.peak_bytes, again.peak_bytes);
  }
}

TEST(GptRecomputation, GoesWithPartsOfABatch) {
  const Steps kept = five_steps(3, {});
  const Steps again = five_steps(3, {.recompute = Recompute::full});
  EXPECT_EQ(again.losses, kept.losses);
  EXPECT_LT(again.arena_bytes, kept.arena_bytes);
}

}  // namespace
}  // namespace fullbore
