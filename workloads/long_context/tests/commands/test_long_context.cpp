#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/text/text_model.h"
#include "fullbore/train/config.h"
#include "tests/support/attribution_test.h"
#include "tests/support/detail_test.h"
#include "tests/support/job.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A model that learned from the short text of a JobTest, whose alphabet has no capitals.
class LongContext : public JobTest {
 protected:
  nlohmann::json json(const std::vector<std::string>& arguments) const {
    std::vector<std::string> all = {"longcontext"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    all.emplace_back("--json");
    if (arguments.front() != "phases") all.emplace_back("-");
    const CommandResult result = command(all);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out, nullptr, false);
  }
  CommandResult longcontext(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "longcontext");
    return command(arguments);
  }
  void expect_refusal(const std::vector<std::string>& arguments, int code,
                      const std::string& message) const {
    const CommandResult result = longcontext(arguments);
    EXPECT_EQ(result.exit_code, code) << result.err;
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_EQ(result.out, "");
  }
};

TEST_F(LongContext, NeedlesAreShownWrittenAndDrawn) {
  const CommandResult result =
      longcontext({"niah", "oracle", "--lengths", "256,1K", "--depths", "0,50,100", "--trials", "3",
                   "--csv", "grid.csv", "--svg", "grid.svg", "--json", "grid.json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr(" 50 %  100   100"));
  EXPECT_THAT(result.out, HasSubstr("at least 1024 at 80.0 %"));
  EXPECT_THAT(result.out, HasSubstr("gate of phase 1 not measured"));
  EXPECT_THAT(read("grid.csv"),
              StartsWith("length,depth,asked,found,accuracy,low,high\n256,0,3,3,1,"));
  EXPECT_THAT(read("grid.svg"), StartsWith("<svg xmlns="));
  const nlohmann::json grid = nlohmann::json::parse(read("grid.json"));
  EXPECT_EQ(grid["cells"].size(), 6U);
  EXPECT_EQ(grid["usable_length"]["logarithmic"], 1024);
  const CommandResult usable = longcontext({"usable-length", "grid.json", "4K:0.5"});
  ASSERT_EQ(usable.exit_code, 0) << usable.err;
  EXPECT_THAT(usable.out, HasSubstr("usable length at 80.0 %: 1783; 2253 by linear"));
}

TEST_F(LongContext, WithoutNeedlesNothingIsFound) {
  const nlohmann::json grid = json({"niah", "oracle", "--lengths", "1K", "--control"});
  for (const nlohmann::json& cell : grid["cells"]) EXPECT_EQ(cell["found"], 0);
  EXPECT_FALSE(grid.contains("gate_16k")) << "a control passes no gate";
}

TEST_F(LongContext, TheGateIsOfTheLengthThatItNames) {
  const nlohmann::json passed =
      json({"niah", "oracle", "--lengths", "16K", "--depths", "50", "--trials", "2"});
  EXPECT_EQ(passed["gate_16k"], "passed");
  const nlohmann::json failed = json({"niah", "random", "--lengths", "16K", "--depths", "0,50",
                                      "--trials", "2", "--claimed", "16K"});
  EXPECT_EQ(failed["gate_16k"], "failed");
  EXPECT_THAT(failed["warnings"][0].get<std::string>(), HasSubstr("below 80 %"));
}

TEST_F(LongContext, PhasesOpenOneAfterAnother) {
  folder_.put("niah.json", R"({"kind": "niah", "model": "m", "gate_16k": "passed"})");
  folder_.put("bench.json", R"({"kind": "longbench", "model": "m", "gate_100k": "failed"})");
  const CommandResult first = longcontext({"phases", "niah.json"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("phase 1  needles, 1K to 16K                passed\n"));
  EXPECT_THAT(first.out, HasSubstr("next: fullbore longcontext longbench"));
  EXPECT_THAT(first.out, HasSubstr("phase 3  InfiniteBench, 100K to 200K       closed\n"));
  const nlohmann::json both = json({"phases", "niah.json", "bench.json"});
  EXPECT_EQ(both["phases"][1]["open"], true);
  EXPECT_EQ(both["phases"][2]["open"], false);
  folder_.put("other.json", R"({"kind": "longbench", "model": "other", "gate_100k": "failed"})");
  expect_refusal({"phases", "niah.json", "other.json"}, 2, "other.json is of other");
  folder_.put("control.json", R"({"kind": "niah", "model": "m"})");
  expect_refusal({"phases", "control.json"}, 3, "which no phase has");
  folder_.put("score.json", R"({"kind": "infinitebench", "model": "m", "score": 1.5})");
  expect_refusal({"phases", "score.json"}, 3, "score.json: there is no 'score' from 0 to 1");
}

TEST_F(LongContext, SeveralModelsAreDrawnWithTheThreshold) {
  folder_.put("a.json", R"({"model": "runs/a", "lengths": [{"length": 1024, "accuracy": 0.9},
    {"length": 2048, "accuracy": 0.5}]})");
  folder_.put("b.json", R"({"model": "runs/b", "lengths": [{"length": 1024, "accuracy": 0.95}]})");
  const CommandResult both = longcontext({"usable-length", "a.json", "b.json", "c=1K:0.5",
                                          "c=2K:0.4", "--threshold", "0.7", "--svg", "all.svg"});
  ASSERT_EQ(both.exit_code, 0) << both.err;
  EXPECT_THAT(both.out, HasSubstr("  runs/a: 1448; 1536 by linear interpolation\n"));
  EXPECT_THAT(both.out, HasSubstr("  runs/b: at least 1024\n"));
  EXPECT_THAT(both.out, HasSubstr("  c: 0: below it at the shortest\n"));
  EXPECT_THAT(read("all.svg"), HasSubstr("threshold 70 %"));
  EXPECT_THAT(read("all.svg"), HasSubstr("runs/b: at least 1024 tokens"));
  const CommandResult printed = longcontext({"usable-length", "a.json", "b.json", "--json"});
  const nlohmann::json json = nlohmann::json::parse(printed.out);
  EXPECT_EQ(json[1]["model"], "runs/b");
  expect_refusal({"usable-length", "a.json", "b.json", "4K:0.2"}, 2, "are of no model");
  expect_refusal({"usable-length", "a.json", "a.json"}, 2, "1024 is measured twice");
}

// Every prompt answered by what stands in it, as another program would.
TEST_F(LongContext, AnswersOfOtherModelsAreScoredByTheirPrompts) {
  const std::vector<std::string> options = {"niah",     "oracle", "--lengths", "256",
                                            "--depths", "0,100",  "--trials",  "3"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), options.begin(), options.end());
    return more;
  };
  ASSERT_EQ(longcontext(with({"--export", "prompts.jsonl"})).exit_code, 0);
  std::istringstream lines(read("prompts.jsonl"));
  std::string right, half;
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const nlohmann::json prompt = nlohmann::json::parse(line);
    const std::string text = prompt["prompt"];
    EXPECT_EQ(text.size(), 256U);
    const std::string question = text.substr(text.rfind('\n') + 1);
    const std::string value = text.substr(text.find(question) + question.size(), 5);
    const nlohmann::json answer = {{"id", prompt["id"]}, {"answer", "\n \"" + value + ".\""}};
    right += answer.dump() + "\n";
    if (count % 2 == 0) half += answer.dump() + "\n";
  }
  EXPECT_EQ(count, 6);
  folder_.put("right.jsonl", right);
  folder_.put("half.jsonl", half);
  const nlohmann::json all = json(with({"--score", "right.jsonl"}));
  EXPECT_EQ(all["lengths"][0]["accuracy"], 1);
  EXPECT_EQ(all["model"], "right.jsonl");
  const nlohmann::json some = json(with({"--score", "half.jsonl"}));
  EXPECT_EQ(some["lengths"][0]["accuracy"], 0.5);
  EXPECT_EQ(some["warnings"][0], "3 prompts have no answer; they count as not found");
  expect_refusal(with({"--score", "right.jsonl", "--seed", "1"}), 3,
                 "are to no prompt of these options");
  folder_.put("twice.jsonl", half + half);
  expect_refusal(with({"--score", "twice.jsonl"}), 3, "twice.jsonl:4: a second answer");
  expect_refusal(with({"--score", "right.jsonl", "--export", "x"}), 2, "one at a time");
}

