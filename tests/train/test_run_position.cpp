#include "fullbore/train/run_position.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fullbore {
namespace {

// The checkpoint may be a stranger's: 2^63 is the first double beyond all steps.
TEST(RunPosition, StepsThatCannotBeAreNotKnown) {
  RunRecord record;
  record.step = std::numeric_limits<int64_t>::max();
  for (const double wrong : {0x1p63, 1e300, -2.0, std::nan(""), HUGE_VAL}) {
    record.metrics = {{"best_step", wrong}, {"skipped_steps", wrong}};
    const RunPosition position = to_position(record);
    EXPECT_EQ(position.step, record.step);
    EXPECT_EQ(position.best_step, -1) << wrong;
    EXPECT_EQ(position.skipped_steps, 0) << wrong;
  }
  record.metrics = {{"best_step", 0x1p62}};
  EXPECT_EQ(to_position(record).best_step, int64_t{1} << 62);
}

}  // namespace
}  // namespace fullbore
