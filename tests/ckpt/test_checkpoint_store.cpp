#include "fullbore/ckpt/checkpoint_store.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <new>

#include "fullbore/base/files.h"
#include "tests/ckpt/checkpoint_fixture.h"
#include "tests/ckpt/failing_new.h"
#include "tests/support/faulty_files.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using testing::Contents;
using ::testing::ElementsAre;
using testing::FailingNew;
using testing::FaultyFiles;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class Store : public ::testing::Test {
 protected:
  Status save(int64_t step, bool best = false, int64_t keep = 2) {
    return CheckpointStore(folder_.path(), keep, healthy_).save(step, Contents(step).get(), best);
  }
  void flip_last_byte(const std::string& name) {
    std::string bytes = read_file(folder_ / name).value();
    bytes.back() ^= 1;
    folder_.put(name, bytes);
  }
  LatestCheckpoint find() {
    return find_latest(CheckpointStore(folder_.path(), 2)).take_or_throw();
  }
  std::vector<std::string> names() { return healthy_.list(folder_.path()); }
  std::string link(const char* name) { return healthy_.link_target(folder_ / name); }

  testing::ScratchFolder folder_;
  FaultyFiles healthy_;  // without a fault: the system's files less the waiting for the disk
};

TEST_F(Store, KeepsTheNewestAndTheBest) {
  EXPECT_FALSE(find().found);
  ASSERT_TRUE(save(5, true).ok());
  EXPECT_THAT(names(), UnorderedElementsAre("step-00000005", "last", "best"));
  for (const int64_t step : {10, 15, 20}) ASSERT_TRUE(save(step).ok());
  EXPECT_THAT(names(), UnorderedElementsAre("step-00000005", "step-00000015", "step-00000020",
                                            "last", "best"));
  EXPECT_EQ(link("last"), "step-00000020");
  EXPECT_EQ(link("best"), "step-00000005");
  ASSERT_TRUE(save(25, true).ok());
  EXPECT_THAT(names(), UnorderedElementsAre("step-00000020", "step-00000025", "last", "best"));
  EXPECT_EQ(find().found->record.step, 25);
  EXPECT_TRUE(Contents(25).is_in(find().found->checkpoint));
  for (const int64_t step : {30, 35, 40}) ASSERT_TRUE(save(step, false, 0).ok());
  EXPECT_EQ(names().size(), 7U) << "0 keeps all";
  ASSERT_TRUE(save(45, false, 1).ok());
  EXPECT_THAT(names(), UnorderedElementsAre("step-00000025", "step-00000045", "last", "best"));
}

// Losses 9 8 7 3 6 5 4 6 7 8, of which the first four are the best when they are saved.
TEST_F(Store, KeepsSeveralOfTheBest) {
  CheckpointStore store(folder_.path(), {5, 3}, healthy_);
  for (int64_t epoch = 0; epoch < 10; ++epoch)
    ASSERT_TRUE(store.save(epoch, Contents(epoch).get(), epoch < 4).ok());
  EXPECT_THAT(names(), UnorderedElementsAre("step-00000001", "step-00000002", "step-00000003",
                                            "step-00000005", "step-00000006", "step-00000007",
                                            "step-00000008", "step-00000009", "last", "best",
                                            "best-2", "best-3"));
  EXPECT_EQ(link("best"), "step-00000003");
  EXPECT_EQ(link("best-2"), "step-00000002");
  EXPECT_EQ(link("best-3"), "step-00000001");
  // A run that goes on with fewer, and whose links a crash left behind: nothing leads nowhere.
  CheckpointStore fewer(folder_.path(), {1, 2}, healthy_);
  fs::create_symlink("elsewhere", folder_ / "best-of-all");
  ASSERT_TRUE(fewer.adopt(folder_ / "step-00000009", false).ok());
  ASSERT_TRUE(fewer.save(10, Contents(10).get(), true).ok());
  EXPECT_THAT(names(), UnorderedElementsAre("step-00000003", "step-00000010", "last", "best",
                                            "best-2", "best-of-all"));
  EXPECT_EQ(link("best-2"), "step-00000003");
  ASSERT_TRUE(fewer.adopt(folder_ / "step-00000010", true).ok());
  EXPECT_EQ(link("best-2"), "step-00000003") << "it was the best already";
}

