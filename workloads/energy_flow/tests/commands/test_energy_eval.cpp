#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "fullbore/base/hash.h"
#include "fullbore/ckpt/manifest.h"
#include "tests/support/job.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr const char* kModel =
    "data: {pairs: 40, validation_pairs: 16}\n"
    "model: {name: energy_flow, embedding_width: 16, carrier_hidden: 8, carrier_layers: 1,\n"
    "  neuron_hidden: 8, neuron_outputs: 8, head_hidden: 8, position_z_bias: -0.25}\n"
    "optim: {schedule: constant, warmup_steps: 0, learning_rate: 1e-3}\n"
    "train: {steps: 2, batch_size: 4, eval_interval: 1, checkpoint_interval: 2, eval_batches: 0}\n";
constexpr const char* kRelative =
    "lattice: {width: 5, height: 4, depth: 8, capacity: 800, spawn_threshold: 0.05,\n"
    "  displacement_scale: 6, least_displacement_scale: 6, stop_min_steps: 1, stop_threshold: "
    "0.6}\n";
constexpr const char* kAbsolute =
    "lattice: {mode: absolute, width: 5, height: 4, depth: 9, capacity: 100, spawn_threshold: "
    "0.4,\n"
    "  most_spawned: 2, project_on_stop: false, early_stop: false}\n";

