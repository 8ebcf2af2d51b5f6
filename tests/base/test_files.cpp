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

TEST_F(Files, FoldersAreMadeAndRemovedWithAllThatIsInThem) {
  ASSERT_TRUE(make_folders(folder_ + "/a/b/c").ok());
  ASSERT_TRUE(make_folders(folder_ + "/a/b/c").ok()) << "they are there already";
  ASSERT_TRUE(write_file_atomically(folder_ + "/kept", "x").ok());
  ASSERT_TRUE(write_file_atomically(folder_ + "/a/b/file", "x").ok());
  std::filesystem::create_symlink("../kept", folder_ + "/a/link");
  std::filesystem::create_directory_symlink("b", folder_ + "/a/to_folder");
  ASSERT_TRUE(remove_folder_with_contents(folder_ + "/a").ok());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/a"));
  EXPECT_EQ(read_file(folder_ + "/kept").value(), "x") << "links are not followed";
  EXPECT_THAT(remove_folder_with_contents(folder_ + "/a").error(), HasSubstr("No such file"));
  EXPECT_THAT(make_folders(folder_ + "/kept/x").error(),
              HasSubstr("cannot create the folder " + folder_ + "/kept/x: Not a directory"));
}

}  // namespace
}  // namespace fullbore
