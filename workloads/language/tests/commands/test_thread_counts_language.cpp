// The number of threads changes no bit of what is trained.
#include "tests/support/thread_count_test.h"

namespace fullbore {
namespace {

TEST_F(ThreadCountTest, ChangesNoBitOfAGpt) {
  expect_same_bits({"job.yaml", {"train.batch_size=30", "model.context=16"}, 2}, 10);
}

TEST_F(ThreadCountTest, ChangesNoBitOfAGptInBf16) {
  expect_same_bits(
      {"job.yaml",
       {"train.batch_size=128", "model.context=16", "engine.precision=bf16", "model.width=32"},
       4},
      4);
}

}  // namespace
}  // namespace fullbore
