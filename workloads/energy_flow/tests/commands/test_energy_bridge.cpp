// The text bridge by its commands: training alone and with a lattice, eval, and texts through both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/job.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr const char* kBridge =
    "data: {pairs: 64, validation_pairs: 8}\n"
    "model: {name: energy_bridge, embedding_width: 32}\n"
    "lattice: {width: 5, height: 4}\n"
    "bridge: {encoder: transformer, tokens: 10, width: 16, layers: 1, decoder_layers: 1, heads: "
    "2,\n"
    "  hidden: 16, memory: 16}\n"
    "optim: {schedule: constant, warmup_steps: 0, learning_rate: 3e-3}\n"
    "train: {steps: 4, batch_size: 8, eval_interval: 2, checkpoint_interval: 2}\n"
    "log: {interval: 1}\n";
constexpr const char* kFlow =
    "data: {pairs: 64, validation_pairs: 8}\n"
    "model: {name: energy_flow, embedding_width: 32, carrier_hidden: 8, carrier_layers: 1,\n"
    "  neuron_hidden: 8, neuron_outputs: 8, head_hidden: 8}\n"
    "lattice: {width: 5, height: 4, depth: 8, capacity: 128, tile_rows: 32}\n"
    "bridge: {encoder: transformer, tokens: 10, width: 16, layers: 1, decoder_layers: 1, heads: "
    "2,\n"
    "  hidden: 16, memory: 16}\n"
    "optim: {schedule: constant, warmup_steps: 0, learning_rate: 3e-3}\n"
    "train: {steps: 4, batch_size: 4, eval_interval: 2, checkpoint_interval: 2}\n"
    "log: {interval: 1}\n";

