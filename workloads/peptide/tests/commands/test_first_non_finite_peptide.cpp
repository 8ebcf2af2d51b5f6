#include <gtest/gtest.h>

#include "tests/support/first_non_finite_step.h"

namespace fullbore {
namespace {

const testing::NonFiniteCase kCase{"peptide.yaml",
                                   {"train.batch_size=2"},
                                   "decoder.layers.1.self_norm.weight",
                                   "decoder.layers.1",
                                   true};

TEST(FirstNonFiniteOfPeptide, IsNamedInTheForwardPass) {
  testing::expect_named_in_forward_pass(kCase);
}

TEST(FirstNonFiniteOfPeptide, IsNamedInTheBackwardPassAndTheOptimizer) {
  testing::expect_named_in_backward_pass_and_optimizer(kCase);
}

}  // namespace
}  // namespace fullbore
