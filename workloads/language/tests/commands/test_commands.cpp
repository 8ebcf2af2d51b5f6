#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "fullbore/device/registry.h"
#include "tests/support/job.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(JobTest, HelpTeachesByExample) {
  for (const char* name : {"train", "eval", "generate", "export", "metrics", "replay-step", "plan",
                           "bench", "profile", "data", "doctor", "ops", "passes"}) {
    const CommandResult help = command({name, "--help"});
    EXPECT_EQ(help.exit_code, 0) << name;
    EXPECT_THAT(help.out, HasSubstr(std::string("Example:\n  fullbore ") + name));
    EXPECT_EQ(help.err, "");
  }
  const CommandResult all = command({"--help"});
  EXPECT_EQ(all.exit_code, 0);
  EXPECT_THAT(all.out, HasSubstr("75  train: stopped by a signal"));
  EXPECT_THAT(command({"--version"}).out, StartsWith("fullbore 0."));
}

TEST_F(JobTest, WrongUsageIsExplained) {
  const CommandResult none = command({});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("Usage: fullbore"));
  const CommandResult unknown = command({"genrate", "x"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("no command 'genrate'. Did you mean 'generate'?"));
  const CommandResult missing = command({"train"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("fullbore: train: CONFIG is required"));
  EXPECT_EQ(command({"generate", "x", "--top-k", "-3"}).exit_code, 2);
  EXPECT_EQ(command({"generate", "x", "--characters", "many"}).exit_code, 2);
  EXPECT_EQ(command({"generate", "x", "--top-p", "1.5"}).exit_code, 2);
  EXPECT_EQ(command({"generate", "x", "--repetition-penalty", "0"}).exit_code, 2);
  EXPECT_EQ(command({"generate", "x", "--samples", "0"}).exit_code, 2);
  EXPECT_EQ(command({"--nonsense"}).exit_code, 2);
}

TEST_F(JobTest, OpsAndPassesTellWhatThereIs) {
  const CommandResult ops = command({"ops"});
  EXPECT_EQ(ops.exit_code, 0);
  EXPECT_THAT(ops.out, HasSubstr("\nmatmul "));
  const CommandResult one = command({"ops", "matmul"});
  EXPECT_THAT(one.out, HasSubstr("contraction"));
  EXPECT_THAT(one.out, HasSubstr("matmul(f32["));
  const CommandResult unknown = command({"ops", "matmull"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("Did you mean 'matmul'?"));
  const auto list = nlohmann::json::parse(command({"ops", "--json"}).out);
  EXPECT_GT(list.size(), 50U);
  const auto passes = nlohmann::json::parse(command({"passes", "--json"}).out);
  ASSERT_FALSE(passes.empty());
  for (const auto& pass : passes)
    for (const char* key : {"name", "summary", "because", "optional"})
      EXPECT_TRUE(pass.contains(key)) << key;
  EXPECT_THAT(command({"passes"}).out, HasSubstr(passes[0]["name"].get<std::string>()));
}

TEST_F(JobTest, DoctorFindsThisMachineWell) {
  const CommandResult result = command({"doctor", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.out;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_TRUE(json["kernels_work"]);
  EXPECT_TRUE(json["cache_writable"]);
  EXPECT_GT(json["fp32_flops"], 1e8);
  EXPECT_TRUE(json["libraries"].contains("LLVM"));
  for (const DeviceKind& kind : device_kinds())
    EXPECT_EQ(json["devices"][std::string(kind.name)], kind.summary);
}

TEST_F(JobTest, PlanTellsWhatTrainThenUses) {
  const std::vector<std::string> arguments = {"plan", "job.yaml", "data.path=text.txt"};
  const CommandResult words = command(arguments);
  ASSERT_EQ(words.exit_code, 0) << words.err;
  EXPECT_THAT(words.out, HasSubstr("launches by kind"));
  const auto plan =
      nlohmann::json::parse(command({"plan", "job.yaml", "data.path=text.txt", "--json"}).out);
  ASSERT_EQ(train().exit_code, 0);
  const nlohmann::json run = summary("runs/tiny-1");
  EXPECT_EQ(plan["planned_peak_bytes"], run["planned_peak_bytes"]);
  EXPECT_EQ(plan["parameters"], run["parameters"]);
  EXPECT_EQ(plan["train"]["flops"], run["flops_per_step"]);
  EXPECT_LE(plan["planned_peak_bytes"], run["peak_bytes"]);
  EXPECT_GT(plan["train"]["roofline_seconds"], 0);
}

TEST_F(JobTest, PlanNeedsAVocabularyOnly) {
  EXPECT_EQ(command({"plan", "job.yaml"}).exit_code, 2);
  const auto plan =
      nlohmann::json::parse(command({"plan", "job.yaml", "--vocabulary", "65", "--json"}).out);
  // Tables of 65 + 8 rows, one block of 12 width^2 in four matrices, three norms; width 16.
  EXPECT_EQ(plan["parameters"], 16 * (65 + 8) + 12 * 16 * 16 + 3 * 16);
  EXPECT_THAT(command({"plan", "job.yaml", "--vocabulary", "65", "--graph"}).out,
              StartsWith("graph \"train\" {"));
  EXPECT_THAT(command({"plan", "job.yaml", "--vocabulary", "65", "--launches"}).out,
              HasSubstr("kernels"));
}

TEST_F(JobTest, EvalMeasuresWhatTrainingMeasured) {
  ASSERT_EQ(train({"train.eval_batches=0"}).exit_code, 0);
  const CommandResult result = command({"eval", "runs/tiny-1", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["loss"], summary("runs/tiny-1")["best_validation_loss"]);
  EXPECT_NEAR(json["bits_per_character"], json["loss"].get<double>() / std::log(2), 1e-9);
  const auto last =
      nlohmann::json::parse(command({"eval", "runs/tiny-1/checkpoints/last", "--json"}).out);
  EXPECT_EQ(last["loss"], summary("runs/tiny-1")["final_validation_loss"]);
  EXPECT_EQ(last["step"], 20);

  // Against another checkpoint the same figures come of the same batches.
  const CommandResult twin =
      command({"eval", "runs/tiny-1", "--against", "runs/tiny-1/checkpoints/last", "--json"});
  ASSERT_EQ(twin.exit_code, 0) << twin.out << twin.err;
  const auto compared = nlohmann::json::parse(twin.out);
  EXPECT_EQ(compared["verdict"], "passed");
  EXPECT_EQ(compared["metrics"][0]["metric"], "loss");
  EXPECT_NEAR(compared["metrics"][0]["b"], json["loss"].get<double>(), 1e-9);
  EXPECT_NEAR(compared["metrics"][0]["a"], last["loss"].get<double>(), 1e-9);
  ASSERT_EQ(train({"run.dir=other", "data.validation_fraction=0.3"}).exit_code, 0);
  const CommandResult others = command({"eval", "runs/tiny-1", "--against", "other"});
  EXPECT_EQ(others.exit_code, 2);
  EXPECT_THAT(others.err, HasSubstr("were not measured on the same batches: there are"));
  EXPECT_THAT(command({"eval", "runs/tiny-1", "--against", "other", "--margin", "los=1"}).err,
              HasSubstr("Did you mean 'loss'?"));

  folder_.put("same.txt", "the sea is calm tonight.\n");
  const CommandResult other = command({"eval", "runs/tiny-1", "--data", "same.txt"});
  EXPECT_EQ(other.exit_code, 0) << other.err;
  EXPECT_THAT(other.out, HasSubstr("predictions         24, in 1 batches"));
  folder_.put("foreign.txt", "THE SEA");
  const CommandResult foreign = command({"eval", "runs/tiny-1", "--data", "foreign.txt"});
  EXPECT_EQ(foreign.exit_code, 3);
  EXPECT_THAT(foreign.err, HasSubstr("foreign.txt"));
  EXPECT_EQ(command({"eval", "nowhere"}).exit_code, 3);
}

TEST_F(JobTest, AGateTrainsPairsAndGoesOnWithThem) {
  const std::vector<std::string> gate = {"lab",
                                         "gate",
                                         "job.yaml",
                                         "--with",
                                         "optim.learning_rate=0.011",
                                         "data.path=text.txt",
                                         "train.steps=5",
                                         "--pilot",
                                         "2",
                                         "--seeds",
                                         "2",
                                         "--out",
                                         "gate",
                                         "--margin",
                                         "loss=5",
                                         "--margin",
                                         "perplexity=500%",
                                         "--power",
                                         "0.5"};
  const CommandResult first = command(gate);
  ASSERT_EQ(first.exit_code, 0) << first.out << first.err;
  EXPECT_THAT(first.out, HasSubstr("optim.learning_rate: 0.01 -> 0.011"));
  EXPECT_THAT(first.out, HasSubstr("2 pairs by seeds 7 8, of 5 steps"));
  EXPECT_THAT(first.out, HasSubstr("passed: B is no worse than A"));
  EXPECT_EQ(command(gate).exit_code, 2) << "the folder is there";
  std::filesystem::remove_all(folder_ / "gate/b-8");
  const std::string kept = read("gate/a-7/metrics.jsonl");
  std::vector<std::string> more = gate;
  more.emplace_back("--resume");
  EXPECT_EQ(command(more).out, first.out);
  EXPECT_EQ(read("gate/a-7/metrics.jsonl"), kept) << "what is there is not made again";
  more[4] = "optim.learning_rate=0.012";
  EXPECT_THAT(command(more).err, HasSubstr("gate/plan.json is of another plan: b.optim."));
  const CommandResult there = command({"lab", "gate", "gate/a-*", "gate/b-*", "--json"});
  const std::string verdict = nlohmann::json::parse(there.out)["verdict"];
  EXPECT_EQ(there.exit_code, verdict == "passed" ? 0 : verdict == "failed" ? 4 : 7) << there.err;
  EXPECT_EQ(
      command({"lab", "gate", "job.yaml", "--with", "train.steps=5", "--seeds", "1"}).exit_code, 2);
}

TEST_F(JobTest, MetricsGoWhereTheyAreWanted) {
  ASSERT_EQ(train({"log.tensorboard=true", "log.metrics=loss"}).exit_code, 0);
  const CommandResult csv = command({"metrics", "runs/tiny-1", "--csv", "--kind", "train"});
  ASSERT_EQ(csv.exit_code, 0) << csv.err;
  EXPECT_THAT(csv.out, StartsWith("kind,step,loss,predictions,tokens_per_second,"));
  EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), '\n'), 11);
  const std::string all = command({"metrics", "runs/tiny-1"}).out;
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 15);
  EXPECT_THAT(all, Not(HasSubstr("xxhash64"))) << "the checksums are the file's own";
  const CommandResult other = command({"metrics", "runs/tiny-1", "--kind", "trian"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("Did you mean 'train'? It holds evaluation, train."));
  EXPECT_EQ(command({"metrics", "nowhere"}).exit_code, 3);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "runs/tiny-1/tensorboard"));
}

