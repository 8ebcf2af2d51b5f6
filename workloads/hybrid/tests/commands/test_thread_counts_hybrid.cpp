// The number of threads changes no bit of what is trained.
#include "tests/support/thread_count_test.h"

namespace fullbore {
namespace {

TEST_F(ThreadCountTest, ChangesNoBitOfAHybrid) {
  expect_same_bits({configuration("hybrid-p2.yaml"),
                    {"data.tokenizer=character", "train.batch_size=4", "model.context=64",
                     "model.layers=1", "optim.groups=[]"},
                    2},
                   4);
}

}  // namespace
}  // namespace fullbore
