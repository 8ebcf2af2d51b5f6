#include "fullbore/base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "fullbore/base/file_lines.h"
#include "fullbore/base/mapped_faults.h"
#include "fullbore/base/mapped_file.h"

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

TEST_F(Files, AFolderThatIsALinkIsRemovedAsALink) {
  ASSERT_TRUE(make_folders(folder_ + "/victim").ok());
  ASSERT_TRUE(write_file_atomically(folder_ + "/victim/file", "x").ok());
  std::filesystem::create_directory_symlink("victim", folder_ + "/link");
  EXPECT_THAT(make_own_folder(folder_ + "/link").error(), HasSubstr("link is a symbolic link"));
  ASSERT_TRUE(remove_folder_with_contents(folder_ + "/link").ok());
  EXPECT_EQ(read_file(folder_ + "/victim/file").value(), "x");
  EXPECT_FALSE(std::filesystem::is_symlink(folder_ + "/link"));
  EXPECT_TRUE(make_own_folder(folder_ + "/link/new").ok());
}

TEST_F(Files, NothingIsAppendedToOrCutThroughALink) {
  ASSERT_TRUE(write_file_atomically(folder_ + "/victim", "1234").ok());
  const std::string link = folder_ + "/link";
  std::filesystem::create_symlink("victim", link);
  EXPECT_EQ(system_files().append(link), -1);
  EXPECT_EQ(errno, ELOOP);
  EXPECT_THAT(cannot_write(link).message, HasSubstr("link is a symbolic link"));
  EXPECT_EQ(system_files().truncate(link, 1), -1);
  EXPECT_EQ(read_file(folder_ + "/victim").value(), "1234");
  ASSERT_EQ(::mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(system_files().append(folder_ + "/pipe"), -1) << "nobody reads: it would wait";
  EXPECT_THAT(cannot_write(folder_ + "/pipe").message, HasSubstr("is not a regular file"));
  EXPECT_EQ(system_files().truncate(folder_ + "/victim", 1), 0);
  EXPECT_EQ(read_file(folder_ + "/victim").value(), "1");
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

TEST_F(Files, WhatIsNoRegularFileIsRefusedUnread) {
  EXPECT_EQ(read_file(folder_).error(), folder_ + " is a folder, not a file");
  std::filesystem::create_symlink("/dev/zero", folder_ + "/zero");
  EXPECT_EQ(read_file(folder_ + "/zero").error(), folder_ + "/zero is not a regular file");
  ASSERT_EQ(::mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_file(folder_ + "/pipe").error(), folder_ + "/pipe is not a regular file");
  EXPECT_EQ(FileLines::open(folder_ + "/zero").error(), folder_ + "/zero is not a regular file");
}

TEST_F(Files, LongerThanTheLimitIsRefusedWithBothLengths) {
  const std::string path = folder_ + "/a";
  ASSERT_TRUE(write_file_atomically(path, std::string(100, 'x')).ok());
  EXPECT_EQ(read_file(path, system_files(), 100).value().size(), 100U);
  EXPECT_EQ(read_file(path, system_files(), 99).error(),
            path + " is 100 bytes long; at most 99 are read");
  std::filesystem::resize_file(path, uint64_t{1} << 40);  // sparse: read, it would fill the memory
  EXPECT_EQ(read_file(path).error(),
            path + " is 1099511627776 bytes long; at most 67108864 are read");
  EXPECT_GT(read_file("/proc/self/status").value().size(), 0U) << "which tells no length";
  EXPECT_THAT(read_file("/proc/self/status", system_files(), 10).error(),
              HasSubstr("over 10 bytes"));
}

TEST_F(Files, LinesAreReadInMemoryOfOne) {
  const std::string path = folder_ + "/lines";
  const std::string long_line(300'000, 'x');
  ASSERT_TRUE(write_file_atomically(path, "a\n\n" + long_line + "\ntorn").ok());
  FileLines lines = FileLines::open(path).take_or_throw();
  std::vector<std::string> all;
  while (lines.next().value()) {
    EXPECT_EQ(lines.is_ended(), all.size() < 3);
    all.emplace_back(lines.line());
    EXPECT_EQ(lines.number(), static_cast<int64_t>(all.size()));
  }
  EXPECT_EQ(all, (std::vector<std::string>{"a", "", long_line, "torn"}));
  std::filesystem::resize_file(path, uint64_t{1} << 40);
  FileLines endless = FileLines::open(path).take_or_throw();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(endless.next().value());
  EXPECT_EQ(endless.next().error(), path + ":4: the line is longer than 1048576 bytes");
}

// A file that is made shorter while it is mapped: its name and the code of damaged data, in place of a signal. Every other
// SIGBUS stays one.
TEST_F(Files, MappedOnesTellTheirNameWhenTheyAreLost) {
  const std::string path = folder_ + "/mapped";
  const std::string other = folder_ + "/other";
  ASSERT_TRUE(write_file_atomically(path, std::string(20'000, 'x')).ok());
  ASSERT_TRUE(write_file_atomically(other, std::string(20'000, 'y')).ok());
  const auto lose = [&] {
    std::signal(SIGBUS, SIG_DFL);
    report_mapped_faults();
    const auto before = MappedFile::open(other).take_or_throw();
    auto closed = MappedFile::open(other).take_or_throw();
    closed.reset();  // whose place another takes
    const auto file = MappedFile::open(path).take_or_throw();
    std::filesystem::resize_file(path, 100);
    // The rest of the last page is there, and zero.
    if (file->bytes()[99] != std::byte{'x'} || file->bytes()[4000] != std::byte{0}) return;
    std::exit(static_cast<int>(file->bytes()[16'500]));
  };
  EXPECT_EXIT(
      lose(), ::testing::ExitedWithCode(3),
      "^fullbore: .*/mapped: byte 16500 of 20000 cannot be read any more: the file was made "
      "shorter while it was in use, or its disk fails\n$");
  const auto raise_it = [] {
    std::signal(SIGBUS, SIG_DFL);
    report_mapped_faults();
    std::raise(SIGBUS);
  };
  EXPECT_EXIT(raise_it(), ::testing::KilledBySignal(SIGBUS), "^$");
}

}  // namespace
}  // namespace fullbore
