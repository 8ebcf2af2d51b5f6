// model.name=llama from the command: trained, continued, measured, exported, gone on from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/job.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

class LlamaTest : public JobTest {
 protected:
  CommandResult train_llama(const std::string& name, std::vector<std::string> more = {}) const {
    std::vector<std::string> settings = {"run.dir=" + name, "model.name=llama",
                                         "model.key_value_heads=1", "model.rotary_theta=100"};
    settings.insert(settings.end(), more.begin(), more.end());
    return train(settings);
  }
};

// A checkpoint tells hashes of weights that lie elsewhere; where they lie is said by whoever reads it.
TEST_F(LlamaTest, FrozenWeightsAreNamedByWhoeverReadsARun) {
  const std::vector<std::string> stay = {"optim.learning_rate=1e-20",
                                         "optim.minimum_learning_rate=0"};
  const CommandResult first = train_llama("runs/first", stay);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  ASSERT_EQ(train_llama("runs/other", {"run.seed=2"}).exit_code, 0);
  const std::string weights = "runs/first/checkpoints/last/weights.safetensors";
  // All that is drawn is another's, so that what is generated is what the other generates.
  const CommandResult second = train_llama(
      "runs/second", {stay[0], stay[1], "run.seed=3", "train.freeze=[layers.*, token_embedding.*]",
                      "train.frozen_from=" + weights});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  const std::vector<std::vector<std::string>> commands = {
      {"generate", "runs/second", "--tokens", "8", "--temperature", "0"},
      {"generate", "runs/second", "--tokens", "8", "--prompt", "a", "--prompt", "aa"},
      {"eval", "runs/second", "--batches", "1"},
      {"export", "runs/second", "-o", "exported"}};
  for (std::vector<std::string> words : commands) {
    CommandResult result = command(words);
    EXPECT_EQ(result.exit_code, 3) << words[0];
    EXPECT_THAT(result.err, HasSubstr("name it by train.frozen_from or --frozen-from"));
    words.insert(words.end(), {"--frozen-from", "runs/other/checkpoints/last"});
    result = command(words);
    EXPECT_EQ(result.exit_code, 3) << words[0];
    EXPECT_THAT(result.err, HasSubstr("has the hash"));
    words.back() = weights;
    result = command(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    if (words[0] != "generate") continue;
    const std::string frozen = result.out;
    words.resize(words.size() - 2);
    words[1] = "runs/first";
    EXPECT_EQ(frozen, command(words).out);
  }
  const CommandResult resumed =
      command({"train", "runs/second", "--resume", "train.frozen_from=" + weights});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, ::testing::Not(HasSubstr("receivers"))) << "keys of another model";
}

// Background saves copy the State, but not what is read in a file.
TEST_F(LlamaTest, IsPlannedWithoutACopyOfWeightsInAFile) {
  ASSERT_EQ(train_llama("runs/first", {}).exit_code, 0);
  const std::string weights = "runs/first/checkpoints/last/weights.safetensors";
  const std::vector<std::string> frozen = {"train.freeze=[layers.*, token_embedding.*]",
                                           "train.frozen_from=" + weights};
  ASSERT_EQ(train_llama("runs/second", frozen).exit_code, 0);
  const auto plan = [&](const std::string& saves) {
    const CommandResult result = command({"plan", "runs/second/config.resolved.yaml", "--json",
                                          frozen[1], "train.background_saves=" + saves});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out);
  };
  const nlohmann::json with = plan("true"), without = plan("false");
  const int64_t lent = with["frozen_parameters"].get<int64_t>() * 4;
  ASSERT_GT(lent, 0);
  EXPECT_EQ(
      with["planned_peak_bytes"].get<int64_t>() - without["planned_peak_bytes"].get<int64_t>(),
      with["train"]["state_bytes"].get<int64_t>() - lent);
}

TEST_F(LlamaTest, IsTrainedContinuedMeasuredAndExported) {
  const CommandResult trained = train_llama("runs/first", {"model.attention_bias=qkv"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(command({"generate", "runs/first", "--tokens", "12", "--temperature", "0"}).exit_code,
            0);
  const CommandResult measured = command({"eval", "runs/first", "--batches", "1"});
  EXPECT_THAT(measured.out, HasSubstr("perplexity"));
  const CommandResult small = command(
      {"export", "--int8", "runs/first", "--smallest", "8", "-o", "small", "--gate", "0.05"});
  ASSERT_EQ(small.exit_code, 0) << small.err;
  EXPECT_EQ(command({"generate", "small", "--tokens", "12"}).exit_code, 0);

  ASSERT_EQ(command({"export", "runs/first", "-o", "exported"}).exit_code, 0);
  // The folder is used as it is, too.
  const std::vector<std::string> greedy = {"generate", "", "--tokens", "12", "--temperature", "0"};
  const auto generated = [&](const std::string& model) {
    std::vector<std::string> arguments = greedy;
    arguments[1] = model;
    return command(arguments).out;
  };
  EXPECT_NE(generated("exported"), "");
  EXPECT_EQ(generated("exported"), generated("runs/first"));
  // With more tokens than the table has rows it is refused.
  const std::string name = "exported/fullbore_tokenizer.json";
  const std::string tokenizer = read(name);
  std::string larger = tokenizer;
  larger.insert(larger.find("\",\"format"), "~");
  folder_.put(name, larger);
  EXPECT_THAT(command({"generate", "exported"}).err, HasSubstr("the token table "));
  folder_.put(name, tokenizer);
  const std::string from = "model.initialize_from=exported";
  const CommandResult back = train_llama("runs/back", {from, "model.attention_bias=qkv"});
  ASSERT_EQ(back.exit_code, 0) << back.err;
  EXPECT_THAT(back.err, HasSubstr("exported (qwen2 in the Hugging Face layout): "));
  EXPECT_THAT(back.err, HasSubstr("self_attn.q_proj.bias -> layers.*.attention.query.bias"));
  EXPECT_THAT(train_llama("runs/other", {from}).err,
              HasSubstr("exported/config.json has attention_bias qkv"));
  EXPECT_THAT(train({"run.dir=runs/gpt", from}).err,
              HasSubstr("exported/config.json has model_type qwen2"));
}

TEST_F(LlamaTest, KeepsDocumentsOfARowApartAndHasAWindow) {
  const CommandResult packed =
      train_llama("runs/packed", {"data.batching=packed", "model.window=3", "train.steps=2"});
  EXPECT_EQ(packed.exit_code, 0) << packed.err;
  EXPECT_THAT(command({"export", "runs/packed", "-o", "x"}).err,
              HasSubstr("transformers has no class with a window"));
}

}  // namespace
}  // namespace fullbore
