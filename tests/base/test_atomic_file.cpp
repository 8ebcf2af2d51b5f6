#include "fullbore/base/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <functional>

#include "fullbore/base/files.h"
#include "fullbore/base/input_file.h"
#include "tests/support/faulty_files.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using testing::FaultyFiles;
using ::testing::HasSubstr;
using testing::kAllLosses;
using testing::Loss;

class AtomicFiles : public ::testing::Test {
 protected:
  void clear() { folder_.clear(); }
  int count() { return folder_.count(); }

  const testing::ScratchFolder folder_;
  const std::string path_ = folder_ / "target";
  const std::string old_ = std::string(1000, 'o');
  const std::string new_ = std::string(3000, 'n');
};

/// Crashes `write` in every operation, loses power in every way, and counts what is then found to
/// be neither old nor new.
int broken_outcomes(const std::string& path, const std::string& old_contents,
                    const std::string& new_contents,
                    const std::function<bool(FileSystem&)>& write) {
  int broken = 0;
  for (const Loss loss : kAllLosses) {
    for (int operation = 0;; ++operation) {
      std::filesystem::remove(path);
      EXPECT_TRUE(write_file_atomically(path, old_contents).ok());
      bool acknowledged = false;
      FaultyFiles files;
      files.kill_at(operation);
      acknowledged = write(files);
      const bool finished = !files.dead();
      files.cut_power(loss);
      const Result<std::string> found = read_file(path);
      const bool is_new = found.ok() && found.value() == new_contents;
      const bool is_old = found.ok() && found.value() == old_contents;
      if (acknowledged ? !is_new : !is_new && !is_old) ++broken;
      if (finished) break;
    }
  }
  return broken;
}

TEST_F(AtomicFiles, AfterAnyCrashTheOldOrTheNewIsWhole) {
  const auto write = [&](FileSystem& files) {
    return write_file_atomically(path_, new_, files).ok();
  };
  EXPECT_EQ(broken_outcomes(path_, old_, new_, write), 0);
}

// The test above must see what it looks for: two writers that leave something out.
TEST_F(AtomicFiles, TheCrashTestRejectsCarelessWriters) {
  const auto in_place = [&](FileSystem& files) {
    files.remove(path_);
    const int file = files.create(path_);
    const bool ok = file >= 0 && files.write(file, new_.data(), new_.size()) > 0;
    if (file >= 0) files.close(file);
    return ok;
  };
  const auto renamed = [&](bool sync_data, bool sync_folder) {
    return [&, sync_data, sync_folder](FileSystem& files) {
      std::filesystem::remove(path_ + ".new");
      const int file = files.create(path_ + ".new");
      if (file < 0) return false;
      bool ok = files.write(file, new_.data(), new_.size()) > 0;
      if (sync_data) ok = ok && files.sync(file) == 0;
      ok = ok && files.rename(path_ + ".new", path_) == 0;
      files.close(file);
      if (sync_folder) ok = ok && files.sync_folder(folder_.path()) == 0;
      return ok;
    };
  };
  EXPECT_GT(broken_outcomes(path_, old_, new_, in_place), 0);
  EXPECT_GT(broken_outcomes(path_, old_, new_, renamed(false, true)), 0) << "no fsync";
  EXPECT_GT(broken_outcomes(path_, old_, new_, renamed(true, false)), 0) << "no folder fsync";
  EXPECT_EQ(broken_outcomes(path_, old_, new_, renamed(true, true)), 0);
}

TEST_F(AtomicFiles, AnErrorAnywhereIsReportedAndLeavesNoTemporary) {
  for (int operation = 0;; ++operation) {
    clear();
    ASSERT_TRUE(write_file_atomically(path_, old_).ok());
    FaultyFiles files;
    files.fail_at(operation, ENOSPC);
    const Status status = write_file_atomically(path_, new_, files);
    if (files.operations() <= operation) {  // the fault was never reached: all are covered
      EXPECT_TRUE(status.ok());
      EXPECT_GE(operation, 5);
      break;
    }
    EXPECT_EQ(count(), 1) << "after failing operation " << operation;
    const std::string found = read_file(path_).value();
    if (status.ok()) {
      EXPECT_EQ(found, new_);  // close() after a successful sync and rename
    } else {
      EXPECT_THAT(status.error(), HasSubstr("No space left on device"));
      EXPECT_THAT(status.error(), HasSubstr(path_));
      EXPECT_TRUE(found == old_ || found == new_);
    }
  }
}

TEST_F(AtomicFiles, ShortWritesAreContinued) {
  FaultyFiles files;
  files.limit_writes(7);
  ASSERT_TRUE(write_file_atomically(path_, new_, files).ok());
  EXPECT_EQ(read_file(path_).value(), new_);
}

TEST_F(AtomicFiles, RemovesWhatTheDeadLeftAndNothingElse) {
  for (const char* name : {"target.123.tmp", "target.123.4.tmp", "target.mine.tmp", "target2.5.tmp",
                           "target.5.tmp.txt"})
    folder_.put(name, "torn");
  Result<AtomicFile> other = AtomicFile::create(path_);  // of the living: holds its lock
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(count(), 4);
  ASSERT_TRUE(write_file_atomically(path_, new_).ok());
  EXPECT_EQ(count(), 5);  // three of others, the living one's temporary, the target
  ASSERT_TRUE(other.value().write(old_).ok());
  ASSERT_TRUE(other.value().commit().ok());
  EXPECT_EQ(read_file(path_).value(), old_);
  EXPECT_EQ(count(), 4);
}

TEST_F(AtomicFiles, InputFileReadsAtOffsetsAndNamesWhatIsWrong) {
  ASSERT_TRUE(write_file_atomically(path_, "0123456789").ok());
  const InputFile file = InputFile::open(path_).take_or_throw();
  char bytes[20] = {};
  EXPECT_EQ(file.bytes(), 10U);
  EXPECT_EQ(file.read(7, bytes, 20).value(), 3U);
  EXPECT_EQ(std::string(bytes, 3), "789");
  EXPECT_TRUE(file.read_exactly(2, bytes, 8).ok());
  EXPECT_EQ(file.read_exactly(2, bytes, 9).error(),
            path_ + " ends at byte 10; 9 bytes were expected from byte 2 on");
  EXPECT_THAT(InputFile::open(folder_.path()).error(), HasSubstr("is a folder, not a file"));
  EXPECT_THAT(InputFile::open(folder_ / "none").error(), HasSubstr("No such file or directory"));
  EXPECT_THAT(InputFile::open("/dev/zero").error(), HasSubstr("is not a regular file"));
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(InputFile::open(pipe).error(), HasSubstr("is not a regular file"));
}

}  // namespace
}  // namespace fullbore