TEST_F(LongContext, MadeUpSuitesAskTrainedModelsAndWriteTheirPrompts) {
  folder_.put("play.txt", "A sea. It is calm, tonight. " + std::string("Who is there? It is I. ") +
                              R"(ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz,.:;-?!)"
                              "\n" +
                              read("text.txt"));
  ASSERT_EQ(train({"data.path=play.txt", "train.steps=1", "model.context=64"}).exit_code, 0);
  const nlohmann::json ruler = json({"ruler", "runs/tiny-1", "--lengths", "1K", "--tasks",
                                     "niah_single_1,vt,qa_2", "--examples", "1"});
  EXPECT_EQ(ruler["kind"], "ruler");
  ASSERT_EQ(ruler["cells"].size(), 3U);
  EXPECT_EQ(ruler["cells"][2]["task"], "qa_2");
  EXPECT_EQ(ruler["usable_length"]["threshold"], 0.856);
  ASSERT_TRUE(ruler.contains("warnings"));
  EXPECT_THAT(ruler["warnings"][0].get<std::string>(), HasSubstr("the model sees 64 tokens"));
  const CommandResult babilong =
      longcontext({"babilong", "random", "--background", "play.txt", "--lengths", "1K,2K",
                   "--examples", "2", "--answers", "answers.jsonl"});
  ASSERT_EQ(babilong.exit_code, 0) << babilong.err;
  EXPECT_THAT(babilong.out, HasSubstr("qa5 "));
  EXPECT_THAT(read("answers.jsonl"), HasSubstr(R"("id":"qa3-2048-1")"));
  ASSERT_EQ(longcontext({"ruler", "oracle", "--lengths", "2K", "--examples", "1", "--export", "a"})
                .exit_code,
            0);
  ASSERT_EQ(longcontext({"ruler", "oracle", "--lengths", "2K", "--examples", "1", "--export", "b"})
                .exit_code,
            0);
  EXPECT_EQ(read("a"), read("b"));
  EXPECT_THAT(read("a"), HasSubstr(R"("task":"niah_multivalue")"));
  expect_refusal({"ruler", "oracle", "--tasks", "niah_singel_1"}, 2,
                 "Did you mean 'niah_single_1'?");
  expect_refusal({"ruler", "oracle", "--lengths", "64"}, 2,
                 "tokens of this model, the length is 64");
  expect_refusal({"babilong", "oracle", "--background", "absent.txt"}, 3, "absent.txt");
}

