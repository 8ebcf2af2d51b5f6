#include "tests/support/context_curriculum_test.h"

namespace fullbore {
namespace {

TEST_F(ContextCurriculum, ResumesToTheSameBitsAcrossItsStagesWithAState) {
  expect_same_bits_resumed(
      {"train.steps=14", "model.name=hybrid", "model.inner=32", "model.mamba_heads=2",
       "model.states=8", "model.hidden=32", "model.chunk=4", "model.mix_rank=4",
       "model.decay_rank=4", "data.batching=sequences", "data.split=sequences",
       "data.initial_state=carry", "engine.parallel_microbatches=1"},
      "run");
}

}  // namespace
}  // namespace fullbore
