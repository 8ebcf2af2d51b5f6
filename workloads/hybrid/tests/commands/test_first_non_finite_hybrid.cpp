#include <gtest/gtest.h>

#include "tests/support/first_non_finite_step.h"

namespace fullbore {
namespace {

const testing::NonFiniteCase kCase{"hybrid-p2.yaml",
                                   {"train.batch_size=2", "model.context=64", "model.layers=2"},
                                   "layers.1.norm.weight",
                                   "layers.1"};

TEST(FirstNonFiniteOfHybrid, IsNamedInTheForwardPass) {
  testing::expect_named_in_forward_pass(kCase);
}

TEST(FirstNonFiniteOfHybrid, IsNamedInTheBackwardPassAndTheOptimizer) {
  testing::expect_named_in_backward_pass_and_optimizer(kCase);
}

}  // namespace
}  // namespace fullbore
