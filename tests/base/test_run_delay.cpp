#include "fullbore/base/run_delay.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

std::optional<int64_t> delay_told_by(const std::string& text) {
  const testing::ScratchFolder folder;
  std::filesystem::create_directories(folder / "self/task/17");
  std::ofstream(folder / "self/task/17/schedstat") << text;
  return run_delay_ns(17, folder.path().c_str());
}

TEST(RunDelay, IsTheSecondNumber) {
  EXPECT_EQ(delay_told_by("352631532 655214425 111\n"), 655214425);
  EXPECT_EQ(delay_told_by("0 0 0\n"), 0);
}

TEST(RunDelay, IsNotKnownWhereTheKernelDoesNotSay) {
  for (const char* const text : {"", "12", "12 ", "12 x 3", "x 12 3", "12 -5 3", "\n"})
    EXPECT_EQ(delay_told_by(text), std::nullopt) << text;
  EXPECT_EQ(run_delay_ns(17, "/nowhere"), std::nullopt);
  EXPECT_EQ(run_delay_ns(17, std::string(300, '/').c_str()), std::nullopt);
}

TEST(RunDelay, IsAskedOfTheCallingThread) {
  EXPECT_EQ(run_delay_ns(thread_id()).has_value(),
            std::filesystem::exists("/proc/thread-self/schedstat"));
}

}  // namespace
}  // namespace fullbore