class EnergyBridge : public JobTest {
 protected:
  EnergyBridge() {
    folder_.put("bridge.yaml", kBridge);
    folder_.put("flow.yaml", kFlow);
  }
  void train_in(const std::string& run, const std::string& config,
                const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"train", config, "run.dir=" + run};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult result = command(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  std::string weights(const std::string& run) const {
    return read(run + "/checkpoints/last/weights.safetensors");
  }
};

TEST_F(EnergyBridge, TrainsAloneAndResumesToTheSameBits) {
  for (const std::string encoder : {"transformer", "dilated"}) {
    const std::string choice = "bridge.encoder=" + encoder;
    train_in("whole-" + encoder, "bridge.yaml", {choice});
    train_in("parts-" + encoder, "bridge.yaml", {choice, "train.steps=2"});
    const CommandResult rest = command({"train", "parts-" + encoder, "--resume", "train.steps=4"});
    ASSERT_EQ(rest.exit_code, 0) << rest.err;
    // There are no flows to be drawn.
    EXPECT_EQ(rest.err.find("picture"), std::string::npos) << rest.err;
    EXPECT_TRUE(weights("whole-" + encoder) == weights("parts-" + encoder));
    double first = 0, last = 0;
    for (const Json& line : metrics("whole-" + encoder)) {
      if (line["kind"] != "train") continue;
      if (first == 0) first = line["loss"];
      last = line["loss"];
    }
    EXPECT_LT(last, first);
  }
}

TEST_F(EnergyBridge, TrainsWithALatticeAndInMicrobatches) {
  train_in("one", "flow.yaml", {"engine.threads=1"});
  train_in("two", "flow.yaml", {"engine.threads=2"});
  train_in("parts", "flow.yaml", {"engine.accumulate=2"});
  EXPECT_TRUE(weights("one") == weights("two"));
  for (const std::string run : {"one", "parts"})
    for (const Json& line : metrics(run)) {
      if (line["kind"] != "train") continue;
      EXPECT_EQ(line["unaccounted"], 0);
      EXPECT_NEAR(
          line["loss"].get<double>(),
          line["surface_loss"].get<double>() + 0.15 * (line["encoder_loss"].get<double>() +
                                                       0.1 * line["decoder_loss"].get<double>()),
          1e-5);
    }
}

TEST_F(EnergyBridge, IsMeasuredOnTextsHeldOut) {
  train_in("run", "bridge.yaml");
  const CommandResult result = command({"eval", "run", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["texts"], 16);
  for (const char* key :
       {"encoder_cosine", "words_right", "texts_right", "round_trip_words_right"}) {
    EXPECT_LE(json[key]["low"], json[key]["mean"]) << key;
    EXPECT_LE(json[key]["mean"], json[key]["high"]) << key;
    EXPECT_LE(json[key]["least"], json[key]["mean"]) << key;
  }
  EXPECT_THAT(command({"eval", "run"}).out, HasSubstr("words right, both ways"));
  EXPECT_THAT(command({"eval", "run", "--stop-scope", "sample"}).err, HasSubstr("has none"));
}

// What is written does not depend on what is written beside it, and not on what is remembered.
TEST_F(EnergyBridge, WritesTextsOneByOneAsInBatches) {
  train_in("flow", "flow.yaml");
  train_in("bridge", "bridge.yaml");
  folder_.put("texts.txt", "a red cat sings\nthe dog is old\n\na red cat sings\n");
  for (const std::string run : {"flow", "bridge"}) {
    const CommandResult batch =
        command({"energy", "translate", run, "--input", "texts.txt", "--batch", "4"});
    ASSERT_EQ(batch.exit_code, 0) << batch.err;
    const CommandResult single =
        command({"energy", "translate", run, "--input", "texts.txt", "--batch", "1"});
    ASSERT_EQ(single.exit_code, 0) << single.err;
    EXPECT_THAT(single.err, HasSubstr("4 texts, "));
    EXPECT_EQ(std::ranges::count(batch.out, '\n'), 4);
    // Without corrections, whose draws go by rows.
    const auto greedy = [&](const std::string& rows, const std::string& remembered) {
      return command({"energy", "translate", run, "--input", "texts.txt", "--batch", rows,
                      "--correction-steps", "0", "--cache", remembered})
          .out;
    };
    EXPECT_EQ(greedy("4", "100"), greedy("1", "0"));
  }
  const CommandResult measured = command({"eval", "flow", "--pairs", "8", "--json"});
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  const Json overlap = Json::parse(measured.out)["word_overlap"];
  EXPECT_GE(overlap["mean"], 0);
  EXPECT_LE(overlap["mean"], 1);
  const CommandResult cut = command({"energy", "translate", "bridge",
                                     "a red cat sings above the river by the old house near it"});
  EXPECT_THAT(cut.err, HasSubstr("1 texts have more than 10 tokens"));
  const CommandResult json = command({"energy", "translate", "bridge", "the dog", "--json"});
  EXPECT_EQ(Json::parse(json.out)["text"], "the dog");
}

TEST_F(EnergyBridge, WhatItCannotDoIsSaid) {
  const auto expect_refused = [&](const CommandResult& result, int code, const std::string& text) {
    EXPECT_EQ(result.exit_code, code) << result.err;
    EXPECT_THAT(result.err, HasSubstr(text));
  };
  train_in("bare", "flow.yaml", {"bridge.encoder=none"});
  expect_refused(command({"energy", "translate", "bare", "a"}), 2,
                 "has no text bridge: it was trained with bridge.encoder=none");
  expect_refused(command({"energy", "translate", "bare"}), 2, "texts, or a file of them");
  expect_refused(command({"train", "bridge.yaml", "bridge.encoder=none"}), 2,
                 "bridge.encoder none");
  expect_refused(command({"train", "bridge.yaml", "bridge.width=15"}), 2, "bridge.width 15");
  expect_refused(command({"train", "bridge.yaml", "bridge.tokenizer=missing.json"}), 3,
                 "missing.json");
  // JSON lines without texts.
  std::string lines;
  for (int i = 0; i < 40; ++i) {
    lines += R"({"target": [1)";
    for (int j = 1; j < 32; ++j) lines += ", 0";
    lines += "]}\n";
  }
  folder_.put("vectors.jsonl", lines);
  expect_refused(command({"train", "bridge.yaml", "data.path=vectors.jsonl"}), 3,
                 "not all records have a text, which the text bridge needs");
}

}  // namespace
}  // namespace fullbore
