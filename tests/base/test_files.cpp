#include "fullbore/base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace fullbore {
namespace {

using ::testing::HasSubstr;

class Files : public ::testing::Test {
 protected:
  Files() : folder_(::testing::TempDir() + "fullbore_files") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~Files() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST_F(Files, WrittenContentsAreReadBackAndReplaced) {
  const std::string path = folder_ + "/a";
  const std::string large(200'000, 'x');
  ASSERT_TRUE(write_file_atomically(path, large).ok());
  EXPECT_EQ(read_file(path).value(), large);
  ASSERT_TRUE(write_file_atomically(path, "new").ok());
  EXPECT_EQ(read_file(path).value(), "new");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1)
      << "a temporary file stayed behind";
}

TEST_F(Files, FailureNamesPathAndReasonAndLeavesTheTargetAlone) {
  EXPECT_THAT(read_file(folder_ + "/missing").error(),
              HasSubstr("cannot open " + folder_ + "/missing: No such file or directory"));
  EXPECT_THAT(write_file_atomically(folder_ + "/no/where", "x").error(), HasSubstr("No such file"));
  const std::string target = folder_ + "/folder";  // a rename cannot replace a folder
  std::filesystem::create_directory(target);
  EXPECT_THAT(write_file_atomically(target, "x").error(), HasSubstr("cannot write " + target));
  EXPECT_TRUE(std::filesystem::is_directory(target));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

}  // namespace
}  // namespace fullbore
