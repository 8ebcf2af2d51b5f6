#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/hostile.h"
#include "tests/support/job.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kGiB = 1 << 30;

TEST_F(JobTest, PeptideSizesThatNoMemoryHoldsAreRefusedAtOnce) {
  folder_.put("large.yaml",
              "model: {name: peptide, hidden_dim: 65536, num_heads: 4, num_encoder_layers: 64}\n");
  const CommandResult refused = command({"train", "large.yaml"});
  EXPECT_EQ(refused.exit_code, 5) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("model.hidden_dim=65536"));
  const LimitedResult steps =
      run_limited(folder_.path(),
                  {"plan", testing::source_folder() + "/configs/peptide-cpu.yaml",
                   "model.num_supervision_steps=1000000"},
                  {}, kGiB);
  EXPECT_EQ(steps.exit_code, 2);
  EXPECT_THAT(steps.err,
              HasSubstr("model.num_supervision_steps is '1000000'; a whole number in [1, 256]"));
  const LimitedResult layers =
      run_limited(folder_.path(),
                  {"plan", testing::source_folder() + "/configs/peptide-cpu.yaml",
                   "model.num_decoder_layers=1000"},
                  {}, kGiB);
  EXPECT_EQ(layers.exit_code, 2);
  EXPECT_THAT(layers.err,
              HasSubstr("model.num_decoder_layers is '1000'; a whole number in [1, 64]"));
}

}  // namespace
}  // namespace fullbore
