#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/attribution_test.h"
#include "tests/support/detail_test.h"
#include "tests/support/job.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

constexpr const char* kRelative =
    "data: {pairs: 64, validation_pairs: 16}\n"
    "model: {name: energy_flow, embedding_width: 32, carrier_hidden: 16, neuron_hidden: 8,\n"
    "  neuron_outputs: 8, head_hidden: 8}\n"
    "lattice: {width: 5, height: 4, depth: 8, capacity: 128, spawn_threshold: 0.05, tile_rows: "
    "16,\n"
    "  displacement_scale: 6, least_displacement_scale: 6, early_stop: false}\n"
    "optim: {schedule: constant, warmup_steps: 0, learning_rate: 1e-3}\n"
    "train: {steps: 6, batch_size: 4, eval_interval: 3, checkpoint_interval: 3}\n"
    "log: {interval: 1}\n";
constexpr const char* kAbsolute =
    "data: {pairs: 64, validation_pairs: 16}\n"
    "model: {name: energy_flow, embedding_width: 32, carrier_hidden: 16, neuron_hidden: 8,\n"
    "  neuron_outputs: 8, head_hidden: 8, dropout: 0.1, position_z_bias: -0.25}\n"
    "lattice: {mode: absolute, width: 5, height: 4, depth: 9, capacity: 100, spawn_threshold: "
    "0.4,\n"
    "  most_spawned: 2, project_on_stop: false, noise: 0.5, final_noise: 0.3, z_bias: 1,\n"
    "  z_bias_per_age: 0.1, early_stop: false}\n"
    "optim: {schedule: constant, warmup_steps: 0, learning_rate: 1e-3}\n"
    "train: {steps: 6, batch_size: 4, eval_interval: 3, checkpoint_interval: 3}\n"
    "engine: {accumulate: 2}\n"
    "log: {interval: 1}\n";

class EnergyTrain : public JobTest {
 protected:
  EnergyTrain() {
    folder_.put("relative.yaml", kRelative);
    folder_.put("absolute.yaml", kAbsolute);
  }
  CommandResult train_in(const std::string& run, const std::string& config,
                         const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"train", config, "run.dir=" + run};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return command(arguments);
  }
  std::string weights(const std::string& run) const {
    return read(run + "/checkpoints/last/weights.safetensors");
  }
};

TEST_F(EnergyTrain, IsDiagnosed) {
  testing::expect_all_time_attributed(folder_, {"relative.yaml"});
}

TEST_F(EnergyTrain, DetailThatNobodyWantsIsNotComputed) {
  testing::expect_detail_is_not_computed(folder_, {"relative.yaml"});
}

// A17, and A12 in every step.
TEST_F(EnergyTrain, ResumesToTheSameBitsAndLosesNoFlow) {
  for (const std::string config : {"relative.yaml", "absolute.yaml"}) {
    const std::string whole = "whole-" + config, parts = "parts-" + config;
    const CommandResult result = train_in(whole, config);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("the synthetic corpus 42: 64 to train on, 16 held out"));
    ASSERT_EQ(train_in(parts, config, {"train.steps=3"}).exit_code, 0);
    const CommandResult rest = train_in(parts, config, {"--resume"});
    ASSERT_EQ(rest.exit_code, 0) << rest.err;
    EXPECT_TRUE(weights(whole) == weights(parts)) << config;
    double spawned = 0, completed = 0, dropped = 0;
    int steps = 0;
    for (const nlohmann::json& line : metrics(whole)) {
      if (line["kind"] != "train") continue;
      ++steps;
      EXPECT_EQ(line["unaccounted"], 0) << line;
      EXPECT_GT(line["surface_loss"], 0);
      EXPECT_GT(line["steps"], 0);
      spawned += line["spawned"].get<double>();
      completed += line["completed"].get<double>();
      dropped += line["dropped"].get<double>();
    }
    EXPECT_EQ(steps, 6);
    // All that is to be counted occurs.
    EXPECT_GT(spawned, 0) << config;
    EXPECT_GT(completed, 0) << config;
    EXPECT_GE(dropped, 0) << config;
  }
}

TEST_F(EnergyTrain, NeitherThreadsNorTilesNorSegmentsChangeTheBits) {
  ASSERT_EQ(train_in("one", "relative.yaml", {"engine.threads=1"}).exit_code, 0);
  ASSERT_EQ(train_in("three", "relative.yaml", {"engine.threads=3"}).exit_code, 0);
  EXPECT_TRUE(weights("one") == weights("three"));
  ASSERT_EQ(train_in("segments", "relative.yaml", {"lattice.segments=2"}).exit_code, 0);
  EXPECT_TRUE(weights("one") == weights("segments"));
}

TEST_F(EnergyTrain, LearnsFromAFileOfPairs) {
  ASSERT_EQ(command({"energy", "generate", "-o", "pairs.efb", "--pairs", "40", "--width", "32"})
                .exit_code,
            0);
  const CommandResult result = train_in("run", "relative.yaml", {"data.path=pairs.efb"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("pairs.efb: 36 to train on, 4 held out"));
  const CommandResult wrong =
      train_in("other", "relative.yaml", {"data.path=pairs.efb", "model.embedding_width=33"});
  EXPECT_EQ(wrong.exit_code, 3) << wrong.err;
  EXPECT_THAT(wrong.err, HasSubstr("pairs.efb"));
}

TEST_F(EnergyTrain, ACheckpointOfAnotherGeometryIsRefused) {
  ASSERT_EQ(train_in("run", "relative.yaml", {"train.steps=2"}).exit_code, 0);
  const CommandResult wrong =
      train_in("run", "relative.yaml", {"--resume", "train.steps=4", "lattice.depth=10"});
  EXPECT_NE(wrong.exit_code, 0);
  EXPECT_THAT(wrong.err, HasSubstr("relative 5x4x8"));
  EXPECT_THAT(wrong.err, HasSubstr("relative 5x4x10"));
  // What is no part of the model may differ.
  const CommandResult right =
      train_in("run", "relative.yaml", {"--resume", "train.steps=4", "lattice.capacity=200"});
  EXPECT_EQ(right.exit_code, 0) << right.err;
}

}  // namespace
}  // namespace fullbore
