#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/attribution_test.h"
#include "tests/support/detail_test.h"
#include "tests/support/job.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Diagnose : public JobTest {
 protected:
  nlohmann::json diagnose(const std::string& run) {
    const CommandResult result = command({"diagnose", run, "--json", "-"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out, nullptr, false);
  }
  static std::vector<std::string> rows_of(const nlohmann::json& attribution,
                                          const std::string& phase) {
    std::vector<std::string> found;
    for (const nlohmann::json& row : attribution["rows"])
      if (row["phase"] == phase) found.push_back(row["what"]);
    return found;
  }
};

TEST_F(Diagnose, AConfigurationIsMeasuredAndNothingIsLeftBehind) {
  const auto before = folder_contents(folder_.path());
  const nlohmann::json json = testing::expect_all_time_attributed(
      folder_, {"job.yaml", "data.path=text.txt", "train.steps=1000", "engine.recompute=auto",
                "model.dropout=0"});
  EXPECT_EQ(folder_contents(folder_.path()), before);
  EXPECT_EQ(json["steps"], 4);
  EXPECT_GT(json["launches_per_step"], 10);
  EXPECT_THAT(rows_of(json["measured"], "step"), ::testing::Contains("packed_attention"));
  EXPECT_THAT(rows_of(json["measured"], "start"), ::testing::Contains("compile"));
  EXPECT_THAT(rows_of(json["measured"], "evaluation"), ::testing::SizeIs(1));
  EXPECT_THAT(rows_of(json["measured"], "checkpoint"), ::testing::Contains("save"));
  // Steps count a thousand times in the whole run, the start once.
  EXPECT_GT(json["whole_run"]["wall_seconds"], json["measured"]["wall_seconds"]);
  ASSERT_EQ(json["inactive_switches"].size(), 1U) << json["inactive_switches"];
  EXPECT_EQ(json["inactive_switches"][0]["setting"], "engine.recompute=auto");
  EXPECT_EQ(json["parameters_without_gradient"].size(), 0U);
}

TEST_F(Diagnose, ARunIsReadWithItsSamples) {
  ASSERT_EQ(train({"log.detail=debug-performance", "log.interval=1"}).exit_code, 0);
  const nlohmann::json json = diagnose("runs/tiny-1");
  EXPECT_NEAR(json["measured"]["attributed_share"].get<double>(), 1, 0.01);
  EXPECT_THAT(rows_of(json["measured"], "step"), ::testing::Contains("layers.attention"));
  EXPECT_EQ(json["steps"], 20);
  EXPECT_FALSE(json.contains("whole_run"));
  EXPECT_GT(json["additions"]["samples"]["text_distinct_four_grams"], 0);
  EXPECT_EQ(json["additions"]["samples"]["invalid_characters"], 0);
  EXPECT_EQ(json["notes"].size(), 0U) << json["notes"];
  // Some steps made now tell the kernels; the seconds stay those of the run.
  ASSERT_EQ(
      command({"diagnose", "runs/tiny-1", "--steps", "3", "--json", "kernels.json"}).exit_code, 0);
  const nlohmann::json kernels = nlohmann::json::parse(read("kernels.json"));
  EXPECT_NEAR(kernels["measured"]["attributed_share"].get<double>(), 1, 0.01);
  EXPECT_THAT(rows_of(kernels["measured"], "step"), ::testing::Contains("matmul"));
  EXPECT_THAT(rows_of(kernels["measured"], "step"),
              ::testing::Not(::testing::Contains("layers.attention")));
  EXPECT_THAT(kernels["notes"][0].get<std::string>(), HasSubstr("made now on this machine"));
  const CommandResult text = command({"diagnose", "runs/tiny-1"});
  EXPECT_THAT(text.out, HasSubstr("Bottleneck: "));
  EXPECT_THAT(text.out, HasSubstr("distinct 4-grams"));
  std::istringstream lines(text.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

// A language model has no metrics but those of the engine.
TEST_F(Diagnose, DetailThatNobodyWantsIsNotComputed) {
  testing::expect_detail_is_not_computed(folder_,
                                         {"job.yaml", "data.path=text.txt", "optim.norms=groups"});
}

TEST_F(Diagnose, WhatCannotBeDiagnosedIsRefusedWithTheReason) {
  ASSERT_EQ(train({"train.steps=2"}).exit_code, 0);
  const CommandResult setting = command({"diagnose", "runs/tiny-1", "data.workers=2"});
  EXPECT_EQ(setting.exit_code, 2);
  EXPECT_THAT(setting.err, HasSubstr("is a run, which is over"));
  const CommandResult none = command({"diagnose", "runs"});
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_THAT(none.err, HasSubstr("runs/summary.json"));
  std::filesystem::create_directories(folder_ / "old");
  folder_.put("old/summary.json", "{\"status\": \"completed\", \"wall_seconds\": 3}\n");
  const CommandResult old = command({"diagnose", "old"});
  EXPECT_EQ(old.exit_code, 3);
  EXPECT_THAT(old.err, HasSubstr("old/summary.json: it has no phase_seconds"));
  EXPECT_EQ(command({"diagnose", "job.yaml", "--steps", "1"}).exit_code, 2);
  // What is damaged of a run that is otherwise there is told, and the rest goes on.
  std::filesystem::remove_all(folder_ / "runs/tiny-1/checkpoints");
  std::filesystem::remove(folder_ / "runs/tiny-1/metrics.jsonl");
  const nlohmann::json json = diagnose("runs/tiny-1");
  EXPECT_GE(json["notes"].size(), 3U) << json["notes"];
  EXPECT_THAT(json["notes"].dump(), HasSubstr("metrics.jsonl"));
}

}  // namespace
}  // namespace fullbore
