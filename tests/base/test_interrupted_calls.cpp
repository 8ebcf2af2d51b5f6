#include <gtest/gtest.h>

#include <map>
#include <string>

#include "fullbore/base/atomic_file.h"
#include "fullbore/base/files.h"
#include "fullbore/base/interrupted_files.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using fullbore::testing::ScratchFolder;

std::map<std::string, int> calls;

// Every call is interrupted twice before it is made.
bool interrupts_twice(const char* call) { return ++calls[call] % 3 != 0; }

TEST(InterruptedCalls, EndNothing) {
  calls.clear();
  const ScratchFolder folder;
  const auto files = interrupted_files(interrupts_twice);
  const std::string path = folder / "a/b/file";
  ASSERT_TRUE(make_folders(folder / "a/b", *files).ok());
  for (const std::string text : {"first", "second"}) {
    const Status written = write_file_atomically(path, text, *files);
    ASSERT_TRUE(written.ok()) << written.error();
    EXPECT_EQ(read_file(path, *files).take_or_throw(), text);
  }
  const int file = files->append(path);
  ASSERT_GE(file, 0);
  EXPECT_EQ(files->write(file, " more", 5), 5);
  EXPECT_EQ(files->sync(file), 0);
  EXPECT_EQ(files->close(file), 0);
  EXPECT_EQ(files->truncate(path, 8), 0);
  EXPECT_EQ(read_file(path).take_or_throw(), "second m");
  EXPECT_EQ(files->make_link("file", folder / "a/b/link"), 0);
  EXPECT_EQ(files->link_target(folder / "a/b/link"), "file");
  files->remove_unused(path);
  const Status removed = remove_folder_with_contents(folder / "a", *files);
  EXPECT_TRUE(removed.ok()) << removed.error();
  EXPECT_EQ(folder.count(), 0);
  for (const char* const call : {"open", "flock", "write", "fsync", "pread", "rename", "unlink",
                                 "mkdir", "rmdir", "stat", "truncate", "symlink", "readlink"})
    EXPECT_GE(calls[call], 3) << call;
  EXPECT_GE(calls["close"], 1);
}

// Everything else that ends a call is still told.
TEST(InterruptedCalls, OtherReasonsAreTold) {
  calls.clear();
  const ScratchFolder folder;
  const auto files = interrupted_files(interrupts_twice);
  EXPECT_EQ(files->open(folder / "missing"), -1);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(files->sync(-1), -1);
  EXPECT_EQ(errno, EBADF);
}

}  // namespace
}  // namespace fullbore
