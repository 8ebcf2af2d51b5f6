#include <gtest/gtest.h>

#include "tests/support/first_non_finite_step.h"

namespace fullbore {
namespace {

const testing::NonFiniteCase kCase{
    "gpt-shakespeare-cpu.yaml",
    {"data.path=", "train.batch_size=2", "model.context=16", "model.width=32"},
    "layers.2.mlp_norm.weight",
    "layers.2"};

TEST(FirstNonFiniteOfGpt, IsNamedInTheForwardPass) { testing::expect_named_in_forward_pass(kCase); }

TEST(FirstNonFiniteOfGpt, IsNamedInTheBackwardPassAndTheOptimizer) {
  testing::expect_named_in_backward_pass_and_optimizer(kCase);
}

}  // namespace
}  // namespace fullbore
