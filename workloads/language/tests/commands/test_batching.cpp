#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <set>
#include <sstream>

#include "tests/support/job.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

/// Training on the documents of a small file of JSON lines.
class Batching : public JobTest {
 protected:
  Batching() : path_("data.path=" + put_documents()) {}

  CommandResult train_on(const std::string& batching, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {path_, "data.batching=" + batching, "train.steps=60",
                               "train.eval_interval=20", "train.eval_batches=0"});
    return train(more);
  }
  /// Of the weights of the last checkpoint.
  std::string weights(const std::string& run) const {
    return read("runs/" + run + "/checkpoints/last/weights.safetensors");
  }
  /// Every document but its first character is predicted once: of all, or of the held-out part.
  static constexpr int64_t kMostPredictions = 4 * 8;

  std::string path_;
};

TEST_F(Batching, PackedDocumentsAreLearnedFrom) {
  const CommandResult result = train_on("packed", {"log.interval=1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  double first = 0;
  double last = 0;
  for (const nlohmann::json& record : metrics("runs/tiny-1")) {
    if (record["kind"] == "evaluation") {
      if (first == 0) first = record["validation_loss"];
      last = record["validation_loss"];
      continue;
    }
    EXPECT_GT(record["predictions"], 0);
    EXPECT_LE(record["predictions"], kMostPredictions);
    EXPECT_GT(record["tokens_per_second"], 0);
  }
  EXPECT_NEAR(first, std::log(8), 0.2) << "as good as guessing among the characters";
  EXPECT_LT(last, 0.8 * first);
}

TEST_F(Batching, BucketsOfSeveralLengthsAreLearnedFrom) {
  const CommandResult result =
      train_on("buckets", {"data.buckets=[2, 5, 8]", "data.tokens_per_batch=40", "log.interval=1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(read("runs/tiny-1/log.txt"), HasSubstr("6 programs compiled in"));
  std::set<double> predictions;
  for (const nlohmann::json& record : metrics("runs/tiny-1"))
    if (record["kind"] == "train") predictions.insert(record["predictions"].get<double>());
  EXPECT_GT(predictions.size(), 3U) << "full and partly filled batches of three shapes";
  EXPECT_LE(*predictions.rbegin(), 40);
  const nlohmann::json json = summary("runs/tiny-1");
  EXPECT_LT(json["final_validation_loss"], 0.8 * std::log(8));
  EXPECT_THAT(read("runs/tiny-1/config.resolved.yaml"), HasSubstr("buckets: [2, 5, 8]"));

  const CommandResult eval = command({"eval", "runs/tiny-1", "--json"});
  ASSERT_EQ(eval.exit_code, 0) << eval.err;
  EXPECT_EQ(nlohmann::json::parse(eval.out)["loss"], json["best_validation_loss"]);
  const CommandResult sample = command({"generate", "runs/tiny-1", "--prompt", "s"});
  EXPECT_EQ(sample.exit_code, 0) << sample.err;
}

TEST_F(Batching, TracksAreLearnedFromAndTheSplitIsTold) {
  const CommandResult result =
      train({"data.batching=sequences", "data.split=sequences", "data.tokenizer=recorded",
             "train.batch_size=4", "model.context=4", "train.steps=30"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LT(summary("runs/tiny-1")["final_validation_loss"],
            metrics("runs/tiny-1").front()["validation_loss"]);
  const CommandResult eval = command({"eval", "runs/tiny-1"});
  EXPECT_THAT(eval.out, HasSubstr(": the last 0.2 of each of 4 sequences"));
  const nlohmann::json json =
      nlohmann::json::parse(command({"eval", "runs/tiny-1", "--batches", "1", "--json"}).out);
  EXPECT_EQ(json["predictions"], 4 * 4) << "quick";
  EXPECT_EQ(json["batches"], 1);
  EXPECT_EQ(json["split"], "the last 0.2 of each of 4 sequences");
  const CommandResult bench =
      command({"plan", "job.yaml", "data.path=", "data.batching=sequences", "--vocabulary", "9"});
  EXPECT_EQ(bench.exit_code, 0) << bench.err;
}

// Whatever makes the batches, a held-out document is predicted alike.
TEST_F(Batching, EvaluationCountsEveryPredictionOnce) {
  ASSERT_EQ(train_on("packed", {"train.steps=1"}).exit_code, 0);
  ASSERT_EQ(train_on("buckets", {"train.steps=1"}).exit_code, 0);
  std::vector<nlohmann::json> evaluations;
  for (const char* run : {"runs/tiny-1", "runs/tiny-2"}) {
    const CommandResult eval = command({"eval", run, "--data", "documents.jsonl", "--json"});
    ASSERT_EQ(eval.exit_code, 0) << eval.err;
    evaluations.push_back(nlohmann::json::parse(eval.out));
  }
  size_t characters = 0;
  size_t documents = 0;
  std::istringstream lines(read("documents.jsonl"));
  for (std::string line; std::getline(lines, line); ++documents)
    characters += nlohmann::json::parse(line)["text"].get<std::string>().size();
  EXPECT_EQ(evaluations[0]["predictions"], characters - documents);
  EXPECT_EQ(evaluations[1]["predictions"], characters - documents);
}

TEST_F(Batching, NeitherLoadersNorThreadsNorStagesChangeTheBits) {
  for (const std::string batching : {"packed", "buckets"}) {
    const std::string whole = batching + "-whole";
    const std::string parts = batching + "-parts";
    ASSERT_EQ(train_on(batching, {"run.dir=runs/" + whole}).exit_code, 0);
    for (const char* workers : {"0", "1", "3", "8"}) {
      const std::string run = batching + "-workers" + workers;
      ASSERT_EQ(train_on(batching, {"run.dir=runs/" + run, std::string("data.workers=") + workers,
                                    workers[0] == '3' ? "engine.threads=1" : "engine.threads=2"})
                    .exit_code,
                0);
      EXPECT_TRUE(weights(run) == weights(whole)) << run;
    }
    // The schedule is that of 60 steps: it is the run that is cut short.
    ASSERT_EQ(
        train_on(batching, {"run.dir=runs/" + parts, "optim.schedule=constant", "train.steps=25"})
            .exit_code,
        0);
    ASSERT_EQ(train_on(batching, {"run.dir=runs/" + parts, "optim.schedule=constant", "--resume"})
                  .exit_code,
              0);
    ASSERT_EQ(train_on(batching, {"run.dir=runs/" + whole + "-constant", "optim.schedule=constant"})
                  .exit_code,
              0);
    EXPECT_TRUE(weights(parts) == weights(whole + "-constant")) << batching;
  }
}

TEST_F(Batching, PlanKnowsEveryShape) {
  const CommandResult plan = command({"plan", "job.yaml", path_, "data.batching=buckets",
                                      "data.buckets=[2, 4, 8]", "data.tokens_per_batch=32"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  for (const char* shape : {"[16,2]", "[8,4]", "[4,8]"}) EXPECT_THAT(plan.out, HasSubstr(shape));
  EXPECT_THAT(plan.out, HasSubstr("one arena for all 6 programs"));
  ASSERT_EQ(train_on("buckets", {"data.buckets=[2, 4, 8]", "data.tokens_per_batch=32"}).exit_code,
            0);
  const CommandResult json =
      command({"plan", "job.yaml", path_, "data.batching=buckets", "data.buckets=[2, 4, 8]",
               "data.tokens_per_batch=32", "--json"});
  EXPECT_EQ(nlohmann::json::parse(json.out)["planned_peak_bytes"],
            summary("runs/tiny-1")["planned_peak_bytes"]);
}

TEST_F(Batching, TextsWithoutDocumentsOfTwoTokensAreRefused) {
  folder_.put("letters.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n{\"text\": \"c\"}\n");
  for (const std::string batching : {"packed", "buckets"}) {
    const CommandResult result = train({"data.path=letters.jsonl", "data.batching=" + batching});
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_THAT(result.err, HasSubstr("no document of its training part has two tokens"));
  }
}

}  // namespace
}  // namespace fullbore
