#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fullbore/base/files.h"
#include "tests/support/faulty_files.h"
#include "tests/support/scratch_folder.h"
#include "workloads/chess/analysis_cache.h"

namespace fullbore::chess {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kStart = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
const std::vector<RankedMove> kTop = {{"e2e4", .35}, {"d2d4", -.30}};

class AnalysisCacheTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_ / "cache"; }
  std::string filled() const {
    AnalysisCache cache(path(), "engine");
    cache.put(kStart, kTop);
    cache.put("other", {{"a2a3", 0.1}});
    return read_file(path()).take_or_throw();
  }
  testing::ScratchFolder folder_;
};

TEST_F(AnalysisCacheTest, KeepsWhatItWasGiven) {
  filled();
  AnalysisCache again(path(), "engine");
  EXPECT_EQ(again.size(), 2U);
  EXPECT_EQ(again.find(kStart), kTop);
  EXPECT_EQ(again.damaged(), 0);
  EXPECT_FALSE(again.find("nothing"));
  const AnalysisCache other(path(), "another engine");
  EXPECT_EQ(other.size(), 0U);
  EXPECT_EQ(other.damaged(), 0);
}

// Wherever it is cut and whichever bit is wrong: fewer entries, never others.
TEST_F(AnalysisCacheTest, DamageLosesEntriesAndNeverLies) {
  const std::string bytes = filled();
  for (size_t i = 0; i < 2 * bytes.size(); ++i) {
    std::string damaged = bytes;
    if (i < bytes.size())
      damaged.resize(i);
    else
      damaged[i - bytes.size()] = static_cast<char>(damaged[i - bytes.size()] ^ (1 << (i % 8)));
    folder_.put("cache", damaged);
    AnalysisCache cache(path(), "engine");
    EXPECT_LE(cache.size(), 2U);
    EXPECT_EQ(cache.find(kStart).value_or(kTop), kTop);
    if (i % 16 != 0) continue;
    cache.put("new", kTop);
    EXPECT_EQ(AnalysisCache(path(), "engine").find("new"), kTop);
  }
}

TEST_F(AnalysisCacheTest, AFullDiskLosesEntriesOfTheFileAlone) {
  for (int operation = 0; operation < 12; ++operation) {
    folder_.clear();
    testing::FaultyFiles files;
    files.fail_at(operation, ENOSPC);
    AnalysisCache cache(path(), "engine", files);
    cache.put(kStart, kTop);
    cache.put("other", {{"a2a3", 0.1}});
    EXPECT_EQ(cache.find(kStart), kTop);
    EXPECT_EQ(cache.size(), 2U);
    AnalysisCache again(path(), "engine");
    EXPECT_GE(again.size() + static_cast<size_t>(cache.unwritten()), 2U) << operation;
    EXPECT_EQ(again.find(kStart).value_or(kTop), kTop);
  }
}

// Two runs write one file at once: each entry is whole, and both know all of them afterwards.
TEST_F(AnalysisCacheTest, TwoProcessesWriteOneFile) {
  constexpr int kEntries = 2000;
  const auto fill = [&](char who) {
    AnalysisCache cache(path(), "engine");
    for (int i = 0; i < kEntries; ++i) cache.put(fmt::format("{} {}", who, i), kTop);
  };
  const pid_t child = ::fork();
  if (child == 0) {
    fill('b');
    ::_exit(0);
  }
  fill('a');
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  AnalysisCache again(path(), "engine");
  EXPECT_EQ(again.damaged(), 0);
  EXPECT_EQ(again.size(), 2U * kEntries);
  for (const char* fen : {"a 0", "a 1999", "b 0", "b 1999"}) EXPECT_EQ(again.find(fen), kTop);
}

/// Counts what waits for the disk.
class CountedFiles : public testing::FaultyFiles {
 public:
  ssize_t write(int file, const void* data, size_t bytes) override {
    ++unsynced;
    return FaultyFiles::write(file, data, bytes);
  }
  int sync(int file) override {
    unsynced = 0;
    return FaultyFiles::sync(file);
  }
  int sync_folder(const std::string& path) override {
    folder = path;
    return FaultyFiles::sync_folder(path);
  }
  int unsynced = 0;
  std::string folder;
};

TEST_F(AnalysisCacheTest, IsOnTheDiskAtTheEndAndNowAndThen) {
  CountedFiles files;
  int most = 0;
  {
    AnalysisCache cache(path(), "engine", files);
    for (int i = 0; i < 3000; ++i) {
      cache.put(std::to_string(i), kTop);
      most = std::max(most, files.unsynced);
    }
    EXPECT_GT(files.unsynced, 0);
  }
  EXPECT_EQ(files.unsynced, 0);
  EXPECT_LE(most, 1024);
  EXPECT_EQ(files.folder, folder_.path()) << "the file is new: its name is synced too";
}

TEST_F(AnalysisCacheTest, TellsOnceWhatIsWrongWithTheFile) {
  filled();
  EXPECT_THAT(AnalysisCache(path(), "engine").take_notices(), IsEmpty());
  folder_.put("cache",
              read_file(path()).take_or_throw() + "something else\n\n0123456789abcdef\tx\n");
  AnalysisCache damaged(path(), "engine");
  EXPECT_EQ(damaged.size(), 2U);
  EXPECT_THAT(damaged.take_notices(), ElementsAre(HasSubstr("cache: 2 lines are damaged")));
  EXPECT_THAT(damaged.take_notices(), IsEmpty());
  AnalysisCache folder(folder_.path(), "engine");
  EXPECT_THAT(folder.take_notices(), ElementsAre(HasSubstr("every position is analysed anew")));
  folder.put(kStart, kTop);
  folder.put("other", kTop);
  EXPECT_EQ(folder.find(kStart), kTop);
  EXPECT_THAT(folder.take_notices(), ElementsAre(HasSubstr("is not kept for later runs")));
  testing::FaultyFiles files;
  AnalysisCache full(folder_ / "new", "engine", files);
  files.fail_at(files.operations() + 1, ENOSPC);
  full.put(kStart, kTop);
  EXPECT_THAT(full.take_notices(), ElementsAre(HasSubstr("No space left")));
}

}  // namespace
}  // namespace fullbore::chess
