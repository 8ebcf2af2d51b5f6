#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>

#include "fullbore/base/error.h"
#include "tests/support/job.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

constexpr int kInterrupted = static_cast<int>(ExitCode::kInterrupted);

TEST_F(JobTest, TrainLeavesARunBehind) {
  const CommandResult result = train({"train.sample_characters=40"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_GE(result.out.size(), 40U) << "no sample";
  EXPECT_THAT(result.err, Not(HasSubstr("\x1b"))) << "escapes outside of a terminal";
  EXPECT_THAT(result.err, HasSubstr("step 20/20  loss"));
  EXPECT_THAT(result.err, HasSubstr("completed at step 20/20"));

  const std::string run = "runs/tiny-1";
  for (const char* file :
       {"config.resolved.yaml", "metrics.jsonl", "log.txt", "summary.json",
        "checkpoints/last/weights.safetensors", "checkpoints/best/manifest.json"})
    EXPECT_TRUE(fs::exists(folder_ / (run + "/" + file))) << file;
  EXPECT_THAT(read(run + "/log.txt"), HasSubstr("completed at step 20/20"));
  EXPECT_THAT(read(run + "/config.resolved.yaml"), HasSubstr("dir: runs/tiny-1"));

  const nlohmann::json json = summary(run);
  EXPECT_EQ(json["status"], "completed");
  EXPECT_EQ(json["steps"], 20);
  for (const char* key : {"final_train_loss", "final_validation_loss", "best_validation_loss",
                          "tokens_per_second", "utilisation", "peak_bytes", "planned_peak_bytes",
                          "seconds_to_first_step", "wall_seconds"}) {
    ASSERT_TRUE(json.contains(key)) << key;
    EXPECT_TRUE(json[key].is_number()) << key;
    EXPECT_GT(json[key].get<double>(), 0) << key;
  }
}

TEST_F(JobTest, MetricsHoldEveryIntervalAndTheLossFalls) {
  ASSERT_EQ(train({"train.steps=60"}).exit_code, 0);
  std::vector<int> trained;
  std::vector<double> validation;
  for (const nlohmann::json& record : metrics("runs/tiny-1")) {
    if (record["kind"] == "train") {
      trained.push_back(record["step"]);
      for (const char* key : {"loss", "gradient_norm", "learning_rate", "tokens_per_second"})
        EXPECT_GT(record[key].get<double>(), 0) << key;
    } else {
      EXPECT_EQ(record["kind"], "evaluation");
      EXPECT_EQ(record["step"].get<int>() % 5, 0);
      validation.push_back(record["validation_loss"]);
    }
  }
  ASSERT_EQ(trained.size(), 30U);
  EXPECT_EQ(trained.front(), 2);
  EXPECT_EQ(trained.back(), 60);
  ASSERT_EQ(validation.size(), 13U) << "step 0 and every five after";
  EXPECT_LT(validation.back(), 0.8 * validation.front());
  const nlohmann::json json = summary("runs/tiny-1");
  EXPECT_EQ(json["final_validation_loss"], validation.back());
  EXPECT_EQ(json["best_validation_loss"], *std::min_element(validation.begin(), validation.end()));
}

// bf16 and fp16 learn as fp32 does. fp16's loss scale is found by steps that are skipped without a
// fuss: nothing is wrong with them.
TEST_F(JobTest, LowPrecisionsLearnAlike) {
  const std::vector<std::string> settings = {"train.steps=60", "engine.loss_scale=16777216",
                                             "train.max_skipped_steps=30"};
  std::vector<double> losses;
  for (const char* precision : {"fp32", "bf16", "fp16"}) {
    std::vector<std::string> more = settings;
    more.push_back(std::string("engine.precision=") + precision);
    more.push_back(std::string("run.dir=") + precision);
    const CommandResult result = train(more);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    losses.push_back(summary(precision)["best_validation_loss"]);
    EXPECT_FALSE(fs::exists(folder_ / (std::string(precision) + "/bad_steps")));
    const std::string log = read(std::string(precision) + "/log.txt");
    if (std::string(precision) != "fp16")
      EXPECT_THAT(log, Not(HasSubstr("skipped")));
    else
      EXPECT_THAT(log, HasSubstr("overflow at a loss scale of 16777216, which is lowered"));
  }
  EXPECT_NE(losses[1], losses[0]);
  EXPECT_NE(losses[2], losses[0]);
  EXPECT_NEAR(losses[1], losses[0], 0.02 * losses[0]);
  EXPECT_NEAR(losses[2], losses[0], 0.1 * losses[0]) << "it made fewer steps";
}

TEST_F(JobTest, SaysWhereBf16IsNoFaster) {
  const std::string words = "engine.precision=bf16 is no faster than fp32 here, and saves memory";
  const auto told = [&](const std::string& precision) {
    const CommandResult result =
        train({"engine.processor=x86-64-v2", "engine.precision=" + precision, "train.steps=1"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.err;
  };
  const std::string of_bf16 = told("bf16");
  EXPECT_THAT(of_bf16, HasSubstr(words));
  EXPECT_EQ(of_bf16.find(words), of_bf16.rfind(words)) << "more than once";
  EXPECT_THAT(told("fp32"), Not(HasSubstr(words)));
}

TEST_F(JobTest, ASecondStartFindsPlansAndKernelsUnlessToldOtherwise) {
  const auto losses = [&](const std::string& run) {
    std::vector<nlohmann::json> lines;
    for (const nlohmann::json& record : metrics(run)) lines.push_back(record.value("loss", 0.0));
    return lines;
  };
  const auto entries = [&](const std::string& of) {
    const std::string path = folder_ / ("cache/" + of);
    return fs::exists(path) ? std::distance(fs::directory_iterator(path), {}) : 0;
  };
  const std::vector<std::string> brief = {"train.steps=4", "log.interval=1",
                                          "engine.cache_dir=cache"};
  const auto run = [&](const std::string& dir, std::vector<std::string> more = {}) {
    more.insert(more.end(), brief.begin(), brief.end());
    more.push_back("run.dir=" + dir);
    const CommandResult result = train(more);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  };
  run("off", {"engine.cache=false"});
  EXPECT_EQ(entries("kernels"), 0);
  EXPECT_EQ(entries("plans"), 0);
  run("first");
  EXPECT_EQ(entries("plans"), 2) << "a step and an evaluation";
  const auto kernels = entries("kernels");
  EXPECT_GT(kernels, 0);
  run("second");
  EXPECT_EQ(entries("plans"), 2);
  EXPECT_EQ(entries("kernels"), kernels);
  EXPECT_EQ(losses("first"), losses("off"));
  EXPECT_EQ(losses("second"), losses("off"));
}

TEST_F(JobTest, EachRunGetsAFolderAndNoneIsOverwritten) {
  const std::vector<std::string> brief = {"train.steps=1"};
  ASSERT_EQ(train(brief).exit_code, 0);
  ASSERT_EQ(train(brief).exit_code, 0);
  EXPECT_TRUE(fs::exists(folder_ / "runs/tiny-2/summary.json"));
  ASSERT_EQ(train({"train.steps=1", "run.dir=mine"}).exit_code, 0);
  const auto before = folder_contents(folder_.path());
  const CommandResult again = train({"train.steps=1", "run.dir=mine"});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr("fullbore: run.dir mine holds a run already"));
  EXPECT_EQ(folder_contents(folder_.path()), before);
}

// The same relative folder in two places, so that the checkpoints may be compared byte by byte.
class ResumeTest : public JobTest {
 protected:
  ResumeTest() {
    for (const char* name : {"a", "b"}) {
      fs::create_directory(folder_ / name);
      fs::copy_file(folder_ / "job.yaml", folder_ / (std::string(name) + "/job.yaml"));
    }
  }
  CommandResult train_in(const std::string& name, std::vector<std::string> more,
                         const std::function<void(pid_t)>& while_running = {}) const {
    std::vector<std::string> arguments = {"train", "job.yaml", "run.dir=run",
                                          "data.path=" + (folder_ / "text.txt")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_command(folder_ / name, arguments, while_running);
  }
  void expect_equal_runs() const {
    for (const char* link : {"last", "best"}) {
      const std::string name = std::string("/run/checkpoints/") + link;
      EXPECT_TRUE(folder_contents(fs::canonical(folder_ / ("a" + name))) ==
                  folder_contents(fs::canonical(folder_ / ("b" + name))))
          << link << " differs";
    }
    EXPECT_EQ(without_times(metrics("a/run")), without_times(metrics("b/run")));
    for (const char* key : {"status", "steps", "final_train_loss", "final_validation_loss",
                            "best_validation_loss", "best_step"})
      EXPECT_EQ(summary("a/run")[key], summary("b/run")[key]) << key;
  }
  /// Sends `signal` once when the run in `name` has written `lines` lines of metrics.
  std::function<void(pid_t)> signal_after(const std::string& name, int lines, int signal) const {
    auto sent = std::make_shared<bool>(false);
    return [=, this](pid_t process) {
      const std::string file = folder_ / (name + "/run/metrics.jsonl");
      if (*sent || !fs::exists(file)) return;
      const std::string text = read(name + "/run/metrics.jsonl");
      if (std::count(text.begin(), text.end(), '\n') < lines) return;
      kill(process, signal);
      *sent = true;
    };
  }
};

const std::vector<std::string> kLong = {"train.steps=3000", "train.eval_interval=500",
                                        "train.checkpoint_interval=100", "log.interval=25"};
std::vector<std::string> resuming(std::vector<std::string> arguments) {
  arguments.emplace_back("--resume");
  return arguments;
}

TEST_F(ResumeTest, TerminatedRunGoesOnToTheSameBits) {
  ASSERT_EQ(train_in("a", kLong).exit_code, 0);
  const CommandResult stopped = train_in("b", kLong, signal_after("b", 8, SIGTERM));
  ASSERT_EQ(stopped.exit_code, kInterrupted) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("saved in run; go on with: "));
  EXPECT_EQ(summary("b/run")["status"], "interrupted");
  EXPECT_LT(summary("b/run")["steps"], 3000);
  const CommandResult resumed = train_in("b", resuming(kLong));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("resumed run at step"));
  expect_equal_runs();
}

TEST_F(ResumeTest, KilledRunGoesOnToTheSameBits) {
  ASSERT_EQ(train_in("a", kLong).exit_code, 0);
  ASSERT_EQ(train_in("b", kLong, signal_after("b", 11, SIGKILL)).exit_code, 128 + SIGKILL);
  EXPECT_EQ(summary("b/run")["status"], "running");
  ASSERT_EQ(train_in("b", resuming(kLong), signal_after("b", 25, SIGKILL)).exit_code,
            128 + SIGKILL);
  ASSERT_EQ(train_in("b", resuming(kLong)).exit_code, 0);
  expect_equal_runs();
}

// As a kill between naming the last checkpoint and pointing to it leaves a run.
TEST_F(ResumeTest, LinksThatWereLeftBehindAreMovedThoughNothingIsLeftToDo) {
  ASSERT_EQ(train_in("a", {}).exit_code, 0);
  ASSERT_EQ(train_in("b", {}).exit_code, 0);
  const std::string last = folder_ / "b/run/checkpoints/last";
  const fs::path newest = fs::read_symlink(last);
  ASSERT_NE(newest, "step-00000015");
  fs::remove(last);
  fs::create_symlink("step-00000015", last);
  ASSERT_EQ(train_in("b", resuming({})).exit_code, 0);
  EXPECT_EQ(fs::read_symlink(last), newest);
  expect_equal_runs();
}

TEST_F(ResumeTest, DamagedCheckpointIsPassedOverForTheOneBefore) {
  ASSERT_EQ(train_in("a", {}).exit_code, 0);
  const std::vector<std::string> part = {"train.steps=20"};
  ASSERT_EQ(train_in("b", part).exit_code, 0);
  const std::string damaged = "b/run/checkpoints/step-00000020/optimizer.safetensors";
  std::string bytes = read(damaged);
  bytes[bytes.size() - 5] = static_cast<char>(bytes[bytes.size() - 5] ^ 1);
  folder_.put(damaged, bytes);
  const CommandResult resumed = train_in("b", resuming(part));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.err,
              HasSubstr("fullbore: warning: run/checkpoints/step-00000020/optimizer.safetensors"));
  EXPECT_THAT(resumed.err, HasSubstr("resumed run at step 15"));
  expect_equal_runs();
}

TEST_F(JobTest, ResumeWithoutRunDirTakesTheNewestRun) {
  EXPECT_EQ(train({"--resume"}).exit_code, 2) << "there is none";
  ASSERT_EQ(train({"train.steps=4", "optim.schedule=constant"}).exit_code, 0);
  ASSERT_EQ(train({"train.steps=4", "optim.schedule=constant"}).exit_code, 0);
  const CommandResult resumed = train({"train.steps=6", "optim.schedule=constant", "--resume"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("changed  train.steps: 4 -> 6"));
  EXPECT_EQ(summary("runs/tiny-2")["steps"], 6);
  EXPECT_EQ(summary("runs/tiny-1")["steps"], 4);
}

TEST_F(JobTest, ACompleteRunIsLeftAlone) {
  ASSERT_EQ(train().exit_code, 0);
  auto before = folder_contents(folder_ / "runs");
  const CommandResult again = command({"train", "runs/tiny-1", "--resume"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("is complete at step 20"));
  auto after = folder_contents(folder_ / "runs");
  before.erase("tiny-1/log.txt");
  after.erase("tiny-1/log.txt");
  EXPECT_EQ(after, before);
}

TEST_F(JobTest, LiveLineOnATerminal) {
  const CommandResult result = run_command_on_terminal(
      folder_.path(), {"train", "job.yaml", "data.path=text.txt", "train.steps=400"}, 100);
  ASSERT_EQ(result.exit_code, 0) << result.out;
  EXPECT_THAT(result.out, HasSubstr("\r\x1b[K"));
  EXPECT_THAT(result.out, HasSubstr("/400"));
  EXPECT_THAT(result.out, HasSubstr("tok/s"));
  const size_t last_erase = result.out.rfind("\r\x1b[K");
  EXPECT_THAT(result.out.substr(last_erase + 4), Not(HasSubstr("left")))
      << "the live line was left on the screen";
  EXPECT_THAT(read("runs/tiny-1/log.txt"), HasSubstr("step 40/400  loss"));
}

}  // namespace
}  // namespace fullbore
