#include "fullbore/train/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "fullbore/base/error.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RunDirectoryTest : public ::testing::Test {
 protected:
  RunDirectoryTest() : folder_(::testing::TempDir() + "fullbore_runs") { fs::remove_all(folder_); }
  ~RunDirectoryTest() override { fs::remove_all(folder_); }

  template <class Act>
  static std::string error_of(const Act& act) {
    try {
      act();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  std::string folder_;
};

TEST_F(RunDirectoryTest, NumbersGrowPastTheLargest) {
  EXPECT_EQ(RunDirectory::latest_numbered(folder_, "net"), "");
  EXPECT_EQ(RunDirectory::create_numbered(folder_, "net").path(), folder_ + "/net-1");
  EXPECT_EQ(RunDirectory::create_numbered(folder_, "net").path(), folder_ + "/net-2");
  for (const char* other : {"net-x", "net-07b", "net-", "net", "other-50", "net--3"})
    fs::create_directory(fs::path(folder_) / other);
  fs::create_directory(folder_ + "/net-9");
  EXPECT_EQ(RunDirectory::latest_numbered(folder_, "net"), folder_ + "/net-9");
  EXPECT_EQ(RunDirectory::create_numbered(folder_, "net").path(), folder_ + "/net-10");
}

TEST_F(RunDirectoryTest, ARunIsNotOverwritten) {
  const std::string path = folder_ + "/deep/mine";
  { const RunDirectory run = RunDirectory::create(path); }
  { const RunDirectory run = RunDirectory::create(path); }  // nothing was written: still free
  std::ofstream(path + "/config.resolved.yaml") << "x: 1\n";
  EXPECT_THAT(error_of([&] { RunDirectory::create(path); }),
              HasSubstr("holds a run already: go on with it by --resume"));
  EXPECT_EQ(RunDirectory::open(path).path(), path);
}

// A folder of a stranger's: what is written there must not arrive elsewhere.
TEST_F(RunDirectoryTest, WhatIsPlantedInItIsRefusedByName) {
  const std::string path = folder_ + "/gift";
  { const RunDirectory run = RunDirectory::create(path); }
  fs::create_directory(folder_ + "/victim");
  for (const char* name : {"config.resolved.yaml", "config.given.yaml", "metrics.jsonl", "log.txt",
                           "summary.json", "checkpoints", "bad_steps", "tensorboard"}) {
    const fs::path planted = fs::path(path) / name;
    fs::remove(planted);
    fs::create_directory_symlink(folder_ + "/victim", planted);
    EXPECT_THAT(error_of([&] { RunDirectory::open(path); }),
                HasSubstr(planted.string() + " is a symbolic link"));
    EXPECT_EQ(error_of([&] { RunDirectory::open(folder_ + "/victim"); }), "") << "no lock is left";
    fs::remove(planted);
    fs::remove(folder_ + "/victim/checkpoints");
  }
  fs::create_directory(path + "/log.txt");
  EXPECT_THAT(error_of([&] { RunDirectory::open(path); }),
              HasSubstr("log.txt is not a regular file"));
  fs::remove(path + "/log.txt");
  std::ofstream(path + "/bad_steps") << "x";
  EXPECT_THAT(error_of([&] { RunDirectory::open(path); }), HasSubstr("bad_steps is not a folder"));
}

TEST_F(RunDirectoryTest, OneProcessAtATime) {
  const RunDirectory first = RunDirectory::create(folder_ + "/a");
  EXPECT_THAT(error_of([&] { RunDirectory::open(folder_ + "/a"); }),
              HasSubstr("in use by another fullbore process"));
  EXPECT_NO_THROW(RunDirectory::create(folder_ + "/b"));
}

TEST_F(RunDirectoryTest, WhatACrashLeftBehindGoesWhenTheRunIsOpened) {
  const std::string path = folder_ + "/a";
  { const RunDirectory run = RunDirectory::create(path); }
  std::ofstream(path + "/summary.json") << "{}";
  std::ofstream(path + "/summary.json.123.tmp") << "{";
  std::ofstream(path + "/config.resolved.yaml.123.4.tmp") << "x";
  std::ofstream(path + "/mine.tmp") << "x";
  { const RunDirectory run = RunDirectory::open(path); }
  EXPECT_TRUE(fs::exists(path + "/summary.json"));
  EXPECT_FALSE(fs::exists(path + "/summary.json.123.tmp"));
  EXPECT_FALSE(fs::exists(path + "/config.resolved.yaml.123.4.tmp"));
  EXPECT_TRUE(fs::exists(path + "/mine.tmp")) << "no file of ours";
}

TEST_F(RunDirectoryTest, ImpossibleFoldersAreNamed) {
  EXPECT_THAT(error_of([&] { RunDirectory::open(folder_ + "/none"); }),
              HasSubstr("there is no run " + folder_ + "/none"));
  EXPECT_THAT(error_of([] { RunDirectory::create("/proc/none/run"); }),
              HasSubstr("cannot create the folder /proc/none/run"));
  EXPECT_THAT(error_of([] { RunDirectory::create_numbered("/proc/none", "net"); }),
              HasSubstr("cannot create the folder /proc/none"));
}

}  // namespace
}  // namespace fullbore
