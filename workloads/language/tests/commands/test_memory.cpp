#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/train/config.h"
#include "tests/support/job.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Activations, not State, are most of what the job takes.
const std::string kLargeBatch = "train.batch_size=1024";

/// Two processors, or the only one, whatever the machine has: what a process takes grows with them.
class FewProcessors {
 public:
  FewProcessors() {
    sched_getaffinity(0, sizeof all_, &all_);
    cpu_set_t few;
    CPU_ZERO(&few);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&few) < 2; ++i)
      if (CPU_ISSET(i, &all_)) CPU_SET(i, &few);
    EXPECT_EQ(sched_setaffinity(0, sizeof few, &few), 0);
  }
  ~FewProcessors() { sched_setaffinity(0, sizeof all_, &all_); }

 private:
  cpu_set_t all_{};
};

class MemoryTest : public JobTest {
 protected:
  // Of one layer an evaluation takes as much as a step in microbatches.
  MemoryTest() {
    std::string config = read("job.yaml");
    config.replace(config.find("layers: 1"), 9, "layers: 4");
    folder_.put("job.yaml", config);
  }
  CommandResult plan(std::vector<std::string> settings) const {
    settings.insert(settings.begin(), {"plan", "job.yaml", "--json", "data.path=text.txt"});
    return command(settings);
  }
  /// Bytes of its plan and of the process beside it.
  std::pair<int64_t, int64_t> bytes(const std::vector<std::string>& settings) const {
    const auto json = nlohmann::json::parse(plan(settings).out);
    return {json["planned_peak_bytes"].get<int64_t>(), json["process_bytes"].get<int64_t>()};
  }
  static std::string budget_of(int64_t bytes) {
    return "engine.memory_budget=" + std::to_string(bytes);
  }
  /// For the process, and for such a share of the large batch's plan in the microbatches that take least, one after
  /// another.
  std::string budget(double share, const std::string& setting = "engine.threads=2") const {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const char* microbatches :
         {"engine.parallel_microbatches=1", "engine.parallel_microbatches=2",
          "engine.parallel_microbatches=4"})
      least =
          std::min(least, bytes({kLargeBatch, setting, microbatches, "engine.threads=1"}).first);
    return budget_of(bytes({kLargeBatch, setting}).second +
                     static_cast<int64_t>(share * static_cast<double>(least)));
  }
};

TEST_F(MemoryTest, WhatDoesNotFitIsRefusedBeforeAnythingIsCreated) {
  const auto before = folder_contents(folder_.path());
  const CommandResult result = train({kLargeBatch, budget(0.8)});
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_THAT(result.err,
              HasSubstr("are allowed (engine.memory_budget). What would fit, cheapest"));
  EXPECT_THAT(result.err, HasSubstr("% time per sequence"));
  EXPECT_THAT(result.err, HasSubstr("MiB would do for all as it is"));
  EXPECT_EQ(folder_contents(folder_.path()), before);
}

// With the process's own memory and nothing for the plan.
TEST_F(MemoryTest, ABudgetThatTheProcessTakesAloneIsRefusedWithTheNumbers) {
  const CommandResult result = train({"engine.memory_budget=60MiB"});
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_THAT(result.err,
              HasSubstr("60.0 MiB are allowed (engine.memory_budget). The process alone "
                        "takes more than that."));
}

// A sample of tools/campaigns/resident_memory.py.
TEST_F(MemoryTest, ResidentMemoryStaysBelowTheBudget) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "a sanitizer's own memory is resident too";
#endif
  const std::vector<std::string> settings[] = {
      {kLargeBatch, "model.layers=1", "model.width=64", "model.context=64",
       "train.checkpoint_interval=1"},
      {"engine.precision=bf16", "engine.accumulate=2", "engine.recompute=full"}};
  for (std::vector<std::string> job : settings) {
    const auto [planned, process] = bytes(job);
    const int64_t allowed = planned + planned / 63 + process + (1 << 18);
    job.insert(job.end(), {"run.dir=run", "train.steps=3", "engine.cache=false",
                           "engine.memory_budget=" + std::to_string(allowed)});
    int64_t resident = 0;
    const CommandResult result = train(job, [&](pid_t process_id) {
      std::ifstream status("/proc/" + std::to_string(process_id) + "/status");
      for (std::string word; status >> word;)
        if (int64_t kibibytes = 0; word == "VmHWM:" && status >> kibibytes)
          resident = std::max(resident, kibibytes * 1024);
    });
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_GT(resident, planned);
    EXPECT_LE(resident, allowed) << planned << " planned, " << process << " for the process";
    std::filesystem::remove_all(folder_ / "run");
  }
}

TEST_F(MemoryTest, ABatchIsFoundAndKept) {
  const CommandResult result = train({"train.batch_size=auto", budget(1.5)});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("memory   train.batch_size="));
  const std::string resolved = read("runs/tiny-1/config.resolved.yaml");
  EXPECT_EQ(resolved.find("batch_size: auto"), std::string::npos) << "it is not decided anew";
  const auto json = summary("runs/tiny-1");
  EXPECT_GT(json["planned_peak_bytes"].get<int64_t>(), 0);
}

