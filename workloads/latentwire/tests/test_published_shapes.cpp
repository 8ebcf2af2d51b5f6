#include <gtest/gtest.h>

#include "fullbore/data/chat_template.h"
#include "fullbore/nn/decoder_model.h"
#include "workloads/latentwire/published_shapes.h"

namespace fullbore::latentwire {
namespace {

// Section 2.5 of the specification, and the model card of SmolLM2-135M.
TEST(PublishedShapes, HaveTheParametersOfTheirModels) {
  const auto parameters = [](const char* name) {
    return nn::decoder_parameters(published_shape(name).model.decoder);
  };
  EXPECT_EQ(parameters("llama-3.1-8b"), 8'030'261'248);
  EXPECT_EQ(parameters("qwen2.5-7b"), 7'615'616'512);
  EXPECT_EQ(parameters("smollm2-135m"), 134'515'008);
}

TEST(PublishedShapes, SpeakAsTheirFamiliesDo) {
  const auto family = [](const char* name) {
    return ChatTemplate::of(*published_shape(name).tokenizer).family();
  };
  EXPECT_EQ(family("llama-3.1-8b"), ChatFamily::kLlama31);
  EXPECT_EQ(family("qwen2.5-7b"), ChatFamily::kQwen25);
  EXPECT_EQ(family("smollm2-135m"), ChatFamily::kSmolLm2);
  EXPECT_EQ(published_shape("llama-3.1-8b").tokenizer->beginning_of_text(), 256);
  EXPECT_EQ(published_shape("qwen2.5-7b").tokenizer->beginning_of_text(), -1);
}

}  // namespace
}  // namespace fullbore::latentwire
