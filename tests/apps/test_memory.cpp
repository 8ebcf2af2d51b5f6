#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/apps/job.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

/// Activations, not State, are most of what the job takes.
const std::string kLargeBatch = "train.batch_size=64";

class MemoryTest : public JobTest {
 protected:
  CommandResult plan(std::vector<std::string> settings) const {
    settings.insert(settings.begin(), {"plan", "job.yaml", "--json", "data.path=text.txt"});
    return command(settings);
  }
  std::string budget(double share) const {
    const auto bytes =
        nlohmann::json::parse(plan({kLargeBatch}).out)["planned_peak_bytes"].get<int64_t>();
    return "engine.memory_budget=" +
           std::to_string(static_cast<int64_t>(share * static_cast<double>(bytes)));
  }
};

TEST_F(MemoryTest, WhatDoesNotFitIsRefusedBeforeAnythingIsCreated) {
  const auto before = folder_contents(folder_.path());
  const CommandResult result = train({kLargeBatch, budget(0.8)});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err,
              HasSubstr("are allowed (engine.memory_budget). What would fit, cheapest"));
  EXPECT_THAT(result.err, HasSubstr("% time per sequence"));
  EXPECT_EQ(folder_contents(folder_.path()), before);
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

TEST_F(MemoryTest, WrongBudgetsAreRefusedWithTheirPlace) {
  const CommandResult result = train({"engine.memory_budget=lots"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("engine.memory_budget is 'lots'; bytes such as 6GiB"));
  EXPECT_EQ(train({"engine.degrade=[recompute, offload]"}).exit_code, 2);
  EXPECT_EQ(train({"train.batch_size=auto", "engine.accumulate=auto"}).exit_code, 2);
}

}  // namespace
}  // namespace fullbore