TEST_F(JobTest, GenerateContinuesThePromptReproducibly) {
  ASSERT_EQ(train({"train.steps=200", "train.eval_interval=0"}).exit_code, 0);
  const auto text = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"generate", "runs/tiny-1",  "--prompt",
                                          "the ",     "--characters", "60"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult result = command(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  const std::string first = text({"--seed", "5"});
  EXPECT_EQ(first.size(), 4U + 60U + 1U);
  EXPECT_THAT(first, StartsWith("the "));
  EXPECT_EQ(text({"--seed", "5"}), first);
  EXPECT_NE(text({"--seed", "6"}), first);
  const std::string greedy = text({"--temperature", "0"});
  EXPECT_EQ(text({"--temperature", "0", "--seed", "9"}), greedy);
  EXPECT_EQ(text({"--top-k", "1", "--seed", "9"}), greedy);
  EXPECT_THAT(text({}), HasSubstr("calm")) << "200 steps teach the five words";

  EXPECT_EQ(text({"--top-p", "0", "--seed", "9"}), greedy);
  EXPECT_NE(text({"--temperature", "0", "--repetition-penalty", "5"}), greedy);

  const std::string several = text({"--seed", "5", "--samples", "3"});
  EXPECT_THAT(several, StartsWith("--- sample 1 ---\n" + first + "--- sample 2 ---\nthe "));
  EXPECT_THAT(several, HasSubstr("\n--- sample 3 ---\nthe "));
  const std::string stop = first.substr(10, 3);
  const size_t place = first.find(stop, 4);
  EXPECT_EQ(text({"--seed", "5", "--stop", stop}), first.substr(0, place) + "\n");

  const CommandResult empty = command({"generate", "runs/tiny-1", "--characters", "5"});
  EXPECT_EQ(empty.exit_code, 0);
  EXPECT_EQ(empty.out.size(), 6U) << "an empty prompt starts a line";
  const std::string long_prompt(500, 'e');
  const CommandResult too_long =
      command({"generate", "runs/tiny-1", "--prompt", long_prompt, "--characters", "3"});
  EXPECT_EQ(too_long.exit_code, 0);
  EXPECT_EQ(too_long.out.size(), 504U);
  EXPECT_THAT(too_long.err, HasSubstr("the prompt has 500 tokens, the model sees the last"));
  EXPECT_EQ(text({"engine.threads=2", "--seed", "5"}), first);
  EXPECT_EQ(text({"engine.attention=decomposed", "--temperature", "0"}), greedy);
  EXPECT_EQ(text({"engine.precision=bf16"}).size(), 4U + 60U + 1U);
  const auto refused = [&](const std::string& setting) {
    const CommandResult result = command({"generate", "runs/tiny-1", setting});
    EXPECT_EQ(result.exit_code, 2) << setting;
    return result.err;
  };
  EXPECT_THAT(refused("engine.precision=bf61"), HasSubstr("engine.precision"));
  EXPECT_THAT(refused("engine.presicion=bf16"), HasSubstr("Did you mean 'engine.precision'?"));
  EXPECT_THAT(refused("model.width=64"), HasSubstr("'model.width=64': a trained model is run by"));
  const CommandResult foreign = command({"generate", "runs/tiny-1", "--prompt", "THE"});
  EXPECT_EQ(foreign.exit_code, 2);
  EXPECT_THAT(foreign.err, HasSubstr("--prompt"));
  EXPECT_EQ(command({"generate", "nowhere"}).exit_code, 3);
}

TEST_F(JobTest, ExportedWeightsAreAPlaceToStartFrom) {
  ASSERT_EQ(train({"train.steps=20", "optim.ema_decay=0.5", "train.evaluate=ema"}).exit_code, 0);
  const CommandResult exported =
      command({"export", "runs/tiny-1", "--format", "huggingface", "-o", "exported"});
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  for (const char* name : {"config.json", "model.safetensors", "fullbore_tokenizer.json"})
    EXPECT_TRUE(std::filesystem::exists(folder_ / ("exported/" + std::string(name)))) << name;

  // A step of no length leaves the weights, which are the averages that were validated.
  const CommandResult again =
      train({"model.initialize_from=exported", "train.steps=1", "optim.learning_rate=0",
             "optim.minimum_learning_rate=0", "run.dir=again"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(summary("again")["final_validation_loss"],
            summary("runs/tiny-1")["best_validation_loss"]);

  EXPECT_EQ(command({"export", "runs/tiny-1", "-o", "exported"}).exit_code, 3)
      << "overwrites nothing";
  EXPECT_EQ(command({"export", "runs/tiny-1", "--format", "gguf", "-o", "x"}).exit_code, 2);
  EXPECT_EQ(command({"export", "runs/tiny-1"}).exit_code, 2);
  EXPECT_EQ(command({"export", "nowhere", "-o", "x"}).exit_code, 3);
  const CommandResult wider =
      train({"model.initialize_from=exported", "model.layers=3", "run.dir=wider"});
  EXPECT_EQ(wider.exit_code, 3);
  EXPECT_THAT(wider.err, HasSubstr("model.layers is 3, "));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "wider")) << "refused before a run is made";
  EXPECT_EQ(train({"model.initialize_from=nowhere", "run.dir=none"}).exit_code, 3);
}

TEST_F(JobTest, AModelWithAContextKeepsNoState) {
  ASSERT_EQ(train({"train.steps=1"}).exit_code, 0);
  const CommandResult result = command({"generate", "runs/tiny-1", "--state-out", "s"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("a gpt model looks back at its text and keeps no state"));
}

}  // namespace
}  // namespace fullbore