TEST_F(MemoryTest, ARunDegradesToTheSameLosses) {
  const CommandResult whole = train({"run.dir=whole", kLargeBatch});
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const CommandResult less =
      train({"run.dir=less", kLargeBatch, budget(0.9), "engine.degrade=[recompute]"});
  ASSERT_EQ(less.exit_code, 0) << less.err;
  EXPECT_THAT(less.err, HasSubstr("memory   engine.recompute=auto"));
  EXPECT_LT(summary("less")["planned_peak_bytes"], summary("whole")["planned_peak_bytes"]);
  EXPECT_EQ(summary("less")["final_train_loss"], summary("whole")["final_train_loss"]);
}

// More memory at hand, or less, would otherwise make another run of it.
TEST_F(MemoryTest, ResumingDecidesNothingAnew) {
  const CommandResult started =
      train({"run.dir=run", "train.batch_size=auto", "train.steps=5", budget(1.2)});
  ASSERT_EQ(started.exit_code, 0) << started.err;
  const Config settled = load_config(folder_ / "run/config.resolved.yaml");
  EXPECT_EQ(load_config(folder_ / "run/config.given.yaml").train.batch_size, 0);

  const CommandResult resumed =
      train({"run.dir=run", "train.batch_size=auto", "train.steps=10", budget(1.8), "--resume"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr(fmt::format("memory   train.batch_size={}: as the run has",
                                                 settled.train.batch_size)));
  EXPECT_THAT(resumed.err, Not(HasSubstr("changed  train.batch_size")));
  const Config after = load_config(folder_ / "run/config.resolved.yaml");
  EXPECT_EQ(after.train.batch_size, settled.train.batch_size);

  const CommandResult explicit_batch =
      train({"run.dir=run", "train.batch_size=8", "train.steps=15", "--resume"});
  ASSERT_EQ(explicit_batch.exit_code, 0) << explicit_batch.err;
  EXPECT_THAT(explicit_batch.err, HasSubstr(fmt::format("changed  train.batch_size: {} -> 8",
                                                        settled.train.batch_size)));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/config.given.yaml")) << "it says the same";
}

TEST_F(MemoryTest, ResumingKeepsWhatDegraded) {
  const std::string degrade = "engine.degrade=[recompute, accumulate]";
  // Which takes the batch whole.
  const std::string no_validation = "data.validation_fraction=0";
  const CommandResult started = train({"run.dir=less", kLargeBatch, no_validation,
                                       budget(0.25, no_validation), degrade, "train.steps=10"});
  ASSERT_EQ(started.exit_code, 0) << started.err;
  const Config settled = load_config(folder_ / "less/config.resolved.yaml");
  EXPECT_EQ(settled.engine.recompute, "auto");
  EXPECT_GT(settled.engine.accumulate, 1);

  // All of the memory is there now.
  const CommandResult resumed =
      train({"run.dir=less", kLargeBatch, no_validation, degrade, "--resume"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("memory   engine.recompute=auto: as the run has been so far"));
  const Config after = load_config(folder_ / "less/config.resolved.yaml");
  EXPECT_EQ(after.engine.recompute, "auto");
  EXPECT_EQ(after.engine.accumulate, settled.engine.accumulate);

  // From the run itself there is nothing to settle, and nothing is forgotten.
  const CommandResult itself = command({"train", "less", "train.steps=25", "--resume"});
  ASSERT_EQ(itself.exit_code, 0) << itself.err;
  EXPECT_THAT(itself.err, Not(HasSubstr("memory   ")));
  EXPECT_EQ(load_config(folder_ / "less/config.given.yaml").engine.accumulate, 1);
}

// As many microbatches as the job allows, whatever the threads; the run then keeps them.
TEST_F(MemoryTest, MicrobatchesFollowFromTheJobAndAreSettledOnce) {
  const std::vector<std::string> large = {"train.batch_size=30", "model.context=16",
                                          "optim.schedule=constant"};
  const auto run = [&](const char* name, std::vector<std::string> more) {
    more.insert(more.end(), large.begin(), large.end());
    more.push_back(std::string("run.dir=") + name);
    const CommandResult result = train(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return load_config(folder_ / (std::string(name) + "/config.resolved.yaml"))
        .engine.parallel_microbatches;
  };
  EXPECT_EQ(run("two", {"engine.threads=2", "train.steps=6"}), 2);
  EXPECT_EQ(run("alone", {"engine.threads=1", "train.steps=6"}), 2);
  EXPECT_EQ(summary("alone")["final_train_loss"], summary("two")["final_train_loss"]);
  EXPECT_EQ(run("told", {"engine.threads=2", "engine.parallel_microbatches=1", "train.steps=3"}),
            1);
  EXPECT_EQ(run("told", {"engine.threads=3", "train.steps=6", "--resume"}), 1);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "two/config.given.yaml"));
}

// Microbatches that the threads could take side by side go one after another where memory is short: whoever has more
// threads makes the same steps.
TEST_F(MemoryTest, MicrobatchesGoOneAtATimeWhereMemoryIsShort) {
  ASSERT_EQ(train({"run.dir=whole", kLargeBatch}).exit_code, 0);
  const int64_t parallel =
      load_config(folder_ / "whole/config.resolved.yaml").engine.parallel_microbatches;
  EXPECT_EQ(parallel, 4);
  const std::string tight = budget(1.1);
  for (const char* threads : {"1", "2", "3"}) {
    const std::string run = std::string("tight") + threads;
    const CommandResult result =
        train({"run.dir=" + run, kLargeBatch, tight, std::string("engine.threads=") + threads});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    if (threads == std::string("1"))
      EXPECT_THAT(result.err, Not(HasSubstr("memory   ")));
    else
      EXPECT_THAT(result.err,
                  HasSubstr(std::string("memory   1 of 4 microbatches at a time, not ") + threads));
    EXPECT_EQ(load_config(folder_ / (run + "/config.resolved.yaml")).engine.parallel_microbatches,
              parallel);
    EXPECT_EQ(summary(run)["final_train_loss"], summary("whole")["final_train_loss"]);
    EXPECT_LT(summary(run)["planned_peak_bytes"], summary("whole")["planned_peak_bytes"]);
  }
}

// Each microbatch has gradients of its own, and a batch that is cut has fewer activations at a time. What is taken for
// a budget is told, is the same on any number of threads, and stays when the run goes on.
TEST_F(MemoryTest, MicrobatchesThatDoNotFitAreTold) {
  const std::vector<std::string> job = {"train.batch_size=24", "model.context=16",
                                        "model.width=512", "model.layers=1", "train.steps=3"};
  const FewProcessors few;
  const auto resident = [&](const char* parallel) {
    std::vector<std::string> settings = job;
    settings.insert(settings.end(), {parallel, "engine.threads=1"});
    const auto [planned, process] = bytes(settings);
    return planned + process;
  };
  const int64_t one = resident("engine.parallel_microbatches=1"),
                two = resident("engine.parallel_microbatches=2");
  ASSERT_LT(one, two);
  const auto run = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> settings = job;
    settings.push_back("run.dir=" + name);
    settings.insert(settings.end(), more.begin(), more.end());
    const CommandResult result = train(settings);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(load_config(folder_ / (name + "/config.resolved.yaml")).engine.parallel_microbatches,
              name == "whole" ? 2 : 1);
    return result.err;
  };
  run("whole", {});
  // What the second processor's compiler takes is not counted against two microbatches, nor there for one.
  const std::string tight = budget_of(one + (two - one) / 4);
  for (const char* threads : {"engine.threads=1", "engine.threads=2"}) {
    const std::string name = std::string("tight") + threads;
    EXPECT_THAT(run(name, {tight, threads}),
                HasSubstr("memory   engine.parallel_microbatches=1: 2 would not keep to "));
    EXPECT_THAT(run(name, {tight, threads, "train.steps=6", "--resume"}),
                Not(HasSubstr("memory   ")));
  }
  run("tightengine.threads=1", {"train.steps=9", "--resume"});
}

