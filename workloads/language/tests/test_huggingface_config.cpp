// config.json of Hugging Face's transformers: every setting is obeyed or refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fullbore/base/error.h"
#include "fullbore/text/huggingface_config.h"

namespace fullbore {
namespace {

using nlohmann::json;
using nn::DecoderConfig;
using Kind = nn::RotaryScaling::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

HuggingFaceConfig parsed(const json& config) {
  return parse_huggingface_config(config.dump(), "config.json");
}

std::string refusal(const json& config) {
  try {
    parsed(config);
    return "";
  } catch (const DataError& error) {
    return error.what();
  }
}

/// As published checkpoints of Llama 3.1 have it, in small.
json llama_json() {
  return json::parse(R"({
    "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": 1, "eos_token_id": [7, 8, 9], "hidden_act": "silu", "hidden_size": 64,
    "initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 131072,
    "mlp_bias": false, "model_type": "llama", "num_attention_heads": 8, "num_hidden_layers": 3,
    "num_key_value_heads": 2, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
    "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                     "original_max_position_embeddings": 8192, "rope_type": "llama3"},
    "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
    "transformers_version": "4.42.3", "use_cache": true, "vocab_size": 1000})");
}

/// As published checkpoints of Qwen2.5 have it.
json qwen2_json() {
  return json::parse(R"({
    "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 5,
    "eos_token_id": 6, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
    "intermediate_size": 96, "max_position_embeddings": 32768, "max_window_layers": 3,
    "model_type": "qwen2", "num_attention_heads": 8, "num_hidden_layers": 3,
    "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
    "sliding_window": 131072, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
    "transformers_version": "4.43.1", "use_cache": true, "use_sliding_window": false,
    "vocab_size": 1000})");
}

json changed(json config, const char* key, const json& value) {
  config[key] = value;
  return config;
}

TEST(HuggingFaceConfig, ReadsLlama) {
  const HuggingFaceConfig config = parsed(llama_json());
  EXPECT_EQ(config.family, "llama");
  EXPECT_THAT(config.end_tokens, ElementsAre(7, 8, 9));
  const DecoderConfig expected{.style = DecoderConfig::Style::llama,
                               .vocabulary = 1000,
                               .layers = 3,
                               .heads = 8,
                               .width = 64,
                               .hidden = 96,
                               .context = 131072,
                               .tie_head = false,
                               .epsilon = 1e-5,
                               .groups = 2,
                               .head_width = 8,
                               .theta = 500000,
                               .scaling = {Kind::llama3, 8, 1, 4, 8192}};
  EXPECT_EQ(config.decoder, expected);
}

TEST(HuggingFaceConfig, ReadsQwen2AndItsWindow) {
  HuggingFaceConfig config = parsed(qwen2_json());
  EXPECT_EQ(config.family, "qwen2");
  EXPECT_THAT(config.end_tokens, ElementsAre(6));
  EXPECT_TRUE(config.decoder.attention_bias);
  EXPECT_FALSE(config.decoder.projection_bias);
  EXPECT_TRUE(config.decoder.tie_head);
  EXPECT_EQ(config.decoder.window, 0) << "use_sliding_window is false";
  json windowed = changed(qwen2_json(), "use_sliding_window", true);
  windowed["sliding_window"] = 32;
  windowed["max_window_layers"] = 2;
  config = parsed(windowed);
  EXPECT_EQ(config.decoder.window, 32);
  EXPECT_EQ(config.decoder.window_layer, 2);
  windowed["layer_types"] = {"full_attention", "sliding_attention", "sliding_attention"};
  EXPECT_EQ(parsed(windowed).decoder.window_layer, 1) << "layer_types go before max_window_layers";
  windowed["max_window_layers"] = 28;
  windowed.erase("layer_types");
  EXPECT_EQ(parsed(windowed).decoder.window, 0) << "no layer is that high";
}

TEST(HuggingFaceConfig, ReadsOtherWaysToSayTheSame) {
  json config = llama_json();
  config.erase("rope_theta");
  config["rope_parameters"] = config["rope_scaling"];
  config["rope_parameters"]["rope_theta"] = 500000.0;
  config.erase("rope_scaling");
  config.erase("torch_dtype");
  config["dtype"] = "bfloat16";
  EXPECT_EQ(parsed(config).decoder, parsed(llama_json()).decoder) << "as version 5 writes it";
  config = changed(llama_json(), "rope_scaling", {{"type", "linear"}, {"factor", 2}});
  EXPECT_EQ(parsed(config).decoder.scaling.kind, Kind::linear);
  EXPECT_EQ(parsed(config).decoder.scaling.factor, 2);
  config = changed(llama_json(), "rope_scaling", nullptr);
  EXPECT_EQ(parsed(config).decoder.scaling.kind, Kind::none);
  config.erase("num_key_value_heads");
  config.erase("eos_token_id");
  config["head_dim"] = 16;
  config["attention_bias"] = true;
  EXPECT_EQ(parsed(config).decoder.groups, 8);
  EXPECT_EQ(parsed(config).decoder.head_width, 16);
  EXPECT_TRUE(parsed(config).decoder.projection_bias);
  EXPECT_THAT(parsed(config).end_tokens, IsEmpty());
}

