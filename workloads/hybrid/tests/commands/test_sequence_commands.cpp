#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/job.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A small recurrent model, trained on sequences.
class SequenceCommands : public JobTest {
 protected:
  SequenceCommands() {
    folder_.put("job.yaml", R"(run: {name: tiny, seed: 7}
data: {tokenizer: recorded, batching: sequences, split: sequences, validation_fraction: 0.2, initial_state: carry}
model: {name: hybrid, layers: 1, heads: 2, width: 16, context: 8, inner: 32, mamba_heads: 2, states: 4, hidden: 32,
  mix_rank: 4, decay_rank: 4, chunk: 8}
optim: {learning_rate: 0.01, warmup_steps: 3}
train: {steps: 20, batch_size: 4, eval_interval: 10, eval_batches: 3, checkpoint_interval: 5, sample_characters: 0}
engine: {threads: 2}
log: {interval: 2}
)");
  }
  std::string generated(const std::vector<std::string>& more) const {
    std::vector<std::string> all = {"generate", "runs/tiny-1", "--temperature", "0.9"};
    all.insert(all.end(), more.begin(), more.end());
    const CommandResult result = command(all);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  }
  std::string refused(const std::vector<std::string>& more, int code) const {
    std::vector<std::string> all = {"generate", "runs/tiny-1"};
    all.insert(all.end(), more.begin(), more.end());
    const CommandResult result = command(all);
    EXPECT_EQ(result.exit_code, code) << result.out;
    return result.err;
  }
  std::string tensors(const std::string& run) const {
    return read("runs/" + run + "/checkpoints/last/weights.safetensors") +
           read("runs/" + run + "/checkpoints/last/optimizer.safetensors");
  }
};

TEST_F(SequenceCommands, AResumedRunCarriesItsSequencesOn) {
  ASSERT_EQ(train({"optim.schedule=constant", "run.dir=runs/whole"}).exit_code, 0);
  ASSERT_EQ(
      train({"optim.schedule=constant", "run.dir=runs/parts", "train.steps=7", "log.interval=1"})
          .exit_code,
      0);
  ASSERT_EQ(
      train({"optim.schedule=constant", "run.dir=runs/parts", "train.eval_interval=3", "--resume"})
          .exit_code,
      0);
  EXPECT_TRUE(tensors("whole") == tensors("parts"));
  const std::string zero = "runs/zero";
  ASSERT_EQ(
      train({"optim.schedule=constant", "run.dir=" + zero, "data.initial_state=zero"}).exit_code,
      0);
  EXPECT_FALSE(tensors("whole") == tensors("zero"));
}

TEST_F(SequenceCommands, EvaluationsNameHowSequencesBegin) {
  for (const std::string mode : {"zero", "carry", "noise"}) {
    const std::string run = "runs/" + mode;
    ASSERT_EQ(train({"run.dir=" + run, "train.steps=4", "data.initial_state=" + mode}).exit_code,
              0);
    const auto json = nlohmann::json::parse(command({"eval", run, "--json"}).out);
    EXPECT_EQ(json["initial_state"], mode == "zero" ? "zero" : "carry");
    EXPECT_EQ(json["split"], "the last 0.2 of each of 4 sequences");
    const auto zero =
        nlohmann::json::parse(command({"eval", run, "--initial-state", "zero", "--json"}).out);
    EXPECT_EQ(zero["initial_state"], "zero");
    EXPECT_EQ(zero["predictions"], json["predictions"]);
    EXPECT_EQ(zero["loss"] == json["loss"], mode == "zero");
  }
  ASSERT_EQ(train({"run.dir=runs/k", "train.steps=4", "data.initial_state=carry-k",
                   "data.segments=3", "model.learned_state=true"})
                .exit_code,
            0);
  const CommandResult eval = command({"eval", "runs/k"});
  EXPECT_EQ(eval.exit_code, 0) << eval.err;
  EXPECT_THAT(eval.out, HasSubstr("initial state       carry, learned"));
  EXPECT_EQ(command({"generate", "runs/k", "--tokens", "5"}).exit_code, 0);
}

TEST_F(SequenceCommands, ATextGoesOnFromAFileAsIfItHadNotStopped) {
  ASSERT_EQ(train().exit_code, 0);
  const std::string whole = generated({"--prompt", "the sea ", "--tokens", "50"});
  const std::string first =
      generated({"--prompt", "the sea ", "--tokens", "20", "--state-out", "s"});
  const std::string rest = generated({"--state-in", "s", "--tokens", "30"});
  EXPECT_EQ(first.substr(0, first.size() - 1) + rest, whole);
  // A prompt is read at once or in two calls.
  generated({"--prompt", "the sea ", "--tokens", "0", "--state-out", "t"});
  EXPECT_THAT(refused({"--state-in", "t"}, 2), HasSubstr("pass --prompt to go on"));
  EXPECT_THAT(generated({"--state-in", "t", "--prompt", "is ", "--tokens", "9"}),
              StartsWith("is "));
}

TEST_F(SequenceCommands, EveryBranchCanBeLeftAndGoneOnWith) {
  const std::vector<std::vector<std::string>> branches = {
      {"model.branch=static_decay"}, {"model.branch=channel_softmax"}, {"model.channel_mix=true"}};
  for (const std::vector<std::string>& branch : branches) {
    std::vector<std::string> settings = {"run.dir=runs/" + branch[0], "train.steps=2"};
    settings.insert(settings.end(), branch.begin(), branch.end());
    ASSERT_EQ(train(settings).exit_code, 0) << branch[0];
    const auto generate = [&](std::vector<std::string> more) {
      more.insert(more.begin(), {"generate", "runs/" + branch[0]});
      const CommandResult result = command(more);
      EXPECT_EQ(result.exit_code, 0) << result.err;
      return result.out;
    };
    const std::string whole = generate({"--prompt", "calm", "--tokens", "12"});
    const std::string first = generate({"--prompt", "calm", "--tokens", "5", "--state-out", "s"});
    const std::string rest = generate({"--state-in", "s", "--tokens", "7"});
    EXPECT_EQ(first.substr(0, first.size() - 1) + rest, whole) << branch[0];
  }
}

TEST_F(SequenceCommands, StatesOfAnotherModelOrDamagedOnesAreRefused) {
  ASSERT_EQ(train({"train.steps=1"}).exit_code, 0);
  generated({"--tokens", "3", "--state-out", "s", "--samples", "2"});
  EXPECT_THAT(refused({"--state-in", "s"}, 2), HasSubstr("s holds 2 texts: pass --samples 2"));
  EXPECT_THAT(refused({"--state-in", "nothing"}, 3), HasSubstr("nothing"));
  const std::string bytes = read("s");
  folder_.put("torn", bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(refused({"--state-in", "torn"}, 3), HasSubstr("torn"));
  ASSERT_EQ(train({"train.steps=2"}).exit_code, 0);
  const CommandResult other =
      command({"generate", "runs/tiny-2", "--state-in", "s", "--samples", "2"});
  EXPECT_EQ(other.exit_code, 3);
  EXPECT_THAT(other.err, HasSubstr("states of another model"));
  EXPECT_EQ(command({"generate", "runs/tiny-1", "--state-out", "no/such/folder"}).exit_code, 3);
}

}  // namespace
}  // namespace fullbore
