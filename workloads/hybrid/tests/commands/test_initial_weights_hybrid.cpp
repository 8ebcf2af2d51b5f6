#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "fullbore/train/config.h"
#include "tests/support/job.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* kHybrid = R"(run: {name: tiny, seed: 7}
data: {path: text.txt, validation_fraction: 0.2}
model: {name: hybrid, layers: 2, heads: 2, width: 16, context: 16, mix_rank: 4, decay_rank: 4, inner: 32,
  mamba_heads: 2, states: 8, hidden: 32, chunk: 16}
optim: {learning_rate: 0.01, warmup_steps: 3}
train: {steps: 10, batch_size: 4, eval_interval: 10, eval_batches: 3, checkpoint_interval: 10, sample_characters: 0}
engine: {threads: 2}
log: {interval: 5}
)";

const std::vector<std::string> kStandStill = {"train.steps=1", "optim.learning_rate=0",
                                              "optim.minimum_learning_rate=0"};

class InitialWeightsTest : public JobTest {
 protected:
  InitialWeightsTest() {
    folder_.put("hybrid.yaml", kHybrid);
    folder_.put("other.txt", read("text.txt") + "X marks the sea.\n");
  }
  CommandResult hybrid(const std::string& run, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"train", "hybrid.yaml", "run.dir=" + run});
    return command(more);
  }
  CommandResult from(const std::string& source, const std::string& run,
                     std::vector<std::string> more = {}) const {
    more.insert(more.end(), kStandStill.begin(), kStandStill.end());
    more.push_back("model.initialize_from=" + source);
    return hybrid(run, more);
  }
  void expect_refusal(const CommandResult& result, int code, const std::string& message) const {
    EXPECT_EQ(result.exit_code, code) << result.err;
    EXPECT_THAT(result.err, HasSubstr(message));
  }
};

