#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "fullbore/base/files.h"
#include "fullbore/text/text_keys.h"
#include "fullbore/train/config_schema.h"
#include "tests/support/configs.h"
#include "tests/support/paths.h"
#include "workloads/language/gpt_keys.h"
#include "workloads/language/llama_job.h"
#include "workloads/language/llama_keys.h"

namespace fullbore {
namespace {

using testing::config_refusal;
using testing::expect_shows_its_keys;
using ::testing::HasSubstr;

void expect_model(const Config& config, const TextKeys::Model& sizes, double dropout) {
  EXPECT_EQ(config.model.name, "gpt");
  EXPECT_EQ(text_keys(config).model, sizes);
  EXPECT_EQ(config.model.dropout, dropout);
  EXPECT_EQ(gpt_keys(config), (GptKeys{.bias = false, .tie_head = true}));
}

TEST(GptConfig, IsShownWhole) { expect_shows_its_keys("default"); }

TEST(LlamaConfig, IsShownWhole) {
  const std::string yaml =
      read_file(testing::source_folder() + "/configs/llama-shakespeare-cpu.yaml").value();
  for (const ConfigField& field : llama_fields())
    EXPECT_THAT(yaml, HasSubstr("\n  " + field.key.substr(field.key.find('.') + 1) + ":"));
}

TEST(LlamaConfig, TheSmolLm2ConfigIsItsShape) {
  const Config config = load_config(testing::source_folder() + "/configs/smollm2-135m.yaml");
  EXPECT_EQ(nn::decoder_parameters(llama_config(config, 49152)), 134'515'008);
}

TEST(GptConfig, HasKeysOfItsOwn) {
  for (const std::string& other : find_config_field("model.name")->choices) {
    if (other == "gpt") continue;
    EXPECT_THAT(
        config_refusal("model:\n  bias: true\n", {"model.name=" + other}),
        HasSubstr("configs/x.yaml:2: 'model.bias' is a key of model.name=gpt, not of " + other));
  }
}

TEST(LlamaConfig, KeysThatDoNotFitAreRefusedByName) {
  const auto refusal = [](std::vector<std::string> settings) {
    settings.emplace_back("model.name=llama");
    return config_refusal("", settings);
  };
  EXPECT_EQ(refusal({"model.key_value_heads=2", "model.tie_head=false"}), "");
  EXPECT_THAT(refusal({"model.key_value_heads=3"}),
              HasSubstr("model.heads 4 (default) is not a multiple of model.key_value_heads 3"));
  EXPECT_THAT(refusal({"model.head_width=7"}), HasSubstr("model.head_width 7 (command line) is"));
  EXPECT_THAT(refusal({"model.width=12"}), HasSubstr("heads of an odd width"));
  EXPECT_THAT(refusal({"model.rotary_scaling=llama3", "model.rotary_low=4"}),
              HasSubstr("model.rotary_low 4 (command line) is not less than model.rotary_high 4"));
  for (const ConfigField& field : llama_fields())
    if (field.choices.empty()) {
      EXPECT_THAT(refusal({field.key + "=-2"}), HasSubstr("-2")) << field.key;
    }
  EXPECT_THAT(config_refusal("", {"model.window=4"}),
              HasSubstr("'model.window' is a key of model.name=llama, not of gpt"));
}

TEST(GptConfig, IsTheDefault) {
  EXPECT_EQ(Config().model.name, "gpt");
  EXPECT_THAT(config_refusal("", {"model.bais=true"}), HasSubstr("Did you mean 'model.bias'?"));
}

// config/train_shakespeare_char.py of nanoGPT.
TEST(GptConfig, TheLargerShakespeareConfigIsNanoGptsForAGpu) {
  const Config config = load_config(testing::source_folder() + "/configs/gpt-shakespeare.yaml");
  EXPECT_EQ(config.train.steps, 5000);
  EXPECT_EQ(config.train.batch_size, 64);
  expect_model(config, {6, 6, 384, 256}, 0.2);
  EXPECT_EQ(config.optim, (Config::Optim{"adamw", 1e-3, 1e-4, 100, false, "cosine", 0.9, 0.99, 1e-8,
                                         0.1, "matrices", 1}));
}

TEST(GptConfig, TheShakespeareConfigIsNanoGpts) {
  const Config config = load_config(testing::source_folder() + "/configs/gpt-shakespeare-cpu.yaml");
  EXPECT_EQ(config.train.steps, 2000);
  EXPECT_EQ(config.train.batch_size, 12);
  EXPECT_EQ(config.train.eval_interval, 250);
  expect_model(config, {4, 4, 128, 64}, 0);
  EXPECT_EQ(config.optim, (Config::Optim{"adamw", 1e-3, 1e-4, 100, false, "cosine", 0.9, 0.99, 1e-8,
                                         0.1, "matrices", 1}));
}

}  // namespace
}  // namespace fullbore
