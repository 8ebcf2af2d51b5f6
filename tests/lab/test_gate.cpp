#include "fullbore/lab/quality/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "fullbore/base/error.h"
#include "fullbore/lab/quality/item_comparison.h"
#include "fullbore/monitor/json_lines.h"
#include "fullbore/monitor/run_summary.h"
#include "fullbore/train/config.h"
#include "fullbore/train/run_directory.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

const QualityMetrics kMetrics = {
    {.name = "loss", .unit = "nats", .margin = 0.05, .source = "a test"},
    {.name = "perplexity",
     .margin = std::expm1(0.05),
     .is_relative = true,
     .recorded = "loss",
     .scale = MetricScale::exponential},
    {.name = "gain", .better = Better::higher, .margin = 0.1, .is_of_training = true}};

/// What finished runs leave in a folder.
class Gate : public ::testing::Test {
 protected:
  std::string put_run(const std::string& name, int64_t seed, double loss,
                      const std::vector<std::string>& settings = {},
                      const std::string& status = "completed") const {
    std::string folder = folder_ / name;
    std::filesystem::create_directories(folder);
    std::vector<std::string> all = {fmt::format("run.seed={}", seed)};
    all.insert(all.end(), settings.begin(), settings.end());
    const Config config = parse_config("train: {steps: 100}", "test", all);
    RunSummary summary;
    summary.status = status;
    summary.steps = config.train.steps;
    write_summary(folder + "/summary.json", summary).take_or_throw();
    JsonLines lines = JsonLines::open(folder + "/metrics.jsonl").take_or_throw();
    for (const int64_t step : {50, 95, 100})
      lines
          .write({{"kind", "train"},
                  {"step", step},
                  {"gain", step == 50 ? 0.0 : static_cast<double>(step) / 100}})
          .take_or_throw();
    for (const int64_t step : {50, 100})
      lines
          .write({{"kind", "evaluation"},
                  {"step", step},
                  {"validation_loss", step == 100 ? loss : 9.0}})
          .take_or_throw();
    RunDirectory::open(folder).keep_config(config_yaml(config), "");
    return folder;
  }
  GateSide side(const std::string& name, const std::vector<double>& losses,
                const std::vector<std::string>& settings = {}) const {
    for (size_t i = 0; i < losses.size(); ++i)
      put_run(fmt::format("{}-{}", name, i + 1), static_cast<int64_t>(i) + 1, losses[i], settings);
    GateSide made{name, {}};
    for (const std::string& folder : run_folders(folder_ / (name + "-*")))
      made.runs.push_back(read_completed_run(folder));
    return made;
  }

  testing::ScratchFolder folder_;
};