// A step of no length leaves the weights: the new run validates as the old one did, and as no random one does.
TEST_F(InitialWeightsTest, AHybridGoesOnFromARunWithEverythingElseAnew) {
  ASSERT_EQ(hybrid("first").exit_code, 0);
  const CommandResult second = from("first", "second");
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(summary("second")["final_validation_loss"], summary("first")["best_validation_loss"]);
  EXPECT_EQ(summary("second")["steps"], 1);
  EXPECT_THAT(second.err, HasSubstr("tensors taken; moments, step and data begin anew"));
  EXPECT_THAT(read("second/log.txt"), HasSubstr("layers.*.rwkv.bonus (2)"));
  // The source is asked for no more once the new run has been saved.
  fs::rename(folder_ / "first", folder_ / "away");
  const CommandResult resumed = command({"train", "second", "--resume", "train.steps=2"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
}

TEST_F(InitialWeightsTest, MovingAveragesAreTakenWhereTheRunIsJudgedByThem) {
  ASSERT_EQ(hybrid("first", {"optim.ema_decay=0.5", "train.evaluate=ema"}).exit_code, 0);
  const CommandResult second = from("first/checkpoints/best", "second");
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(summary("second")["final_validation_loss"], summary("first")["best_validation_loss"]);
  EXPECT_THAT(second.err, HasSubstr("moving averages"));
}

TEST_F(InitialWeightsTest, TokensKeepTheirRowsInAnotherVocabulary) {
  ASSERT_EQ(hybrid("first").exit_code, 0);
  const CommandResult second = from("first", "second", {"data.path=other.txt"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("in part  embed.weight: "));
  // Two tokens are new, X and m: as a whole the table would begin with X.
  const CommandResult back = from("second", "third");
  ASSERT_EQ(back.exit_code, 0) << back.err;
  EXPECT_EQ(summary("third")["final_validation_loss"], summary("first")["best_validation_loss"]);
}

TEST_F(InitialWeightsTest, WhatDiffersIsNamedAndTakenInPartOnRequest) {
  ASSERT_EQ(hybrid("first").exit_code, 0);
  expect_refusal(from("first", "deeper", {"model.layers=3"}), 2,
                 "layers.*.norm.weight: the checkpoint has none");
  EXPECT_FALSE(fs::exists(folder_ / "deeper")) << "refused before a run is made";
  expect_refusal(from("first", "wider", {"model.hidden=48"}), 2,
                 "layers.*.up.weight: f32[48,16] here, f32[32,16] in the checkpoint (2)");
  expect_refusal(from("first", "shallower", {"model.layers=1"}), 2, "the model has none");
  const CommandResult partial =
      from("first", "partial", {"model.layers=3", "model.initialize_partial=true"});
  ASSERT_EQ(partial.exit_code, 0) << partial.err;
  EXPECT_THAT(partial.err, HasSubstr("random   layers.*.norm.weight: the checkpoint has none"));
  expect_refusal(
      from("first", "nothing",
           {"model.width=20", "model.inner=36", "model.states=9", "model.hidden=20",
            "model.mix_rank=3", "model.decay_rank=3", "model.heads=1", "model.mamba_heads=1",
            "model.convolution=3", "model.initialize_partial=true"}),
      2, "nothing of ");
}

TEST_F(InitialWeightsTest, LinksLeadNowhere) {
  ASSERT_EQ(hybrid("first").exit_code, 0);
  const fs::path best = fs::canonical(folder_ / "first/checkpoints/best");
  fs::create_directory(folder_ / "gift");
  // Of a stranger's checkpoint one file is a link to a file that it does not hold.
  for (const fs::directory_entry& entry : fs::directory_iterator(best))
    fs::copy_file(entry.path(), folder_ / ("gift/" + entry.path().filename().string()));
  ASSERT_EQ(from("gift", "copied").exit_code, 0);
  fs::remove(folder_ / "gift/config.json");
  fs::create_symlink(best / "config.json", folder_ / "gift/config.json");
  const std::string gift = fs::canonical(folder_ / "gift").string();
  const std::string leads_out = "gift/config.json is a link that leads out of " + gift + ", to ";
  expect_refusal(from("gift", "linked"), 3, leads_out + best.string() + "/config.json\n");
  fs::remove(folder_ / "gift/config.json");
  fs::create_symlink("/dev/zero", folder_ / "gift/config.json");
  expect_refusal(from("gift", "device"), 3, leads_out + "/dev/zero\n");
  // A run whose checkpoint lies elsewhere.
  fs::create_directories(folder_ / "run/checkpoints");
  fs::create_symlink(best, folder_ / "run/checkpoints/best");
  expect_refusal(from("run", "elsewhere"), 3, "is a link that leads out of ");
  expect_refusal(from("absent", "none"), 3, "there is no run or checkpoint");
  EXPECT_FALSE(fs::exists(folder_ / "linked"));
}

TEST_F(InitialWeightsTest, EightBitsAreNotTrained) {
  ASSERT_EQ(hybrid("first").exit_code, 0);
  ASSERT_EQ(
      command({"export", "--int8", "first", "-o", "small", "--gate", "0.05", "--smallest", "4"})
          .exit_code,
      0);
  expect_refusal(from("small", "second"), 3, "a weight in 8 bits, which is not trained");
}

TEST_F(InitialWeightsTest, LinesOfTrainingTellPerplexityAndTheBranches) {
  const CommandResult trained = hybrid("run");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_THAT(trained.err,
              ::testing::ContainsRegex("step 5/10  loss [0-9.]+  val [0-9.]+  ppl [0-9.]+/[0-9.]+  "
                                       "R/M [0-9.]+ .(OK|WARN|FAIL)"));
  const double loss = summary("run")["final_train_loss"];
  double told = 0;
  const size_t at = trained.err.rfind("  ppl ");
  ASSERT_NE(at, std::string::npos);
  told = std::stod(trained.err.substr(at + 6));
  EXPECT_NEAR(told, std::exp(loss), 2e-3 * std::exp(loss));
}

TEST_F(InitialWeightsTest, ABranchIsLeftOutOnRequest) {
  ASSERT_EQ(hybrid("run").exit_code, 0);
  const auto measured = [&](const std::string& branch) {
    const CommandResult result = command({"eval", "run", "--ablate", branch, "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out);
  };
  const nlohmann::json rwkv = measured("rwkv"), mamba = measured("mamba");
  EXPECT_EQ(rwkv["loss"], mamba["loss"]);
  const double without_rwkv = rwkv["without_rwkv"]["loss"];
  const double without_mamba = mamba["without_mamba"]["loss"];
  EXPECT_NE(without_rwkv, without_mamba);
  EXPECT_NE(without_rwkv, rwkv["loss"]);
  EXPECT_DOUBLE_EQ(rwkv["without_rwkv"]["loss_difference"],
                   without_rwkv - rwkv["loss"].get<double>());
  EXPECT_DOUBLE_EQ(mamba["without_mamba"]["perplexity"], std::exp(without_mamba));
  EXPECT_THAT(command({"eval", "run", "--ablate", "mamba"}).out, HasSubstr("without mamba"));
  expect_refusal(command({"eval", "run", "--ablate", "rwkw"}), 2, "rwkv");
}

TEST_F(InitialWeightsTest, OtherModelsAreRefused) {
  testing::use_command("fullbore_tiny");  // it has another model, whichever workloads there are
  const std::string other = "tiny";
  ASSERT_EQ(train({"run.dir=other", "train.steps=1", "model.name=tiny"}).exit_code, 0);
  expect_refusal(hybrid("crossed", {"model.initialize_from=other"}), 2,
                 "model.name is hybrid, there " + other);
  expect_refusal(command({"eval", "other", "--ablate", "rwkv"}), 2, "model.name is " + other);
}

}  // namespace
}  // namespace fullbore