class EnergyEval : public JobTest {
 protected:
  EnergyEval() {
    folder_.put("relative.yaml", std::string(kModel) + kRelative);
    folder_.put("absolute.yaml", std::string(kModel) + kAbsolute);
  }
  void train_in(const std::string& run, const std::string& config,
                const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"train", config, "run.dir=" + run};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult result = command(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  CommandResult eval(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"energy", "eval"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return command(arguments);
  }
  Json eval_json(std::vector<std::string> more) const {
    more.emplace_back("--json");
    const CommandResult result = eval(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out);
  }
  void generate(const std::string& file, int pairs, int first, int width = 16) const {
    const CommandResult result =
        command({"energy", "generate", "-o", file, "--pairs", std::to_string(pairs), "--first",
                 std::to_string(first), "--width", std::to_string(width)});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
};

// The trainer's validation computes the same mean by another program.
TEST_F(EnergyEval, ItsErrorIsTheLossOfTheValidation) {
  train_in("run", "relative.yaml");
  double loss = 1e9;
  double input = 0;
  for (const Json& line : metrics("run"))
    if (line["kind"] == "evaluation" && line["validation_loss"] < loss) {
      loss = line["validation_loss"];
      input = line["validation_input_loss"];
    }
  const Json json = eval_json({"run", "--pairs", "16"});
  EXPECT_NEAR(json["error"]["model"]["mean"].get<double>(), loss, 1e-5 * loss);
  EXPECT_NEAR(json["error"]["input"]["mean"].get<double>(), input, 1e-5 * input);
  EXPECT_EQ(json["pairs"], 16);
  EXPECT_EQ(json["training_pairs"], 40);
  EXPECT_EQ(json["stop_scope"], "batch");
  const Json& error = json["error"];
  EXPECT_NEAR(error["model_minus_input"]["mean"].get<double>(),
              error["model"]["mean"].get<double>() - error["input"]["mean"].get<double>(), 1e-9);
  for (const char* name : {"model", "input", "training_mean", "model_minus_mean"}) {
    EXPECT_LT(error[name]["low"], error[name]["mean"]) << name;
    EXPECT_GT(error[name]["high"], error[name]["mean"]) << name;
  }
  EXPECT_GE(json["bootstrap"]["resamples"], 2000);
}

TEST_F(EnergyEval, CountsEveryPairAndEveryFlowOnce) {
  for (const std::string config : {"relative.yaml", "absolute.yaml"}) {
    train_in("run-" + config, config);
    // 4 + 4 + 2 pairs of 20 cells.
    const Json json = eval_json({"run-" + config, "--pairs", "10", "--stop-scope", "sample"});
    const Json& flows = json["flows"];
    EXPECT_EQ(json["pairs"], 10);
    EXPECT_EQ(flows["injected"], 200) << config;
    EXPECT_EQ(flows["created"], 200 + flows["spawned"].get<int>());
    EXPECT_EQ(flows["unaccounted"], 0) << flows;
    EXPECT_GT(flows["spawned"], 0) << config;
    EXPECT_EQ(flows["by_step"][0]["active"], 200);
    EXPECT_EQ(flows["dead"].size(), config == "absolute.yaml" ? 3 : 0);
    // The same pairs from a file.
    generate(config + ".efb", 10, 40);
    const Json file =
        eval_json({"run-" + config, "--data", config + ".efb", "--stop-scope", "sample"});
    EXPECT_EQ(file["error"], json["error"]);
    EXPECT_EQ(file["flows"], json["flows"]);
  }
  EXPECT_EQ(eval_json({"run-relative.yaml", "--batches", "2"})["pairs"], 8);
}

// In the middle of two targets, which are alike far from it.
TEST_F(EnergyEval, TheTrainingMeanIsThatOfTheTrainingTargets) {
  train_in("run", "relative.yaml", {"data.pairs=2"});
  generate("first.efb", 1, 0);
  generate("second.efb", 1, 1);
  generate("both.efb", 2, 0);
  const auto error = [&](const std::string& file) {
    return eval_json({"run", "--data", file})["error"]["training_mean"]["mean"].get<double>();
  };
  const double first = error("first.efb");
  EXPECT_GT(first, 1e-3);
  EXPECT_NEAR(error("second.efb"), first, 1e-6);
  EXPECT_NEAR(error("both.efb"), first, 1e-6);
}

TEST_F(EnergyEval, BySampleNoResultDependsOnCompanions) {
  train_in("run", "relative.yaml",
           {"lattice.displacement_scale=2", "lattice.least_displacement_scale=2",
            "lattice.most_spawned=0", "lattice.depth=16", "lattice.stop_threshold=0.1",
            "engine.parallel_microbatches=1"});
  generate("last.efb", 1, 49);
  const auto sum = [&](const std::string& scope, std::vector<std::string> more) {
    more.insert(more.begin(), {"run", "--stop-scope", scope});
    const Json json = eval_json(more);
    EXPECT_EQ(json["flows"]["dropped"], 0);
    return json["pairs"].get<double>() * json["error"]["model"]["mean"].get<double>();
  };
  const auto difference = [&](const std::string& scope) {
    return sum(scope, {"--pairs", "10"}) - sum(scope, {"--pairs", "9"}) -
           sum(scope, {"--data", "last.efb"});
  };
  EXPECT_NEAR(difference("sample"), 0, 1e-6);
  EXPECT_GT(std::abs(difference("batch")), 1e-4);
}

TEST_F(EnergyEval, IsWhatEvalDoes) {
  train_in("run", "relative.yaml");
  const CommandResult own = eval({"run", "--pairs", "20"});
  const CommandResult common = command({"eval", "run", "--pairs", "20"});
  EXPECT_EQ(own.exit_code, 0) << own.err;
  EXPECT_EQ(own.out, common.out);
  EXPECT_THAT(own.out, HasSubstr("the synthetic corpus 42: 20 held out, 40 trained on"));
  EXPECT_THAT(own.out, HasSubstr("a pair's result depends on its companions"));
  EXPECT_THAT(own.out, HasSubstr("model - mean"));
  EXPECT_THAT(own.out, HasSubstr("400 injected"));
  const CommandResult sample = eval({"run", "--pairs", "20", "--stop-scope", "sample"});
  EXPECT_THAT(sample.out, HasSubstr("stop scope              sample\n"));
}

TEST_F(EnergyEval, SaysWhatItCannotMeasure) {
  generate("pairs.efb", 20, 0);
  generate("wide.efb", 8, 0, 17);
  train_in("run", "relative.yaml", {"data.path=pairs.efb", "data.validation_fraction=0.2"});
  const Json json = eval_json({"run"});
  EXPECT_EQ(json["pairs"], 4);
  EXPECT_EQ(json["training_pairs"], 16);

  const CommandResult wide = eval({"run", "--data", "wide.efb"});
  EXPECT_EQ(wide.exit_code, 3) << wide.err;
  EXPECT_THAT(wide.err, HasSubstr("wide.efb"));
  EXPECT_THAT(wide.err, HasSubstr("17"));
  const CommandResult missing = eval({"run", "--data", "missing.efb"});
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_THAT(missing.err, HasSubstr("missing.efb"));
  EXPECT_EQ(eval({"nowhere"}).exit_code, 3);

  train_in("all", "relative.yaml", {"data.path=pairs.efb", "data.validation_fraction=0"});
  const CommandResult none = eval({"all"});
  EXPECT_EQ(none.exit_code, 2) << none.err;
  EXPECT_THAT(none.err, HasSubstr("held nothing out"));
  EXPECT_THAT(none.err, HasSubstr("--data FILE"));
  EXPECT_EQ(eval({"all", "--data", "pairs.efb"}).exit_code, 0);
}

TEST_F(EnergyEval, ARunThatIsDoneHasAPicture) {
  for (const std::string config : {"relative.yaml", "absolute.yaml"}) {
    const std::string run = "run-" + config;
    train_in(run, config);
    const std::string svg = read(run + "/flows.svg");
    for (const char* part : {"Flows through the lattice", "<polyline",
                             "step 1: ", "a red dog waits behind the house &gt; a dog waits"})
      EXPECT_NE(svg.find(part), std::string::npos) << part;
    const CommandResult same = command({"energy", "picture", run, "-o", "-"});
    EXPECT_EQ(same.exit_code, 0) << same.err;
    EXPECT_TRUE(same.out == svg) << config;
  }
  const std::string run = "run-relative.yaml";
  // Where the folder is a stranger's, nothing is written where its links lead.
  std::filesystem::remove(folder_ / (run + "/flows.svg"));
  std::filesystem::create_symlink(folder_.put("mine", "mine"), folder_ / (run + "/flows.svg"));
  ASSERT_EQ(command({"train", run, "--resume", "train.steps=3"}).exit_code, 0);
  EXPECT_EQ(read("mine"), "mine");
  EXPECT_TRUE(read(run + "/flows.svg").starts_with("<svg"));
  EXPECT_NE(command({"energy", "picture", run, "-o", "-", "--pair", "1"}).out,
            read(run + "/flows.svg"));
  generate("pairs.efb", 3, 0);
  const CommandResult beyond =
      command({"energy", "picture", run, "-o", "far.svg", "--pair", "3", "--data", "pairs.efb"});
  EXPECT_EQ(beyond.exit_code, 2) << beyond.err;
  EXPECT_THAT(beyond.err, HasSubstr("--pair 3: pairs.efb has no such pair"));
  EXPECT_EQ(command({"energy", "picture", run, "-o", run + "/flows.svg"}).exit_code, 2);
}

// As somebody may have made it: a whole checkpoint whose weights are of another lattice than its configuration says.
TEST_F(EnergyEval, ACheckpointOfAnotherGeometryIsRefused) {
  train_in("run", "relative.yaml");
  std::string config = read("run/checkpoints/last/config.json");
  const std::string width = "\"width\": 5";
  ASSERT_NE(config.find(width), std::string::npos);
  config.replace(config.find(width), width.size(), "\"width\": 6");
  Manifest manifest =
      parse_manifest(read(std::string("run/checkpoints/last/") + kManifestName)).take_or_throw();
  manifest["config.json"] = {config.size(), hash_text(config)};
  folder_.put("run/checkpoints/last/config.json", config);
  folder_.put(std::string("run/checkpoints/last/") + kManifestName, encode_manifest(manifest));
  const CommandResult wide = eval({"run/checkpoints/last"});
  EXPECT_EQ(wide.exit_code, 3) << wide.err;
  EXPECT_THAT(wide.err, HasSubstr("a checkpoint of another model"));
  EXPECT_THAT(wide.err, HasSubstr("mapper."));
}

}  // namespace
}  // namespace fullbore
