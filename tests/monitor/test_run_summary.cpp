#include "fullbore/monitor/run_summary.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>

#include "fullbore/base/files.h"
#include "fullbore/monitor/step_meter.h"
#include "fullbore/monitor/summary_file.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

TEST(RunSummary, HoldsEveryPromisedKeyAndUnknownIsNull) {
  RunSummary summary;
  summary.status = "completed";
  summary.steps = 20;
  summary.final_train_loss = 2.5;
  const std::string path = ::testing::TempDir() + "fullbore_summary.json";
  ASSERT_TRUE(write_summary(path, summary).ok());
  const auto json = nlohmann::json::parse(read_file(path).value());
  std::filesystem::remove(path);
  for (const char* key : {"status", "steps", "final_train_loss", "final_validation_loss",
                          "best_validation_loss", "tokens_per_second", "utilisation", "peak_bytes",
                          "planned_peak_bytes", "seconds_to_first_step", "wall_seconds"})
    EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_EQ(json["status"], "completed");
  EXPECT_EQ(json["steps"], 20);
  EXPECT_EQ(json["final_train_loss"], 2.5);
  EXPECT_TRUE(json["best_validation_loss"].is_null());
  EXPECT_FALSE(json.contains("error"));
  EXPECT_FALSE(json.contains("made_by")) << "nobody said what made the steps";
}

TEST(RunSummary, TellsWhatMadeTheSteps) {
  RunSummary summary;
  summary.maker = {"0a1b", "cpu", "a processor", "avx2", 4};
  EXPECT_EQ(to_json(summary)["made_by"].dump(),
            R"({"build":"0a1b","device":"cpu","hardware":"a processor","processor":"avx2",)"
            R"("workers":4})");
}

TEST(RunSummary, ErrorTextNeedNotBeUtf8) {
  RunSummary summary;
  summary.error = "bad \xff byte";
  const std::string path = ::testing::TempDir() + "fullbore_summary_error.json";
  ASSERT_TRUE(write_summary(path, summary).ok());
  const auto json = nlohmann::json::parse(read_file(path).value());
  std::filesystem::remove(path);
  EXPECT_EQ(json["error"], "bad \xef\xbf\xbd byte");
}

TEST(RunSummary, IsReadBackAndEveryDamageIsTold) {
  const testing::ScratchFolder folder;
  const std::string path = folder / "summary.json";
  RunSummary summary;
  summary.status = "completed";
  summary.metric_lines = 12;
  summary.log_bytes = 5;
  summary.log_checksum = checksum_of_start(folder.put("log.txt", "a log, and more"), 5).value();
  ASSERT_TRUE(write_summary(path, summary).ok());
  const SummaryFile whole = read_summary(path).take_or_throw();
  EXPECT_TRUE(whole.is_checked);
  EXPECT_FALSE(whole.json.contains("xxhash64"));
  EXPECT_EQ(whole.json["metric_lines"], 12);
  const std::string text = read_file(path).value();
  for (size_t at = 0; at < text.size(); ++at) {
    for (const std::string& other :
         {text.substr(0, at), std::string(text).erase(at, 1), std::string(text).insert(at, "1")}) {
      folder.put("summary.json", other);
      ASSERT_FALSE(read_summary(path).ok()) << other;
    }
  }
  folder.put("summary.json", "{\"status\": \"completed\"}");
  EXPECT_FALSE(read_summary(path).take_or_throw().is_checked) << "of an older version";
  EXPECT_EQ(checksum_of_start(folder.put("log.txt", "a log"), 5).value(), summary.log_checksum);
  EXPECT_NE(checksum_of_start(folder.put("log.txt", "a lag"), 5).value(), summary.log_checksum);
  EXPECT_FALSE(checksum_of_start(folder.put("log.txt", "a lo"), 5).ok());
}

TEST(StepMeter, RatesAreOverallAndRecent) {
  StepMeter meter;
  EXPECT_EQ(meter.whole().steps_per_second(), 0);
  EXPECT_EQ(meter.whole().wait_share(), 0);
  for (int i = 0; i < 100; ++i) meter.add({.step_seconds = 0.75, .wait_seconds = 0.25});
  EXPECT_DOUBLE_EQ(meter.whole().steps_per_second(), 1);
  EXPECT_NEAR(meter.recent().steps_per_second(), 1, 1e-12);
  EXPECT_DOUBLE_EQ(meter.whole().wait_share(), 0.25);
  for (int i = 0; i < 300; ++i) meter.add({.step_seconds = 0.1});
  EXPECT_NEAR(meter.recent().steps_per_second(), 10, 0.1) << "30 s are ten half-lives";
  EXPECT_NEAR(meter.recent().wait_share(), 0, 1e-3);
  EXPECT_NEAR(meter.whole().steps_per_second(), 400.0 / 130, 1e-9);
  EXPECT_EQ(meter.steps(), 400);
}

// Steps of different sizes: each counts for what it did.
TEST(StepMeter, WorkIsSummedStepByStep) {
  StepMeter meter;
  meter.add({.step_seconds = 1, .tokens = 100, .flops = 1e9});
  meter.add({.step_seconds = 3, .tokens = 20, .flops = 5e9});
  EXPECT_DOUBLE_EQ(meter.whole().tokens_per_second(), 30);
  EXPECT_DOUBLE_EQ(meter.whole().flops_per_second(), 1.5e9);
  for (int i = 0; i < 100; ++i) meter.add({.step_seconds = 1, .tokens = 7, .flops = 2});
  EXPECT_NEAR(meter.recent().tokens_per_second(), 7, 1e-3);
  EXPECT_NEAR(meter.recent().flops_per_second(), 2, 1);
}

}  // namespace
}  // namespace fullbore
