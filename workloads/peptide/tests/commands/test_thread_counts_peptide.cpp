// The number of threads changes no bit of what is trained.
#include "tests/support/thread_count_test.h"

namespace fullbore {
namespace {

TEST_F(ThreadCountTest, ChangesNoBitOfARecursion) {
  expect_same_bits({configuration("peptide-cpu.yaml"), {"train.batch_size=8"}, 2, false}, 2);
}

}  // namespace
}  // namespace fullbore
