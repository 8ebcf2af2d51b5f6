#include "fullbore/monitor/experiment_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

ExperimentRecord record(double throughput, double loss) {
  ExperimentRecord made;
  made.name = "made";
  made.batch_size = 16;
  made.seq_len = 256;
  made.throughput_tok_s = throughput;
  made.final_loss = loss;
  return made;
}

TEST(ExperimentRecord, IsComparedWithItsBaseline) {
  const VersusBaseline versus = versus_baseline(record(65000, 1.35), record(33000, 1.37));
  EXPECT_EQ(versus.speedup, 1.97);
  EXPECT_NEAR(versus.loss_delta, -0.02, 1e-12);
}

TEST(ExperimentRecord, MustBeConsistentWithinTwoPerCent) {
  ExperimentRecord made = record(65000, 1.35);
  EXPECT_FALSE(inconsistency(made)) << "the time of a step is not known";
  made.time_per_step_ms = 32.5;
  EXPECT_THAT(inconsistency(made).value_or(""),
              HasSubstr("are 2112 tokens a step, not 16 x 256: a step would take 63.0 ms"));
  made.time_per_step_ms = 63.0 * 1.019;
  EXPECT_FALSE(inconsistency(made));
  made.time_per_step_ms = 63.0 * 0.979;
  EXPECT_TRUE(inconsistency(made));
}

TEST(ExperimentRecord, TheGateIsOfTheLoss) {
  EXPECT_TRUE(quality_gate(record(1, 1.42), record(1, 1.37)).passed);
  EXPECT_FALSE(quality_gate(record(1, 1.43), record(1, 1.37)).passed);
  EXPECT_TRUE(quality_gate(record(1, 1.43), record(1, 1.37)).flags.empty());
  EXPECT_EQ(quality_gate(record(1, 1.6), record(1, 1.37)).flags.size(), 1U);
  EXPECT_FALSE(quality_gate(record(1, NAN), record(1, 1.37)).known);
  EXPECT_TRUE(quality_gate(record(1, 0.5), record(1, 1.37)).passed) << "no better loss fails";
  // Where both have one it is the validation loss.
  ExperimentRecord now = record(1, 9), then = record(1, 1);
  now.val_loss = then.val_loss = 2;
  EXPECT_TRUE(quality_gate(now, then).passed);
  then.val_loss = 1.9;
  EXPECT_FALSE(quality_gate(now, then).passed);
}

TEST(ExperimentRecord, HasWhatSensorsTellAndIsReadBackWithIt) {
  SensorSummary sensors;
  sensors.watts = 130;
  sensors.highest_celsius = 71;
  sensors.device_mib = 1000;
  sensors.throttled = 1;
  ExperimentRecord made = record(65000, 1.35);
  take_sensors(sensors, made);
  EXPECT_EQ(made.energy_j_per_token, 0.002);
  EXPECT_TRUE(std::isnan(made.gpu_util_pct)) << "no device tells how busy it is";
  ExperimentRecord cool = made;
  cool.throttled = 0;
  cool.temp_c = 61;
  const testing::ScratchFolder folder;
  nlohmann::ordered_json json = to_json(mean_of({made, cool}), nullptr);
  EXPECT_TRUE(json["metrics"]["gpu_util_pct"].is_null());
  json["metrics"]["time_per_step_ms"] = 63.0;
  const ExperimentRecord back =
      read_experiment_record(folder.put("record.json", json.dump())).take_or_throw();
  EXPECT_EQ(back.power_w, 130);
  EXPECT_EQ(back.temp_c, 66);
  EXPECT_EQ(back.vram_mb, 1048.576);
  EXPECT_EQ(back.throttled, 0.5);
}

TEST(ExperimentRecord, IsComparedWithItsLikeAlone) {
  ExperimentRecord now = record(1, 1), then = record(1, 1);
  EXPECT_TRUE(record_differences(now, then).refused.empty()) << "of older versions";
  then.batch_size = 8;
  EXPECT_EQ(record_differences(now, then).refused.size(), 1U);
  then.batch_size = now.batch_size;
  now.settings = then.settings = {{"engine.precision", "fp32"}, {"optim.name", "adamw"}};
  now.settings["engine.precision"] = "bf16";
  RecordDifferences differences = record_differences(now, then);
  EXPECT_TRUE(differences.refused.empty());
  EXPECT_THAT(differences.told, ::testing::ElementsAre("engine.precision is bf16, not fp32"));
  now.settings["optim.name"] = "muon";
  now.steps = 10;
  then.steps = 20;
  now.data = "one";
  then.data = "other";
  differences = record_differences(now, then);
  EXPECT_THAT(differences.refused,
              ::testing::ElementsAre("optim.name is muon, not adamw", "the data is one, not other",
                                     "steps is 10, not 20"));
}