TEST_F(Gate, RunsArePairedBySeedAndToldWithWhatDiffers) {
  const GateSide a = side("a", {1.50, 1.52, 1.49, 1.51});
  const GateSide b = side("b", {1.51, 1.525, 1.495, 1.515, 1.6}, {"engine.precision=bf16"});
  const GateReport report = gate(a, b, kMetrics);
  EXPECT_EQ(report.seeds, (std::vector<int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(report.test.verdict, Verdict::passed);
  EXPECT_NEAR(report.test.metrics[0].difference, 0.00625, 1e-12);
  EXPECT_NEAR(report.test.metrics[1].mean_a, 4.5, 0.1);
  EXPECT_NEAR(report.test.metrics[2].mean_a, (0.95 + 1) / 2, 1e-9) << "the last tenth of the steps";
  ASSERT_EQ(report.differences.size(), 1U);
  EXPECT_EQ(text(report.differences[0]), "engine.precision is bf16, not fp32");
  EXPECT_THAT(report.notes, ::testing::ElementsAre("no pair for seed 5 of b"));
  const std::string words = gate_text(report);
  EXPECT_THAT(words, HasSubstr("4 pairs by seeds 1 2 3 4, of 100 steps"));
  EXPECT_THAT(words, HasSubstr("passed: B is no worse than A"));
  for (size_t at = 0, end; at < words.size(); at = end + 1) {
    end = words.find('\n', at);
    EXPECT_LE(end - at, 80U) << words.substr(at, end - at);
  }
  const nlohmann::ordered_json json = gate_json(report);
  EXPECT_EQ(json["metrics"][0]["verdict"], "passed");
  EXPECT_EQ(json["metrics"][0]["margin_source"], "a test");
}

TEST_F(Gate, WhatIsWorseFailsAndWhatIsNotRecordedDecidesNothing) {
  const GateSide a = side("a", {1.50, 1.52, 1.49});
  EXPECT_EQ(gate(a, side("b", {1.60, 1.61, 1.595}), kMetrics).test.verdict, Verdict::failed);
  QualityMetrics more = kMetrics;
  more.push_back({.name = "accuracy", .better = Better::higher, .margin = 0.01});
  const GateReport unknown = gate(a, side("c", {1.50, 1.52, 1.49}), more);
  EXPECT_EQ(unknown.test.verdict, Verdict::undecided);
  EXPECT_THAT(unknown.test.metrics.back().reason, HasSubstr("does not record validation_accuracy"));
}

TEST_F(Gate, ARunThatFailedLetsNothingPass) {
  const GateSide a = side("a", {1.50, 1.52, 1.49, 1.5});
  GateSide b = side("b", {1.50, 1.52, 1.49});
  b.failed.emplace_back(4, "exit code 4: the loss is nan");
  const GateReport report = gate(a, b, kMetrics);
  EXPECT_EQ(report.test.verdict, Verdict::undecided);
  EXPECT_EQ(report.test.metrics[0].reason, "a run of b failed (seed 4)");
}

TEST_F(Gate, RunsThatDoNotGoTogetherAreRefused) {
  const auto refusal = [](const GateSide& a, const GateSide& b) -> std::string {
    try {
      gate(a, b, kMetrics);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  const GateSide a = side("a", {1.50, 1.52});
  EXPECT_THAT(refusal(a, side("b", {1.5, 1.5}, {"train.steps=90"})),
              HasSubstr("made 100 steps and"));
  GateSide twice = a;
  twice.runs.push_back(a.runs.front());
  EXPECT_THAT(refusal(twice, a), HasSubstr("have the same run.seed, 1"));
  GateSide mixed = a;
  mixed.runs.push_back(read_completed_run(put_run("m", 3, 1.5, {"optim.learning_rate=0.5"})));
  EXPECT_THAT(refusal(mixed, a), HasSubstr("are of several settings: optim.learning_rate is 0.5"));
  EXPECT_THROW(read_completed_run(put_run("cut", 1, 1.5, {}, "interrupted")), DataError);
  EXPECT_THROW(run_folders(folder_ / "none-*"), UsageError);
  // What an ablation keeps of its runs are figures.
  for (const char* name : {"ablation/trials", "ablation/runs"})
    std::filesystem::create_directories(folder_ / name);
  folder_.put("ablation/plan.json", "{}");
  for (const char* name : {"ablation", "ablation/runs/seed-*"}) try {
      run_folders(folder_ / name);
      ADD_FAILURE() << name;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr("is an ablation: of its runs it keeps"));
    }
}

/// Losses of two models on the same batches: differences of 0.01 with a spread of 0.02.
MeasuredItems items(const std::string& subject, double shift, size_t count = 40) {
  MeasuredItems made{subject, "a text", "batches", {}, {{"loss", {}, {}}}};
  for (size_t i = 0; i < count; ++i) {
    made.keys.push_back(std::to_string(i));
    const double own = std::sin(static_cast<double>(i)) +
                       (shift != 0 ? 0.02 * std::cos(7.0 * static_cast<double>(i)) : 0);
    made.columns[0].values.push_back(2 + own + shift);
    made.columns[0].weights.push_back(i % 2 == 0 ? 100 : 50);
  }
  return made;
}

TEST(ItemComparison, IsOfTheSameItems) {
  const QualityMetrics metrics = {kMetrics[0], kMetrics[1], kMetrics[2]};
  const ItemComparison near = compare_items(items("b", 0.01), items("a", 0), metrics, {});
  EXPECT_EQ(near.test.verdict, Verdict::passed);
  EXPECT_NEAR(near.test.metrics[0].difference, 0.01, 0.005);
  EXPECT_LT(near.test.metrics[0].high - near.test.metrics[0].low, 0.02) << "paired";
  EXPECT_EQ(near.test.metrics.size(), 2U);
  EXPECT_EQ(near.notes.size(), 1U) << "what is of training is told";
  EXPECT_EQ(compare_items(items("b", 0.2), items("a", 0), metrics, {}).test.verdict,
            Verdict::failed);
  const ItemComparison few = compare_items(items("b", 0.01, 19), items("a", 0, 19), metrics, {});
  EXPECT_EQ(few.test.verdict, Verdict::undecided);
  EXPECT_EQ(few.test.metrics[0].reason, "19 batches: at least 20 are needed");
  MeasuredItems other = items("a", 0);
  other.keys[3] = "x";
  EXPECT_THROW(compare_items(items("b", 0), other, metrics, {}), UsageError);
  EXPECT_THROW(compare_items(items("b", 0, 39), other, metrics, {}), UsageError);
}

TEST(QualityMetrics, AreReadOffLines) {
  const nlohmann::ordered_json line = {{"kind", "evaluation"}, {"validation_loss", 2.0}};
  EXPECT_EQ(quality_of_line(kMetrics[0], line), 2.0);
  EXPECT_NEAR(quality_of_line(kMetrics[1], line).value_or(0), std::exp(2.0), 1e-12);
  EXPECT_FALSE(quality_of_line(kMetrics[2], line));
  EXPECT_TRUE(std::isnan(
      quality_of_line(kMetrics[0], {{"kind", "evaluation"}, {"validation_loss", nullptr}})
          .value_or(0)));
  EXPECT_THROW(check_quality({kMetrics[0], kMetrics[0]}), UsageError);
  EXPECT_THROW(check_quality({{.name = "loss"}}), UsageError);
}

}  // namespace
}  // namespace fullbore