TEST(HuggingFaceConfig, RefusesByNameWhatItWouldNotObey) {
  const auto llama = [](const char* key, const json& value) {
    return refusal(changed(llama_json(), key, value));
  };
  const auto qwen2 = [](const char* key, const json& value) {
    return refusal(changed(qwen2_json(), key, value));
  };
  EXPECT_EQ(llama("hidden_act", "silu"), "");
  EXPECT_EQ(llama("hidden_act", "gelu"),
            "config.json: 'hidden_act' is \"gelu\"; silu was expected");
  EXPECT_THAT(llama("num_key_value_heads", 3), HasSubstr("a divisor of num_attention_heads"));
  EXPECT_THAT(llama("head_dim", 7), HasSubstr("'head_dim' is 7; heads of an even width"));
  EXPECT_THAT(llama("hidden_size", 65), HasSubstr("'hidden_size' is 65"));
  EXPECT_THAT(llama("vocab_size", -2), HasSubstr("'vocab_size' is -2; a whole number from 1"));
  EXPECT_THAT(llama("rms_norm_eps", -2), HasSubstr("'rms_norm_eps' is -2; a number from 0"));
  EXPECT_THAT(llama("rope_theta", 0), HasSubstr("'rope_theta' is 0; a number above 0"));
  EXPECT_THAT(llama("tie_word_embeddings", "yes"), HasSubstr("true or false was expected"));
  EXPECT_THAT(llama("eos_token_id", {1, -2}), HasSubstr("'eos_token_id' is [1,-2]"));
  EXPECT_THAT(llama("rope_interleaved", true), HasSubstr("only false is known here"));
  EXPECT_THAT(llama("partial_rotary_factor", 0.5), HasSubstr("only 1.0 is known here"));
  EXPECT_THAT(llama("quantization_config", {{"bits", 4}}),
              HasSubstr("'quantization_config' is a setting that is not known here"));
  EXPECT_THAT(llama("mlp_biass", true), HasSubstr("Did you mean 'mlp_bias'?"));
  EXPECT_THAT(llama("auto_map", json::object()), HasSubstr("'auto_map'"));
  EXPECT_THAT(llama("model_type", "mistral"),
              HasSubstr("'model_type' is \"mistral\"; gpt2, llama or qwen2 was expected"));
  const auto scaling = [&](const json& value) { return llama("rope_scaling", value); };
  EXPECT_THAT(scaling({{"rope_type", "yarn"}, {"factor", 4}}),
              HasSubstr("'rope_scaling.rope_type' is \"yarn\"; default, linear or llama3"));
  EXPECT_THAT(scaling({{"rope_type", "linear"}}), HasSubstr("'rope_scaling.factor' is missing"));
  EXPECT_THAT(scaling({{"rope_type", "llama3"},
                       {"factor", 8},
                       {"low_freq_factor", 4},
                       {"high_freq_factor", 4}}),
              HasSubstr("'rope_scaling.high_freq_factor' is 4; more than low_freq_factor"));
  EXPECT_THAT(scaling({{"rope_type", "linear"}, {"factor", 2}, {"mscale", 1}}),
              HasSubstr("'rope_scaling.mscale' is a setting that is not known here"));
  EXPECT_THAT(scaling(3), HasSubstr("'rope_scaling' is 3; an object was expected"));
  EXPECT_THAT(qwen2("attention_bias", false), HasSubstr("only true is known here"));
  EXPECT_THAT(qwen2("layer_types", {"full_attention"}), HasSubstr("one of each of 3 layers"));
  json windowed = changed(qwen2_json(), "use_sliding_window", true);
  windowed["layer_types"] = {"sliding_attention", "full_attention", "full_attention"};
  EXPECT_THAT(refusal(windowed), HasSubstr("full_attention, and then sliding_attention"));
  windowed["layer_types"] = {"full_attention", "full_attention", "sliding_attention"};
  windowed["sliding_window"] = nullptr;
  EXPECT_THAT(refusal(windowed), HasSubstr("a number of tokens was expected"));
  EXPECT_THAT(refusal(json::array()), HasSubstr("not a JSON object"));
}

TEST(HuggingFaceConfig, WhatIsWrittenSaysTheSame) {
  json windowed = changed(qwen2_json(), "use_sliding_window", true);
  windowed["max_window_layers"] = 1;
  json biased = changed(llama_json(), "attention_bias", true);
  biased["mlp_bias"] = true;
  biased["head_dim"] = 10;
  for (const json& each : {llama_json(), qwen2_json(), windowed, biased}) {
    const HuggingFaceConfig config = parsed(each);
    const std::string text = huggingface_config_json(config);
    const HuggingFaceConfig again = parse_huggingface_config(text, "again");
    EXPECT_EQ(again.decoder, config.decoder) << text;
    EXPECT_EQ(again.family, config.family);
    EXPECT_EQ(again.end_tokens, config.end_tokens);
  }
}

TEST(HuggingFaceConfig, ModelsWithoutAClassAreRefused) {
  const auto refused = [](const std::function<void(DecoderConfig&)>& change) {
    DecoderConfig model = parsed(llama_json()).decoder;
    change(model);
    try {
      huggingface_family(model);
      return std::string();
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(refused([](auto&) {}), "");
  EXPECT_THAT(refused([](auto& m) { m.window = 4; }), HasSubstr("no class with a window"));
  EXPECT_THAT(refused([](auto& m) { m.projection_bias = true; }), HasSubstr("projection alone"));
  EXPECT_THAT(refused([](auto& m) { m.attention_bias = m.mlp_bias = true; }),
              HasSubstr("biases of the MLP but none of the projection"));
}

}  // namespace
}  // namespace fullbore