TEST_F(Store, TwoOfOneStepAreToldApart) {
  ASSERT_TRUE(save(7).ok());
  ASSERT_TRUE(save(7).ok());
  EXPECT_THAT(names(), UnorderedElementsAre("step-00000007", "step-00000007.2", "last"));
  EXPECT_EQ(link("last"), "step-00000007.2");
  EXPECT_EQ(find().found->checkpoint.path(), folder_ / "step-00000007.2");
  ASSERT_TRUE(save(123'456'789'012).ok());
  EXPECT_EQ(link("last"), "step-123456789012");
}

TEST_F(Store, DamagedOnesArePassedOverAndNamed) {
  for (const int64_t step : {10, 20, 30}) ASSERT_TRUE(save(step, false, 0).ok());
  flip_last_byte("step-00000030/weights.safetensors");
  EXPECT_EQ(find().found->record.step, 20);
  EXPECT_THAT(find().rejected, ElementsAre(HasSubstr("step-00000030/weights.safetensors: its check"
                                                     "sum is ")));
  fs::resize_file(folder_ / "step-00000020/manifest.json", 100);
  EXPECT_EQ(find().found->record.step, 10);
  fs::remove(folder_ / "step-00000010/optimizer.safetensors");
  EXPECT_FALSE(find().found);
  EXPECT_EQ(find().rejected.size(), 3U);
}

TEST_F(Store, TheStepsCountNotTheName) {
  ASSERT_TRUE(save(10).ok());
  ASSERT_TRUE(save(20).ok());
  fs::rename(folder_ / "step-00000010", folder_ / "step-00000090");
  EXPECT_EQ(find().found->record.step, 20);
}

TEST_F(Store, OtherNamesAreLeftAlone) {
  for (const char* name : {"step-", "step-1", "step-00000010.1", "step-00000010x", "mine"})
    fs::create_directory(folder_ / name);
  folder_.put("notes.txt", "mine too");
  EXPECT_FALSE(find().found);
  EXPECT_TRUE(find().rejected.empty());
  CheckpointStore(folder_.path(), 1).remove_stale();
  ASSERT_TRUE(save(10, false, 1).ok());
  ASSERT_TRUE(save(20, false, 1).ok());
  EXPECT_EQ(names().size(), 8U);
}

TEST_F(Store, WhatACrashLeftIsRemovedAtTheNextStart) {
  fs::create_directories(folder_ / ".step-00000010.tmp/deep");
  folder_.put(".step-00000010.tmp/deep/weights.safetensors", "torn");
  folder_.put(".last.tmp", "");
  CheckpointStore(folder_.path(), 1).remove_stale();
  EXPECT_EQ(folder_.count(), 0);
}

// Killed after the folder got its name and before the links were moved.
TEST_F(Store, LinksThatACrashLeftBehindAreMovedWhenARunGoesOn) {
  ASSERT_TRUE(save(10, true).ok());
  ASSERT_TRUE(save(20).ok());
  fs::remove(folder_ / "last");
  fs::create_symlink("step-00000010", folder_ / "last");
  CheckpointStore store(folder_.path(), 2, healthy_);
  ASSERT_TRUE(store.adopt(folder_ / "step-00000020", false).ok());
  EXPECT_EQ(link("last"), "step-00000020");
  EXPECT_EQ(link("best"), "step-00000010");
  ASSERT_TRUE(store.adopt(folder_ / "step-00000020", true).ok());
  EXPECT_EQ(link("best"), "step-00000020");
  FaultyFiles full;
  full.fail_at(0, ENOSPC);
  EXPECT_TRUE(CheckpointStore(folder_.path(), 2, full).adopt(folder_ / "step-00000020", true).ok())
      << "nothing is left to be written";
}

TEST_F(Store, AFolderThatCannotBeReadIsNotAnEmptyOne) {
  EXPECT_THAT(find_latest(CheckpointStore(folder_ / "none", 1)).error(),
              HasSubstr("cannot read the folder " + (folder_ / "none") + ": No such file"));
}

// The n-th call fails, for every n over a save: the reason is told, what was saved before is whole,
// and the next save works.
TEST_F(Store, AFaultAnywhereInASaveLosesNothing) {
  struct Case {
    int reason;
    int64_t best;  // kept
  };
  for (const auto& [reason, best] : {Case{ENOSPC, 1}, Case{EIO, 1}, Case{ENOSPC, 3}}) {
    int faults = 0;
    for (int operation = 0;; ++operation, ++faults) {
      folder_.clear();
      ASSERT_TRUE(save(1, true).ok());
      ASSERT_TRUE(save(2).ok());
      FaultyFiles files;
      files.fail_at(operation, reason);
      const Status status =
          CheckpointStore(folder_.path(), {2, best}, files).save(3, Contents(3).get(), true);
      if (files.operations() <= operation) break;
      const LatestCheckpoint latest = find();
      ASSERT_TRUE(latest.found && latest.rejected.empty()) << "operation " << operation;
      const int64_t step = latest.found->record.step;
      ASSERT_TRUE(Contents(step).is_in(latest.found->checkpoint));
      if (status.ok()) {  // it failed where nothing depends on it: in tidying up
        EXPECT_EQ(step, 3);
      } else {
        EXPECT_GE(step, 2);
        EXPECT_THAT(status.error(), HasSubstr(std::strerror(reason)));
        EXPECT_THAT(status.error(), HasSubstr(folder_.path()));
      }
      for (const std::string name : {"last", "best", "best-2"}) {
        if (name == "best-2" && link("best-2").empty()) continue;
        EXPECT_TRUE(open_checkpoint_folder(folder_ / name).take_or_throw().verify().ok());
      }
      CheckpointStore(folder_.path(), 2, healthy_).remove_stale();
      for (const std::string& name : names()) EXPECT_FALSE(name.ends_with(".tmp")) << name;
      ASSERT_TRUE(save(4).ok());
      EXPECT_EQ(find().found->record.step, 4);
    }
    EXPECT_GT(faults, 40);
  }
}

TEST_F(Store, AFaultAnywhereInAResumeIsToldAndNothingIsTouched) {
  ASSERT_TRUE(save(1).ok());
  ASSERT_TRUE(save(2).ok());
  int refused = 0;
  for (int operation = 0;; ++operation) {
    FaultyFiles files;
    files.fail_at(operation, EIO);
    const Result<LatestCheckpoint> latest =
        find_latest(CheckpointStore(folder_.path(), 2, files), files);
    if (files.operations() <= operation) break;
    if (!latest.ok()) {
      EXPECT_THAT(latest.error(), HasSubstr("Input/output error"));
      ++refused;
    } else if (latest.value().found->record.step != 2) {
      EXPECT_THAT(latest.value().rejected, ElementsAre(HasSubstr("Input/output error")));
      ++refused;
    }
    ASSERT_EQ(find().found->record.step, 2);
  }
  EXPECT_GT(refused, 20);
}

TEST_F(Store, ShortReadsAndWritesAreContinued) {
  FaultyFiles files;
  files.limit_reads(5);
  files.limit_writes(7);
  const CheckpointStore reader(folder_.path(), 2, files);
  CheckpointStore store(folder_.path(), 2, files);
  ASSERT_TRUE(store.save(3, Contents(3).get(), false).ok());
  const LatestCheckpoint latest = find_latest(reader, files).take_or_throw();
  EXPECT_TRUE(Contents(3).is_in(latest.found->checkpoint));
}

// The n-th allocation fails, once or for good, for every n over a save and a resume.
TEST_F(Store, OutOfMemoryAnywhereLosesNothing) {
  ASSERT_TRUE(save(1).ok());
  ASSERT_TRUE(save(2).ok());
  for (const bool for_good : {false, true}) {
    int64_t failures = 0;
    for (int64_t n = 0;; ++n) {
      bool thrown = false;
      bool reached = false;
      Contents third(3);
      const CheckpointContents contents = third.get();
      CheckpointStore store(folder_.path(), 2, healthy_);
      {
        const FailingNew failing(n, for_good);
        try {
          (void)store.save(3, contents, false).ok();
        } catch (const std::bad_alloc&) {
          thrown = true;
        }
        reached = failing.reached();
      }
      const int64_t step = find().found->record.step;
      ASSERT_TRUE(step == 3 || (thrown && step == 2)) << n;
      if (!reached) break;
      ++failures;
      // As it was before.
      for (const std::string& name : names())
        if (name.starts_with("step-00000003") || name.ends_with(".tmp"))
          fs::remove_all(folder_ / name);
      if (find().found->record.step != 2) {
        ASSERT_TRUE(save(2).ok());
      }
    }
    EXPECT_GT(failures, 200);
    for (int64_t n = 0;; ++n) {
      bool reached = false;
      const CheckpointStore store(folder_.path(), 2);
      {
        const FailingNew failing(n, for_good);
        try {
          (void)find_latest(store).ok();
        } catch (const std::bad_alloc&) {
        }
        reached = failing.reached();
      }
      if (!reached) break;
    }
    EXPECT_TRUE(find().found);
  }
}

}  // namespace
}  // namespace fullbore
