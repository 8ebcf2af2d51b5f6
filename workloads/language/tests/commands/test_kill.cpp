// Runs that are killed at random instants, and runs that are asked to leave at random instants, all
// resumed until they end: the same bits as a run that nobody disturbed.
//   FULLBORE_KILLS=1000    so many SIGKILLs per number of loader workers instead of 5
//   FULLBORE_SIGNALS=100   so many polite signals that hit a run instead of 4
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "fullbore/base/error.h"
#include "fullbore/base/philox.h"
#include "fullbore/train/run_checkpoints.h"
#include "tests/support/job.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using ::testing::HasSubstr;

int wanted(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class DisturbedRuns : public JobTest {
 protected:
  /// Trains in a folder of its own, with a cache of its own, in the same relative places as all
  /// others, so that checkpoints can be compared byte by byte. Kills it `delay` seconds in.
  CommandResult train_in(const std::string& name, int workers, double delay = -1,
                         const std::vector<int>& signals = {}) {
    fs::create_directory(folder_ / name);
    fs::copy_file(folder_ / "job.yaml", folder_ / (name + "/job.yaml"),
                  fs::copy_options::overwrite_existing);
    const Clock::time_point start = Clock::now();
    size_t sent = 0;
    return run_command(folder_ / name,
                       {"train", "job.yaml", "run.dir=run", "data.path=" + (folder_ / text_),
                        "data.batching=" + batching_, fmt::format("data.workers={}", workers),
                        "data.cache_dir=tokens", "train.steps=60", "train.eval_interval=12",
                        "train.checkpoint_interval=9", "log.interval=5", "--resume"},
                       [&](pid_t process) {
                         if (delay < 0 || sent == signals.size() || seconds_since(start) < delay)
                           return;
                         kill(process, signals[sent++]);
                       });
  }
  /// The second of two runs, for which every kernel is compiled already.
  void undisturbed(int workers) {
    for (int i = 0; i < 2; ++i) {
      fs::remove_all(folder_ / "whole");
      const Clock::time_point start = Clock::now();
      const CommandResult result = train_in("whole", workers);
      ASSERT_EQ(result.exit_code, 0) << result.err;
      seconds_ = seconds_since(start);
    }
  }
  void expect_same(const std::string& name) {
    for (const char* link : {"last", "best"}) {
      const std::string path = std::string("/run/checkpoints/") + link;
      ASSERT_EQ(fs::canonical(folder_ / (name + path)).filename().string().substr(0, 13),
                fs::canonical(folder_ / ("whole" + path)).filename().string().substr(0, 13));
      EXPECT_TRUE(folder_contents(fs::canonical(folder_ / (name + path))) ==
                  folder_contents(fs::canonical(folder_ / ("whole" + path))))
          << link << " differs";
    }
    EXPECT_EQ(without_times(metrics(name + "/run")), without_times(metrics("whole/run")));
    EXPECT_EQ(summary(name + "/run")["status"], "completed");
    for (const fs::directory_entry& entry :
         fs::directory_iterator(folder_ / (name + "/run/checkpoints")))
      EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
  }
  bool has_checkpoint(const std::string& name) const {
    return fs::exists(folder_ / (name + "/run/checkpoints/last"));
  }

  /// Kills runs `kills` times, resumes them until they end, and compares.
  void kill_and_compare(int workers, int kills);

  std::string text_ = "text.txt";
  std::string batching_ = "windows";
  double seconds_ = 0;  ///< that the undisturbed run takes
  PhiloxStream draws_{2026};
};

void DisturbedRuns::kill_and_compare(int workers, int kills) {
  undisturbed(workers);
  int killed = 0;
  int runs = 0;
  while (killed < kills) {
    const std::string name = "killed";
    fs::remove_all(folder_ / name);
    for (++runs;; ++killed) {
      // Now and then nothing is cached: tokenising is in the middle of it too.
      if (draws_.below(4) == 0) fs::remove_all(folder_ / (name + "/tokens"));
      // Or no kernel is compiled and no peak measured yet.
      const bool cold = draws_.below(50) == 0;
      const std::string warm_cache = getenv("FULLBORE_CACHE");
      if (cold) setenv("FULLBORE_CACHE", (folder_ / fmt::format("cache{}", killed)).c_str(), 1);
      const double delay = killed < kills ? draws_.uniform(0, seconds_ * (cold ? 10 : 1)) : -1;
      const CommandResult result = train_in(name, workers, delay, {SIGKILL});
      setenv("FULLBORE_CACHE", warm_cache.c_str(), 1);
      if (result.exit_code == 0) break;
      ASSERT_EQ(result.exit_code, 128 + SIGKILL) << result.err;
    }
    expect_same(name);
    ASSERT_FALSE(HasFailure()) << "after " << killed << " kills";
    if (killed >= 100) fmt::print(stderr, "{} kills\n", killed);
  }
  fmt::print("{} kills in {} runs of {:.2f} s, {}, {} loader workers: the same bits\n", killed,
             runs, seconds_, batching_, workers);
  std::fflush(stdout);
}

TEST_F(DisturbedRuns, KilledOnesEndWithTheSameBits) {
  for (const int workers : {1, 4}) kill_and_compare(workers, wanted("FULLBORE_KILLS", 5));
}

TEST_F(DisturbedRuns, KilledOnesOfSeveralShapesEndWithTheSameBits) {
  text_ = put_documents();
  batching_ = "buckets";
  kill_and_compare(4, wanted("FULLBORE_KILLS", 4));
}

TEST_F(DisturbedRuns, AskedToLeaveTheySaveAndGoOnToTheSameBits) {
  const int signals = wanted("FULLBORE_SIGNALS", 4);
  undisturbed(1);
  int saved = 0;
  int nothing_to_save = 0;
  int not_begun = 0;
  int complete = 0;
  double longest = 0;
  const int kinds[] = {SIGTERM, SIGINT, SIGUSR1, SIGHUP};
  for (int i = 0; saved + nothing_to_save < signals; ++i) {
    const std::string name = "asked";
    fs::remove_all(folder_ / name);
    const double delay = draws_.uniform(0, seconds_);
    const Clock::time_point start = Clock::now();
    const CommandResult result = train_in(name, 1, delay, {kinds[i % 4]});
    if (result.exit_code == 0) {
      ++complete;  // the signal came when all had been done
      continue;
    }
    // Nothing was saved, or the system was still loading the program and there was nobody to ask.
    if (result.exit_code == 128 + kinds[i % 4]) {
      EXPECT_FALSE(has_checkpoint(name));
      result.err.empty() ? ++not_begun : ++nothing_to_save;
      ASSERT_EQ(train_in(name, 1).exit_code, 0);
      expect_same(name);
      continue;
    }
    ASSERT_EQ(result.exit_code, static_cast<int>(ExitCode::kInterrupted)) << result.err;
    longest = std::max(longest, seconds_since(start) - delay);
    EXPECT_TRUE(has_checkpoint(name));
    if (result.err.find("nothing new to save") != std::string::npos) {
      ++nothing_to_save;
    } else {
      ++saved;
      EXPECT_THAT(result.err, HasSubstr("saved in run; go on with: "));
      const OpenedCheckpoint checkpoint =
          open_checkpoint(folder_ / (name + "/run/checkpoints/last"));
      EXPECT_EQ(checkpoint.record.step, summary(name + "/run")["steps"]);
    }
    ASSERT_EQ(train_in(name, 1).exit_code, 0);
    expect_same(name);
    ASSERT_FALSE(HasFailure()) << "signal " << kinds[i % 4] << " after " << delay << " s";
  }
  fmt::print("{} signals: {} saved and left, {} left before the first step\n", signals, saved,
             nothing_to_save);
  fmt::print("{} came before the program, {} after its end; {:.3f} s to the exit at most\n",
             not_begun, complete, longest);
}

TEST_F(DisturbedRuns, ASecondInterruptLeavesAtOnceAndCorruptsNothing) {
  undisturbed(1);
  const CommandResult result = train_in("interrupted", 1, seconds_ * 0.7, {SIGINT, SIGINT});
  EXPECT_TRUE(result.exit_code == 128 + SIGINT || result.exit_code == 75 || result.exit_code == 0)
      << result.exit_code;
  ASSERT_EQ(train_in("interrupted", 1).exit_code, 0);
  expect_same("interrupted");
}

}  // namespace
}  // namespace fullbore
