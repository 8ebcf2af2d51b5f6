#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fullbore/base/error.h"
#include "fullbore/train/batch_scaling.h"
#include "fullbore/train/config.h"

namespace fullbore {
namespace {

double scale_of(const std::string& yaml) {
  return learning_rate_scale(parse_config("model:\n  name: tiny\n" + yaml, "c.yaml"));
}

TEST(BatchScaling, RatesGrowWithTheBatchOrItsRoot) {
  const std::string batch = "train:\n  batch_size: 32\noptim:\n  base_batch_size: 8\n";
  EXPECT_EQ(scale_of(batch), 1);
  EXPECT_EQ(scale_of(batch + "  batch_scaling: linear\n"), 4);
  EXPECT_EQ(scale_of(batch + "  batch_scaling: root\n"), 2);
  EXPECT_EQ(
      scale_of("train:\n  batch_size: 2\noptim:\n  base_batch_size: 8\n  batch_scaling: linear\n"),
      0.25);
}

TEST(BatchScaling, NeedsTheBatchThatRatesAreOf) {
  try {
    scale_of("optim:\n  batch_scaling: root\n");
    FAIL() << "a rate of no batch";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("optim.batch_scaling root (c.yaml:4) needs a batch, not "
                                     "optim.base_batch_size 0 (default)"));
  }
}

}  // namespace
}  // namespace fullbore
