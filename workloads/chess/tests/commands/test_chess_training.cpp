#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/attribution_test.h"
#include "tests/support/detail_test.h"
#include "tests/support/job.h"
#include "workloads/chess/engine_pool.h"

/// Both tasks of training, by the command.
namespace fullbore::chess {
namespace {

using ::testing::HasSubstr;

const char* const kTiny = R"(model:
  layers: 1
  heads: 2
  width: 32
  context: 256
  vocabulary: 257
data:
  tokenizer: byte
  validation_fraction: 0.1
chess:
  records: 120
  truth: search:1
rollout:
  prompts: 2
  samples: 3
  policy_tokens: 12
optim:
  learning_rate: 1e-2
train:
  sample_characters: 0
  eval_interval: 0
log:
  interval: 1
)";

class ChessTraining : public JobTest {
 protected:
  void warm_up() {
    folder_.put("tiny.yaml", kTiny);
    const CommandResult result =
        command({"train", "tiny.yaml", "run.dir=warm", "data.batching=chess", "train.steps=4",
                 "train.batch_size=4"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  CommandResult reward(const std::vector<std::string>& more) {
    std::vector<std::string> words = {"train", "tiny.yaml", "data.batching=chess_grpo",
                                      "model.initialize_from=warm"};
    words.insert(words.end(), more.begin(), more.end());
    return command(words);
  }
  std::string weights(const std::string& run) {
    return read(run + "/checkpoints/last/weights.safetensors");
  }
};

// Steps on one batch of completions each two: a run that stops between batches and goes on has the same bits.
TEST_F(ChessTraining, StoppedAndResumedHasTheSameBits) {
  warm_up();
  const std::vector<std::string> common = {"grpo.inner_epochs=2", "grpo.kl_controller=step",
                                           "train.checkpoint_interval=2"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), common.begin(), common.end());
    return more;
  };
  CommandResult result = reward(with({"run.dir=whole", "train.steps=6"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  result = reward(with({"run.dir=parts", "train.steps=2"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  result = command({"train", "parts", "--resume", "train.steps=6"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(weights("whole"), weights("parts"));
  EXPECT_NE(weights("whole"), weights("warm"));
  // Caches of texts are no part of what is kept.
  EXPECT_EQ(weights("whole").find(".cache."), std::string::npos);
}

// Rollouts stand where other jobs wait for data.
TEST_F(ChessTraining, IsDiagnosed) {
  folder_.put("tiny.yaml", kTiny);
  const nlohmann::json json = testing::expect_all_time_attributed(
      folder_, {"tiny.yaml", "data.batching=chess_grpo", "data.workers=2"});
  double rollouts = 0;
  for (const nlohmann::json& row : json["measured"]["rows"]) {
    if (row["phase"] == "rollouts") rollouts += row["seconds"].get<double>();
    EXPECT_NE(row["phase"], "data");
  }
  EXPECT_GT(rollouts, 0);
  EXPECT_EQ(json["inactive_switches"][0]["setting"], "data.workers=2");
}

TEST_F(ChessTraining, DetailThatNobodyWantsIsNotComputed) {
  folder_.put("tiny.yaml", kTiny);
  testing::expect_detail_is_not_computed(folder_, {"tiny.yaml", "data.batching=chess_grpo"});
}

TEST_F(ChessTraining, TellsWhereAStepsTimeGoes) {
  warm_up();
  const CommandResult result = reward({"run.dir=grpo", "train.steps=2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string lines = read("grpo/metrics.jsonl");
  for (const char* const name :
       {"\"reward\"", "\"policy/legal_best\"", "\"largest_log_ratio\"", "\"kl\"",
        "\"equal_groups\"", "\"seconds/prefill\"", "\"seconds/decode\"", "\"seconds/rewards\"",
        "\"seconds/reference\"", "\"seconds/batch\""})
    EXPECT_THAT(lines, HasSubstr(name));
}

// The trainer's log-probabilities are the generator's, bit for bit.
TEST_F(ChessTraining, RatiosBeginAtExactlyOneWithRowInvariantKernels) {
  warm_up();
  const CommandResult result =
      reward({"run.dir=grpo", "train.steps=2", "engine.row_invariant=true"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  int lines = 0;
  for (const nlohmann::json& line : metrics("grpo"))
    if (line.contains("largest_log_ratio")) {
      EXPECT_EQ(line["largest_log_ratio"], 0.0) << line.dump();
      ++lines;
    }
  EXPECT_EQ(lines, 2);
}

TEST_F(ChessTraining, RefusesWhatTeachesNothing) {
  warm_up();
  EXPECT_THAT(reward({"rollout.samples=1"}).err, HasSubstr("is no group"));
  EXPECT_THAT(reward({"rollout.temperature=0"}).err, HasSubstr("draws equal completions"));
  EXPECT_THAT(reward({"grpo.inner_epochs=2", "train.steps=3"}).err,
              HasSubstr("is not a multiple of grpo.inner_epochs"));
  EXPECT_THAT(reward({"reward.truth=stockfsh"}).err, HasSubstr("is no truth; record, rules"));
  EXPECT_THAT(reward({"model.vocabulary=256"}).err, HasSubstr("257 tokens, their end among them"));
  EXPECT_THAT(reward({"data.buckets=[40]"}).err, HasSubstr("batches have 40"));
  EXPECT_THAT(reward({"reward.truth=stockfish", "chess.engine=/nowhere"}).err,
              HasSubstr("/nowhere"));
}

// An engine that greets and dies of each question costs retries and a count, never the run.
TEST_F(ChessTraining, GoesOnWithAnEngineThatDies) {
  warm_up();
  const std::string engine = folder_.put("engine",
                                         "#!/bin/sh\n"
                                         "while read -r word rest; do case $word in\n"
                                         "uci) echo id name Mortal; echo uciok;;\n"
                                         "isready) echo readyok;;\n"
                                         "go|quit) exit 0;;\n"
                                         "esac; done\n");
  std::filesystem::permissions(engine, std::filesystem::perms::owner_all);
  const CommandResult result =
      reward({"run.dir=grpo", "train.steps=1", "reward.truth=stockfish:1", "chess.engine=" + engine,
              "data.cache_dir=" + (folder_ / "cache")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  int told = 0;
  for (const nlohmann::json& line : metrics("grpo"))
    if (line.contains("engine/retries")) {
      ++told;
      EXPECT_GT(line["engine/retries"], 0) << line.dump();
      EXPECT_EQ(line["engine/unranked"], 2) << line.dump();
    }
  EXPECT_EQ(told, 1);
}

// What it said in one run is known to the next.
TEST_F(ChessTraining, AsksAnEngineOncePerPosition) {
  if (find_stockfish().empty()) GTEST_SKIP() << stockfish_missing_text();
  warm_up();
  const auto cached = [&](const std::string& run) {
    const CommandResult result = reward(
        {"run.dir=" + run, "train.steps=1", "reward.truth=stockfish:1", "data.cache_dir=cache"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    double found = -1;
    for (const nlohmann::json& line : metrics(run)) found = line.value("engine/cached", found);
    return found;
  };
  EXPECT_EQ(cached("first"), 0);
  EXPECT_EQ(cached("second"), 2);
}

TEST_F(ChessTraining, IsMeasuredAndPlays) {
  warm_up();
  CommandResult result =
      command({"chess", "eval", "warm", "--records", "3", "--self-play", "1", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["answers"].size(), 2U) << "greedy and drawn";
  EXPECT_EQ(json["self_play"]["games"], 1);
  result = command({"chess", "eval", "warm", "--records", "3", "--temperature", "0"});
  EXPECT_THAT(result.out, HasSubstr("greedy"));
  EXPECT_THAT(command({"eval", "warm"}).err, HasSubstr("measure it by `fullbore chess eval warm`"));
  ASSERT_EQ(reward({"run.dir=grpo", "train.steps=1"}).exit_code, 0);
  result = command({"chess", "eval", "grpo", "--records", "2", "--temperature", "0"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

}  // namespace
}  // namespace fullbore::chess
