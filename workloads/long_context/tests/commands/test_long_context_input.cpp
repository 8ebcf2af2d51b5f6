#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/job.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

TEST_F(JobTest, DeepMeasurementsAreRefused) {
  folder_.put("deep.json", std::string(80'000, '[') + std::string(80'000, ']'));
  for (const char* command_name : {"phases", "usable-length"}) {
    const CommandResult refused = command({"longcontext", command_name, "deep.json"});
    EXPECT_EQ(refused.exit_code, 3) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("nested deeper than 64"));
  }
}

}  // namespace
}  // namespace fullbore