TEST_F(LongContext, ConversationsAreReadAndScored) {
  ASSERT_EQ(train({"train.steps=1"}).exit_code, 0);
  folder_.put(
      "mrcr.jsonl",
      R"({"prompt": "[{\"role\": \"user\", \"content\": \"the sea\"}]", "answer": "Xy12the sea", )"
      R"("random_string_to_prepend": "Xy12", "n_needles": 2})"
      "\n");
  const nlohmann::json result =
      json({"mrcr", "runs/tiny-1", "mrcr.jsonl", "--room", "3", "--answers", "answers.jsonl"});
  EXPECT_EQ(result["kind"], "mrcr");
  EXPECT_EQ(result["tasks"][0]["measure"], "sequence match");
  EXPECT_EQ(result["parts"][0]["name"], "needles 2");
  EXPECT_EQ(result["score"], 0) << "it does not begin with the marker";
  folder_.put("torn.jsonl", R"({"prompt": "x", "answer": "y"})"
                            "\n");
  expect_refusal({"mrcr", "runs/tiny-1", "torn.jsonl"}, 3, "random_string_to_prepend");
}

TEST_F(LongContext, BadArgumentsAreNamed) {
  expect_refusal({"niah", "oracle", "--lengths", "1K,4X"}, 2, "'4X' is no number of tokens");
  expect_refusal({"niah", "oracle", "--lengths", "0"}, 2, "'0' is no number of tokens");
  expect_refusal({"niah", "oracle", "--depths", "0,101"}, 2, "'101' is no number from 0 to 100");
  expect_refusal({"niah", "oracle", "--task", "singel"}, 2, "single");
  expect_refusal({"niah", "oracle", "--lengths", "20"}, 2, "take 21 characters, the text has 20");
  expect_refusal({"niah", "oracle", "--svg", "no/grid.svg"}, 3, "there is no folder no");
  expect_refusal({"niah", "absent"}, 3, "absent");
  expect_refusal({"usable-length", "1K:x"}, 2, "'x' is no number from 0 to 1");
  expect_refusal({"usable-length", "1K:0.5", "1024:0.6"}, 2, "1024 is measured twice");
  folder_.put("other.json", R"({"length": []})");
  expect_refusal({"usable-length", "other.json"}, 3, "Did you mean 'length'?");
}

TEST_F(LongContext, ATrainedModelAnswersLongTexts) {
  ASSERT_EQ(train({"train.steps=1"}).exit_code, 0);
  expect_refusal({"niah", "runs/tiny-1", "--lengths", "64"}, 2, "the model cannot spell the text");
  folder_.put("items.jsonl",
              R"({"input": "the sea", "context": "the sea is calm tonight.", "answers": ["calm"], )"
              R"("dataset": "hotpotqa", "language": "en", "all_classes": null, "_id": "1"})"
              "\n"
              R"({"_id": "2", "domain": "Law", "difficulty": "easy", "length": "short", )"
              R"("question": "q", "choice_A": "a", "choice_B": "b", "choice_C": "c", )"
              R"("choice_D": "d", "answer": "A", "context": "the sea Ä"})"
              "\n");
  const nlohmann::json result = json({"longbench", "runs/tiny-1", "items.jsonl", "--room", "4",
                                      "--answers", "answers.jsonl", "--guess-missing"});
  ASSERT_EQ(result["tasks"].size(), 2U);
  EXPECT_EQ(result["tasks"][1]["score"], 0.25);
  EXPECT_EQ(result["cut"], 2) << "the model sees eight tokens";
  EXPECT_GT(result["unknown_characters"], 0);
  EXPECT_EQ(result["parts"][0]["name"], "difficulty easy");
  EXPECT_THAT(read("answers.jsonl"), HasSubstr(R"("task":"hotpotqa")"));

  folder_.put("passkey.jsonl", R"({"context": "the sea", "input": "is", "answer": "1"})");
  EXPECT_EQ(json({"infinitebench", "runs/tiny-1", "passkey.jsonl"})["tasks"][0]["name"], "passkey");
  folder_.put("torn.jsonl", R"({"input": "", "context": "", "answers": ["a"], "dataset": "lcc"})"
                            "\n{\"input\": ");
  expect_refusal({"longbench", "runs/tiny-1", "torn.jsonl"}, 3, "torn.jsonl:2: not JSON: byte 10");
  expect_refusal({"infinitebench", "runs/tiny-1", "torn.jsonl"}, 2, "no task of InfiniteBench");
}

TEST_F(LongContext, TrainingOnRecallIsDiagnosed) {
  const std::vector<std::string> job = {"job.yaml", "data.batching=mqar",
                                        "data.mqar_sizes=[12:2, 8:2]", "model.context=12",
                                        "data.mqar_vocabulary=16"};
  testing::expect_all_time_attributed(folder_, job);
  testing::expect_detail_is_not_computed(folder_, job);
}

// What is held out is drawn by run.seed: two runs of several seeds are measured on what one of them held out.
TEST_F(LongContext, RunsOfOtherSeedsAreComparedOnTheSameHeldOutItems) {
  const std::vector<std::string> settings = {
      "data.batching=mqar",      "data.mqar_sizes=[12:2, 8:2]",
      "data.mqar_vocabulary=16", "model.context=12",
      "train.steps=2",           "train.eval_batches=24"};
  for (const char* const seed : {"1", "2"}) {
    std::vector<std::string> words = {"train", "job.yaml", std::string("run.seed=") + seed,
                                      std::string("run.dir=seed-") + seed};
    words.insert(words.end(), settings.begin(), settings.end());
    ASSERT_EQ(command(words).exit_code, 0);
  }
  const CommandResult other = command({"eval", "seed-2", "--against", "seed-1", "--json"});
  ASSERT_NE(other.exit_code, 2) << other.err;
  const nlohmann::json of_two = nlohmann::json::parse(other.out);
  EXPECT_THAT(
      of_two["notes"][0].get<std::string>(),
      HasSubstr("both are measured on what seed-2/checkpoints/best held out, by run.seed 2"));
  // The subject's own figures are those of its run; the baseline's are of other items than its run's.
  const CommandResult self = command({"eval", "seed-2", "--against", "seed-2", "--json"});
  ASSERT_EQ(self.exit_code, 0) << self.err;
  const nlohmann::json of_one = nlohmann::json::parse(self.out);
  EXPECT_EQ(of_one["metrics"][0]["b"], of_two["metrics"][0]["b"]);
  EXPECT_NE(of_one["metrics"][0]["a"], of_two["metrics"][0]["a"]);
  EXPECT_EQ(of_one["notes"].size(), 0U);
  const CommandResult own = command({"eval", "seed-1", "--against", "seed-1", "--json"});
  EXPECT_NE(nlohmann::json::parse(own.out)["metrics"][0]["a"], of_two["metrics"][0]["a"]);
}

TEST_F(LongContext, RecallIsLearnedAndMeasured) {
  const std::vector<std::string> settings = {"train",
                                             "job.yaml",
                                             "data.batching=mqar",
                                             "data.mqar_sizes=[12:2, 8:2]",
                                             "model.context=12",
                                             "data.mqar_vocabulary=16",
                                             "train.steps=40",
                                             "model.dropout=0"};
  const CommandResult result = command(settings);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("associative recall 12:2 8:2 of 16 tokens"));
  size_t evaluations = 0;
  for (const nlohmann::json& record : metrics("runs/tiny-1"))
    if (record["kind"] == "evaluation") {
      ++evaluations;
      EXPECT_GE(record["validation_accuracy"], 0);
      EXPECT_LE(record["validation_accuracy"], 1);
    }
  EXPECT_GT(evaluations, 2U);
  const nlohmann::json measured =
      json({"mqar", "runs/tiny-1", "--sizes", "12:2,8:2", "--examples", "20"});
  ASSERT_EQ(measured["sizes"].size(), 2U);
  EXPECT_EQ(measured["sizes"][0]["asked"], 40);
  EXPECT_EQ(measured["vocabulary"], 16);
  expect_refusal({"mqar", "runs/tiny-1", "--sizes", "12"}, 2, "'12' is no TOKENS:PAIRS");
  expect_refusal({"mqar", "runs/tiny-1", "--vocabulary", "32"}, 2, "the model has 16 tokens");
  const CommandResult eval = command({"eval", "runs/tiny-1"});
  EXPECT_EQ(eval.exit_code, 2);
  EXPECT_THAT(eval.err, HasSubstr("fullbore longcontext mqar runs/tiny-1"));
  const CommandResult text =
      command({"generate", "runs/tiny-1", "--prompt", "1 9 2 10 1", "--tokens", "3"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_EQ(command({"generate", "runs/tiny-1", "--tokens", "1"}).exit_code, 0);
}

/// Configurations of recall for models that remember a stream in a state.
std::vector<std::string> recurrent_recalls() {
  std::vector<std::string> found;
  for (const auto& entry :
       std::filesystem::directory_iterator(testing::source_folder() + "/configs")) {
    if (!entry.path().filename().string().starts_with("mqar-")) continue;
    try {
      if (text_model(load_config(entry.path().string())).is_recurrent)
        found.push_back(entry.path().string());
    } catch (const UsageError&) {  // of a model that is not here
    }
  }
  return found;
}

// Minutes of training: on demand.
TEST_F(LongContext, ARecurrentModelLearnsToRecallFourPairs) {
  if (std::getenv("FB_SLOW") == nullptr) GTEST_SKIP() << "set FB_SLOW=1 to train for minutes";
  for (const std::string& config : recurrent_recalls()) {
    const CommandResult result = command({"train", config, "run.dir=runs/recall"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const nlohmann::json measured =
        json({"mqar", "runs/recall", "--sizes", "64:4,128:8,256:16,256:32", "--examples", "500"});
    const auto accuracy = [&](size_t i) { return measured["sizes"][i]["accuracy"].get<double>(); };
    EXPECT_GE(accuracy(0), 0.99) << config;
    for (size_t i = 1; i < 4; ++i) EXPECT_GE(accuracy(i), 0.8) << "longer than it was trained on";
    std::filesystem::remove_all(folder_ / "runs");
  }
}

TEST_F(LongContext, PasskeysAreLearnedAndLookedFor) {
  const CommandResult result =
      command({"train", "job.yaml", "data.batching=passkey", "data.passkey_lengths=[24, 40]",
               "model.context=44", "train.steps=10", "train.sample_characters=5"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json grid =
      json({"niah", "runs/tiny-1", "--lengths", "32,64", "--trials", "2", "--depths", "0,100"});
  EXPECT_EQ(grid["cells"].size(), 4U);
  EXPECT_THAT(grid.at("warnings").at(0).get<std::string>(),
              HasSubstr("the model sees 44 tokens at once"));
}

TEST_F(LongContext, RunsAreRecordedAndCompared) {
  ASSERT_EQ(train({"run.name=a", "train.steps=60"}).exit_code, 0);
  ASSERT_EQ(train({"run.name=a", "train.steps=60", "run.seed=8"}).exit_code, 0);
  const CommandResult base = command({"record", "runs/a-1", "runs/a-2", "-o", "base.json"});
  ASSERT_EQ(base.exit_code, 0) << base.err;
  const nlohmann::json record = nlohmann::json::parse(read("base.json"));
  EXPECT_EQ(record["repeats"], 2);
  EXPECT_EQ(record["config"]["batch_size"], 4);
  EXPECT_EQ(record["config"]["seq_len"], 8);
  EXPECT_EQ(record["rng_key"], 7);
  EXPECT_GT(record["metrics"]["step_ms_p50"], 0);
  EXPECT_TRUE(record["consistent"]);
  const CommandResult same =
      command({"record", "base.json", "--baseline", "base.json", "--name", "again"});
  const nlohmann::json compared = nlohmann::json::parse(same.out);
  EXPECT_EQ(compared["vs_baseline"]["speedup"], 1.0);
  EXPECT_EQ(compared["vs_baseline"]["loss_delta"], 0.0);
  EXPECT_EQ(compared["gate"], "passed");
  folder_.put("claim.json",
              R"({"name": "claim", "config": {"batch_size": 16, "seq_len": 256}, "metrics":
                 {"throughput_tok_s": 65000, "time_per_step_ms": 32.5, "final_loss": 1.35}})");
  const CommandResult claim = command({"record", "claim.json"});
  EXPECT_EQ(claim.exit_code, 0);
  EXPECT_THAT(claim.err, HasSubstr("claim: not consistent: 65000 tokens a second"));
  EXPECT_EQ(command({"record", "job.yaml"}).exit_code, 3);
}

TEST_F(LongContext, MadeUpDataAreRefusedWhereTheyDoNotGo) {
  const auto refused = [&](std::vector<std::string> settings) {
    settings.insert(settings.begin(), {"train", "job.yaml"});
    const CommandResult result = command(settings);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    return result.err;
  };
  EXPECT_THAT(refused({"data.batching=mqar"}),
              HasSubstr("data.mqar_sizes: 64:4 takes 64 tokens, model.context is 8"));
  EXPECT_THAT(refused({"data.batching=mqar", "data.path=text.txt"}), HasSubstr("means nothing"));
  EXPECT_THAT(refused({"data.mqar_sizes=[8:2]"}), HasSubstr("means nothing with"));
  EXPECT_THAT(refused({"data.batching=mqar", "data.mqar_sizes=[8]"}),
              HasSubstr("'8' is no TOKENS:PAIRS"));
  EXPECT_THAT(refused({"data.batching=passkey", "data.passkey_lengths=[40]", "model.context=64"}),
              HasSubstr("the shortest and the longest were expected"));
  EXPECT_THAT(refused({"data.batching=passkey", "data.tokenizer=bpe:x", "model.context=516"}),
              HasSubstr("passkeys are spelled by"));
}

}  // namespace
}  // namespace fullbore