TEST(ExperimentRecord, SamplesAreCountedWhereThereAreNoSequences) {
  ExperimentRecord made = record(ExperimentRecord::kUnknown, 1);
  made.seq_len = 0;
  made.throughput_samples_s = 160;
  made.time_per_step_ms = 100;
  EXPECT_TRUE(can_be_inconsistent(made));
  EXPECT_FALSE(inconsistency(made));
  made.time_per_step_ms = 120;
  EXPECT_THAT(inconsistency(made).value_or(""), HasSubstr("are 19 samples a step, not 16"));
}

TEST(ExperimentRecord, RepeatsAreAveraged) {
  std::vector<ExperimentRecord> runs = {record(10, 1), record(20, 3), record(30, 5)};
  for (ExperimentRecord& run : runs)
    run.time_per_step_ms = 1000 * static_cast<double>(run.tokens_per_step()) / run.throughput_tok_s;
  const ExperimentRecord mean = mean_of(runs);
  EXPECT_NEAR(mean.throughput_tok_s, 3 / (1.0 / 10 + 1.0 / 20 + 1.0 / 30), 1e-9);
  EXPECT_FALSE(inconsistency(mean)) << "however much the runs differ";
  EXPECT_NEAR(mean.final_loss, 3, 1e-9);
  EXPECT_EQ(mean.repeats, 3);
}

TEST(ExperimentRecord, IsReadAsItWasWritten) {
  const testing::ScratchFolder folder;
  ExperimentRecord made = record(65000, 1.35);
  made.time_per_step_ms = 63;
  made.precision = "bf16";
  made.fused = false;
  made.rng_key = int64_t{1} << 40;
  made.settings = {{"engine.precision", "bf16"}};
  made.throughput_samples_s = 7;
  const ExperimentRecord baseline = record(33000, 1.37);
  const nlohmann::ordered_json json = to_json(made, &baseline);
  EXPECT_EQ(json["vs_baseline"]["speedup"], 1.97);
  EXPECT_EQ(json["gate"], "passed");
  EXPECT_TRUE(json["metrics"]["val_loss"].is_null());
  EXPECT_TRUE(json["consistent"]);
  folder.put("record.json", json.dump());
  const ExperimentRecord read =
      read_experiment_record(folder.path() + "/record.json").take_or_throw();
  EXPECT_EQ(to_json(read, &baseline), json);
}

TEST(ExperimentRecord, SaysWhatIsMissing) {
  const testing::ScratchFolder folder;
  const auto message = [&](const std::string& text) {
    folder.put("record.json", text);
    return read_experiment_record(folder.path() + "/record.json").error();
  };
  EXPECT_THAT(message("[]"), HasSubstr("record.json: is no JSON object"));
  EXPECT_THAT(message("{}"), HasSubstr("has no field 'name'"));
  EXPECT_THAT(message(R"({"name": "x"})"), HasSubstr("has no object 'config'"));
  EXPECT_THAT(message(R"({"name": "x", "config": {"batchsize": 1}, "metrics": {}})"),
              HasSubstr("config has no field 'batch_size'. Did you mean 'batchsize'?"));
  EXPECT_THAT(message(R"({"name": "x", "config": {"batch_size": 1.5}, "metrics": {}})"),
              HasSubstr("config 'batch_size' is not a whole number"));
  // A product of two such numbers would be none.
  EXPECT_THAT(message(R"({"name": "x", "config": {"batch_size": 4294967296}, "metrics": {}})"),
              HasSubstr("config 'batch_size' is not in [0, 1000000000]"));
  EXPECT_THAT(message(R"({"name": "x", "repeats": -1})"),
              HasSubstr("'repeats' is not in [0, 1000000000]"));
}

}  // namespace
}  // namespace fullbore