TEST_F(MemoryTest, WrongBudgetsAreRefusedWithTheirPlace) {
  const CommandResult result = train({"engine.memory_budget=lots"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("engine.memory_budget is 'lots'; bytes such as 6GiB"));
  EXPECT_EQ(train({"engine.degrade=[recompute, offload]"}).exit_code, 2);
  EXPECT_EQ(train({"train.batch_size=auto", "engine.accumulate=auto"}).exit_code, 2);
}

// Their budget of tokens settles batches of buckets: nothing is left to solve.
TEST_F(MemoryTest, ABatchOfSoManyTokensIsNotSolved) {
  const std::vector<std::string> buckets = {"train", "job.yaml", "data.path=" + put_documents(),
                                            "data.batching=buckets", "train.batch_size=auto"};
  std::vector<std::string> by_tokens = buckets;
  by_tokens.emplace_back("data.tokens_per_batch=64");
  const CommandResult refused = command(by_tokens);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("train.batch_size auto (command line) cannot be solved"));
  EXPECT_THAT(refused.err, HasSubstr("set data.tokens_per_batch=0"));
  std::vector<std::string> solved = buckets;
  solved.push_back(budget(4));  // every shape of batch has programs of its own
  EXPECT_EQ(command(solved).exit_code, 0);
}

TEST_F(MemoryTest, TheNoiseScaleGetsAnEvenBatch) {
  const CommandResult result =
      train({"train.batch_size=auto", "optim.noise_scale=true", budget(1.5)});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(load_config(folder_ / "runs/tiny-1/config.resolved.yaml").train.batch_size % 2, 0);
}

}  // namespace
}  // namespace fullbore
