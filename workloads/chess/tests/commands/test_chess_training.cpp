#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "fullbore/text/text_model.h"
#include "tests/support/attribution_test.h"
#include "tests/support/detail_test.h"
#include "workloads/chess/tests/commands/chess_training.h"

/// Both tasks of training, by the command.
namespace fullbore::chess {
namespace {

using ::testing::HasSubstr;

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

TEST_F(ChessTraining, ATokenizerThatIsLearnedFromATextIsRefused) {
  folder_.put("tiny.yaml", kTiny);
  for (const char* const batching : {"chess", "chess_grpo"}) {
    const CommandResult result =
        command({"train", "tiny.yaml", std::string("data.batching=") + batching,
                 "data.tokenizer=character", "run.dir=refused"});
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_THAT(result.err, HasSubstr("data.tokenizer is 'character'"));
  }
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

// All that the loop waits for a batch has a name, and so has nearly all of a step. By construction the phases sum to the
// making of a batch (BatchClock); what is beside them are a few statements.
TEST_F(ChessTraining, PhasesSumToTheStep) {
  warm_up();
  const CommandResult result =
      reward({"run.dir=grpo", "train.steps=12", "rollout.prompts=8", "rollout.policy_tokens=60",
              "log.detail=debug-training", "grpo.inner_epochs=2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  double named = 0, waited = 0, updates = 0, between = 0, before = 0;
  for (const nlohmann::json& line : metrics("grpo")) {
    if (line["kind"] != "train") continue;
    const bool is_first = before == 0;
    const double now = line["seconds"];
    if (!is_first) between += now - before;
    before = now;
    if (is_first) continue;  // the start is measured of its own
    waited += line["wait_seconds"].get<double>();
    updates += line["step_seconds"].get<double>();
    double of_batch = 0;
    for (const auto& [name, value] : line.items())
      if (name.starts_with("seconds/")) of_batch += value.get<double>();
    // The second step on a batch makes none.
    EXPECT_EQ(of_batch > 0, line["step"].get<int>() % 2 == 1) << line.dump();
    named += of_batch;
  }
  EXPECT_GT(named, 0);
  EXPECT_LE(named, waited);
  EXPECT_GT(named, 0.95 * waited);
  EXPECT_GT(named + updates, 0.8 * between);
}

#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // their heaps keep what is freed
// Whole steps, with their rollouts, rewards, metrics and saves. FB_TEST_STEPS: another number of them, such as 1000.
TEST_F(ChessTraining, StepsTakeNoMoreMemoryThanTheTwentieth) {
  constexpr int kEarly = 20;
  const char* const given = std::getenv("FB_TEST_STEPS");
  const int steps = given != nullptr ? std::stoi(given) : 80;
  ASSERT_GT(steps, kEarly);
  warm_up();
  const CommandResult result =
      reward({"run.dir=grpo", fmt::format("train.steps={}", steps), "train.checkpoint_interval=20",
              "log.detail=debug-performance", "engine.threads=1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<double> resident = told("grpo", "resident_bytes");
  ASSERT_EQ(std::ssize(resident), steps);
  RecordProperty("resident_bytes_early", std::to_string(resident[kEarly - 1]));
  RecordProperty("resident_bytes_late", std::to_string(resident.back()));
  EXPECT_LE(resident.back() - resident[kEarly - 1], 1 << 20)
      << resident[kEarly - 1] << " at step " << kEarly << ", " << resident.back() << " at "
      << steps;
}
#endif

// The trainer's log-probabilities are the generator's, bit for bit.
TEST_F(ChessTraining, RatiosBeginAtExactlyOneWithRowInvariantKernels) {
  warm_up();
  for (const std::string shared : {"true", "false"}) {
    const CommandResult result =
        reward({"run.dir=grpo_" + shared, "train.steps=2", "engine.row_invariant=true",
                "grpo.share_prompts=" + shared, "rollout.policy_tokens=40"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(told("grpo_" + shared, "largest_log_ratio"), ::testing::ElementsAre(0.0, 0.0));
  }
}

/// Steps of a run by the first of two ways and by the other tell the same of their updates.
void expect_same_updates(const std::vector<nlohmann::json>& a,
                         const std::vector<nlohmann::json>& b) {
  ASSERT_EQ(a.size(), b.size());
  int steps = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i]["kind"] != "train") continue;
    ++steps;
    // Draws are by the weights, whose differences are rounding.
    EXPECT_EQ(a[i]["reward"], b[i]["reward"]);
    EXPECT_EQ(a[i]["completion_tokens"], b[i]["completion_tokens"]);
    EXPECT_EQ(a[i]["predictions"], b[i]["predictions"]);
    const double norm = a[i]["gradient_norm"];
    EXPECT_GT(norm, 1e-3) << "nothing is learned";
    EXPECT_NEAR(norm, b[i]["gradient_norm"].get<double>(), 1e-4 * norm);
    for (const char* const name : {"loss", "kl", "entropy"})
      EXPECT_NEAR(a[i][name].get<double>(), b[i][name].get<double>(),
                  1e-5 + 1e-4 * std::abs(a[i][name].get<double>()))
          << name;
    EXPECT_LT(b[i]["largest_log_ratio"].get<double>(), 1e-4);
  }
  EXPECT_EQ(steps, 3);
}

// One row of a prompt with all of its completions against a row for each of them.
TEST_F(ChessTraining, PromptsThatAreSharedTeachWhatTheyTeachAlone) {
  std::vector<std::vector<std::string>> ways = {{"model.layers=2"},
                                                {"grpo.recompute_old=true"},
                                                {"grpo.overlong=mask", "rollout.policy_tokens=100",
                                                 "rollout.prompts=4", "engine.accumulate=2"},
                                                {"grpo.algorithm=gspo", "chess.recipe=games",
                                                 "rollout.arbiter_tokens=20", "chess.records=60"}};
  for (const TextModel& model : text_models())
    if (model.branched_hidden) ways.push_back({"model.name=" + model.name});
  EXPECT_GT(ways.size(), 4U) << "models that share";
  folder_.put("tiny.yaml", kTiny);
  for (size_t i = 0; i < ways.size(); ++i) {
    const auto metrics_of = [&](const std::string& shared) {
      const std::string run = fmt::format("run_{}_{}", i, shared);
      std::vector<std::string> words = {"train",
                                        "tiny.yaml",
                                        "run.dir=" + run,
                                        "data.batching=chess_grpo",
                                        "train.steps=3",
                                        "grpo.share_prompts=" + shared,
                                        "reward.control=length",
                                        "rollout.policy_tokens=90",
                                        "grpo.entropy=0.1"};
      words.insert(words.end(), ways[i].begin(), ways[i].end());
      const CommandResult result = command(words);
      EXPECT_EQ(result.exit_code, 0) << result.err;
      return metrics(run);
    };
    SCOPED_TRACE(ways[i][0]);
    expect_same_updates(metrics_of("false"), metrics_of("true"));
  }
}

// Two of the controls of the specification's section 9: what moves without a rate, or not towards what is paid, is a fault
// of the trainer, whatever else rises.
TEST_F(ChessTraining, ARateOfZeroChangesNoWeight) {
  warm_up();
  const CommandResult result =
      reward({"run.dir=grpo", "train.steps=3", "optim.learning_rate=0", "optim.schedule=constant",
              "reward.control=length", "rollout.policy_tokens=60", "grpo.kl=0"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(weights("grpo") == weights("warm"));
  const std::vector<double> norms = told("grpo", "gradient_norm");
  ASSERT_EQ(norms.size(), 3U);
  EXPECT_GT(std::ranges::max(norms), 0) << "with a rate they would change";
}
TEST_F(ChessTraining, RewardsByLengthMakeAnswersAsLongAsTheyMayBe) {
  constexpr double kMost = 60;
  warm_up();
  const CommandResult result = reward(
      {"run.dir=grpo", "train.steps=40", "optim.learning_rate=1e-2", "rollout.prompts=8",
       "rollout.samples=8", "rollout.policy_tokens=60", "reward.control=length", "grpo.kl=0"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<double> lengths = told("grpo", "completion_tokens");
  ASSERT_EQ(lengths.size(), 40U);
  EXPECT_LT(lengths.front(), 0.95 * kMost) << "there is something to learn";
  EXPECT_GT(lengths.back(), 0.98 * kMost);
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
