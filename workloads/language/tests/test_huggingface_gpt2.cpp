// A GPT-2 that Hugging Face's transformers made and saved (workloads/language/tests/golden/huggingface_gpt2.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/runtime/program.h"
#include "fullbore/text/huggingface_model.h"
#include "tests/support/device.h"
#include "tests/support/paths.h"
#include "tests/support/scratch_folder.h"
#include "workloads/language/gpt_job.h"
#include "workloads/language/huggingface_check.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;

using testing_support::Edited;

using nlohmann::json;
using ::testing::HasSubstr;

const std::string kGolden =
    testing::source_folder() + "/workloads/language/tests/golden/huggingface_gpt2";

constexpr LanguageModelConfig kModel = {.vocabulary = 17,
                                        .layers = 2,
                                        .heads = 2,
                                        .width = 8,
                                        .context = 12,
                                        .bias = true,
                                        .tie_head = true,
                                        .tanh_gelu = true};

Graph graph_of(const LanguageModelConfig& model, Shape tokens = {1, 1}) {
  Trace trace("logits", false);
  trace.result("logits", gpt(trace, trace.batch("tokens", {DType::i32, std::move(tokens)}), model));
  return trace.finish();
}

State state_of(const LanguageModelConfig& model) {
  return State(state_entries(graph_of(model)), cpu_device(2));
}

State filled(const std::string& folder, const LanguageModelConfig& model) {
  State state = state_of(model);
  const HuggingFaceModel source = HuggingFaceModel::open(folder);
  check_huggingface(source, decoder_config(model));
  source.fill(decoder_config(model), state,
              {"; set model.bias=true", "; set model.tie_head=false"});
  return state;
}

void export_model(const std::string& folder, const LanguageModelConfig& model, const State& state) {
  export_huggingface_model(
      folder, {.family = "gpt2", .decoder = decoder_config(model), .end_tokens = {}}, state);
}

/// The DataError with which a folder is refused.
std::string refusal(const std::string& folder, const LanguageModelConfig& model = kModel) {
  try {
    filled(folder, model);
    return "";
  } catch (const DataError& error) {
    return error.what();
  }
}

json golden_config() { return json::parse(read_file(kGolden + "/config.json").value()); }

/// The golden tensors in memory, to be written anew in other ways.
struct Tensors {
  std::vector<NamedTensor> named;
  std::vector<std::vector<char>> memory;

  Tensors() {
    const Checkpoint golden =
        read_checkpoint(kGolden + "/model.safetensors", Verify::kStructure).take_or_throw();
    for (const StoredTensor& tensor : golden.tensors()) {
      std::vector<char>& bytes = memory.emplace_back(tensor.bytes());
      EXPECT_TRUE(golden.read(tensor, bytes.data()).ok());
      named.push_back({tensor.name, tensor.type, bytes.data()});
    }
  }
  void add(const std::string& name, TensorType type, float value) {
    std::vector<char>& bytes = memory.emplace_back(static_cast<size_t>(type.bytes()));
    for (int64_t i = 0; i < type.elements(); ++i) store_element(bytes.data(), type.dtype, i, value);
    named.push_back({name, std::move(type), bytes.data()});
  }
  void erase(const std::string& name) {
    std::erase_if(named, [&](const NamedTensor& tensor) { return tensor.name == name; });
  }
  NamedTensor& operator[](const std::string& name) {
    return *std::ranges::find(named, name, &NamedTensor::name);
  }
};

std::string write(const testing::ScratchFolder& folder, const Tensors& tensors,
                  const json& config = golden_config()) {
  EXPECT_TRUE(write_checkpoint(folder / "model.safetensors", tensors.named, {}).ok());
  folder.put("config.json", config.dump());
  return folder.path();
}

void expect_same_parameters(const State& found, const State& expected) {
  ASSERT_EQ(found.entries().size(), expected.entries().size());
  for (const StateEntry& entry : expected.entries())
    EXPECT_EQ(found.read<std::byte>(entry.name), expected.read<std::byte>(entry.name))
        << entry.name;
}

TEST(HuggingFaceGpt2, LogitsAreThoseOfTransformers) {
  const json golden = json::parse(read_file(kGolden + "/logits.json").value());
  const std::vector<std::vector<int32_t>> tokens = golden["tokens"];
  const auto length = static_cast<int64_t>(tokens[0].size());
  State state = filled(kGolden, kModel);
  Program program = Program::compile(graph_of(kModel, {2, length}), state);
  alignas(64) int32_t batch[2 * 16];
  for (size_t row = 0; row < 2; ++row)
    std::ranges::copy(tokens[row], batch + row * tokens[0].size());
  const void* const pointers[] = {batch};
  program.run(pointers);
  const std::vector<float> logits = program.read_result<float>(program.output("logits"));
  size_t at = 0;
  for (const auto& text : golden["logits"])
    for (const auto& row : text)
      for (const auto& logit : row) {
        ASSERT_NEAR(logits[at], logit.get<double>(), 1e-4) << at;
        ++at;
      }
  EXPECT_EQ(at, 2 * tokens[0].size() * 17);
}

TEST(HuggingFaceGpt2, ReadsItsSizes) {
  const HuggingFaceModel model = HuggingFaceModel::open(kGolden);
  EXPECT_EQ(model.config().family, "gpt2");
  const nn::DecoderConfig& config = model.config().decoder;
  EXPECT_EQ(config.vocabulary, 17);
  EXPECT_EQ(config.layers, 2);
  EXPECT_EQ(config.heads, 2);
  EXPECT_EQ(config.width, 8);
  EXPECT_EQ(config.context, 12);
  EXPECT_TRUE(config.tie_head);
  EXPECT_TRUE(config.tanh_gelu);
}

TEST(HuggingFaceGpt2, WhatIsExportedIsWhatTransformersWrote) {
  const testing::ScratchFolder folder;
  const std::string exported = folder / "exported";
  export_model(exported, kModel, filled(kGolden, kModel));
  const Checkpoint checkpoint = read_checkpoint(exported + "/model.safetensors").take_or_throw();
  EXPECT_EQ(checkpoint.metadata().at("format"), "pt");
  const Tensors golden;
  EXPECT_EQ(checkpoint.tensors().size(), golden.named.size());
  for (const NamedTensor& tensor : golden.named) {
    const StoredTensor* found = checkpoint.find(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    ASSERT_EQ(found->type, tensor.type) << tensor.name;
    std::vector<char> bytes(found->bytes());
    ASSERT_TRUE(checkpoint.read(*found, bytes.data()).ok());
    EXPECT_EQ(std::memcmp(bytes.data(), tensor.data, bytes.size()), 0) << tensor.name;
  }
  const json config = json::parse(read_file(exported + "/config.json").value());
  const json expected = golden_config();
  for (const char* key : {"activation_function", "architectures", "model_type", "n_embd", "n_head",
                          "n_inner", "n_layer", "n_positions", "vocab_size", "layer_norm_epsilon",
                          "scale_attn_weights", "tie_word_embeddings"})
    EXPECT_EQ(config[key], expected[key]) << key;
  EXPECT_TRUE(config["eos_token_id"].is_null()) << "50256 is no token of this vocabulary";
}

TEST(HuggingFaceGpt2, EveryKindOfModelSurvivesTheRoundTrip) {
  for (const bool bias : {true, false})
    for (const bool tied : {true, false}) {
      LanguageModelConfig model = kModel;
      model.bias = bias;
      model.tie_head = tied;
      model.tanh_gelu = tied;
      State state = state_of(model);
      float value = 0;
      for (const StateEntry& entry : state.entries())
        for (float& element : Edited<float>(state, entry.name)) element = (value += 0.25F);
      const testing::ScratchFolder folder;
      export_model(folder / "x", model, state);
      expect_same_parameters(filled(folder / "x", model), state);
    }
}

TEST(HuggingFaceGpt2, ReadsNamesWithoutPrefixOldBuffersAndNarrowTypes) {
  const State expected = filled(kGolden, kModel);
  const testing::ScratchFolder folder;
  Tensors bare;
  for (NamedTensor& tensor : bare.named) tensor.name = tensor.name.substr(12);
  bare.add("h.0.attn.bias", {DType::f32, {1, 1, 12, 12}}, 1);
  bare.add("h.1.attn.masked_bias", {DType::f32, {}}, -1e4F);
  expect_same_parameters(filled(write(folder, bare), kModel), expected);

  Tensors narrow;
  NamedTensor& gain = narrow["transformer.h.0.ln_1.weight"];
  std::vector<char>& bytes = narrow.memory.emplace_back(16);
  for (int64_t i = 0; i < 8; ++i)
    store_element(bytes.data(), DType::bf16, i, static_cast<double>(i) / 4);
  gain.type.dtype = DType::bf16;
  gain.data = bytes.data();
  const State state = filled(write(folder, narrow), kModel);
  for (size_t i = 0; i < 8; ++i)
    EXPECT_EQ(state.read<float>("layers.0.attention_norm.weight")[i], static_cast<float>(i) / 4);
}

/// The golden tensors in two files and an index, as transformers writes models above a size.
struct Sharded {
  testing::ScratchFolder folder;
  Tensors halves[2];
  json index = {{"metadata", {{"total_size", 1}}}, {"weight_map", json::object()}};

  Sharded() {
    const size_t all = halves[0].named.size();
    halves[0].named.resize(all / 2, {"", {}, nullptr});
    halves[1].named.erase(halves[1].named.begin(),
                          halves[1].named.begin() + static_cast<std::ptrdiff_t>(all / 2));
    for (const size_t half : {0, 1})
      for (const NamedTensor& tensor : halves[half].named)
        index["weight_map"][tensor.name] = file(half);
  }
  static std::string file(size_t half) {
    return half == 0 ? "model-00001-of-00002.safetensors" : "model-00002-of-00002.safetensors";
  }
  std::string put() {
    for (const size_t half : {0, 1})
      EXPECT_TRUE(write_checkpoint(folder / file(half), halves[half].named, {}).ok());
    folder.put("config.json", golden_config().dump());
    folder.put("model.safetensors.index.json", index.dump());
    return folder.path();
  }
};

TEST(HuggingFaceGpt2, ReadsAModelInSeveralFiles) {
  Sharded sharded;
  expect_same_parameters(filled(sharded.put(), kModel), filled(kGolden, kModel));
}

TEST(HuggingFaceGpt2, AnIndexThatIsWrongIsRefused) {
  const auto with = [](const std::function<void(Sharded&)>& change) {
    Sharded sharded;
    change(sharded);
    return refusal(sharded.put());
  };
  const std::string some = "transformer.wte.weight";
  EXPECT_THAT(with([](Sharded& s) { s.index = json::array(); }),
              HasSubstr("model.safetensors.index.json: a JSON object with a 'weight_map'"));
  EXPECT_THAT(with([](Sharded& s) { s.index["weight_map"] = 3; }), HasSubstr("'weight_map'"));
  for (const json& name :
       {json("../x"), json("/etc/passwd"), json(""), json(3), json(".."), json()})
    EXPECT_THAT(with([&](Sharded& s) { s.index["weight_map"][some] = name; }),
                HasSubstr("the file of '" + some + "' is " + name.dump() + "; the name of a file"));
  EXPECT_THAT(with([&](Sharded& s) { s.index["weight_map"][some] = "none.safetensors"; }),
              HasSubstr("none.safetensors"));
  EXPECT_THAT(with([&](Sharded& s) { s.index["weight_map"]["other"] = Sharded::file(0); }),
              HasSubstr("'other' is said to be in model-00001-of-00002.safetensors, which has no"));
  EXPECT_THAT(with([](Sharded& s) { s.halves[1].named.push_back(s.halves[0].named.front()); }),
              HasSubstr("is in two of its files"));
  EXPECT_THAT(with([](Sharded& s) { s.halves[1].named.pop_back(); }), HasSubstr("has no such"));
}

TEST(HuggingFaceGpt2, AShorterContextTakesTheFirstPositions) {
  const State whole = filled(kGolden, kModel);
  LanguageModelConfig model = kModel;
  model.context = 5;
  const State state = filled(kGolden, model);
  const std::vector<float> positions = state.read<float>("position_embedding.weight");
  ASSERT_EQ(positions.size(), 40U);
  EXPECT_EQ(std::memcmp(positions.data(), whole.read<float>("position_embedding.weight").data(),
                        positions.size() * sizeof(float)),
            0);
}

TEST(HuggingFaceGpt2, TheHeadMayBeTiedOrNot) {
  const testing::ScratchFolder folder;
  LanguageModelConfig untied = kModel;
  untied.tie_head = false;
  const State state = filled(kGolden, untied);
  EXPECT_TRUE(std::ranges::equal(state.read<float>("head.weight"),
                                 state.read<float>("token_embedding.weight")))
      << "an own head starts as the table it was tied to";
  Tensors tensors;
  const NamedTensor table = tensors["transformer.wte.weight"];
  tensors.named.push_back({"lm_head.weight", table.type, table.data});
  EXPECT_EQ(refusal(write(folder, tensors)), "") << "a tied head may be stored too";
  tensors.named.pop_back();
  tensors.add("lm_head.weight", table.type, 0.5F);
  EXPECT_THAT(refusal(write(folder, tensors)), HasSubstr("set model.tie_head=false"));
  json config = golden_config();
  config["tie_word_embeddings"] = false;
  EXPECT_EQ(filled(write(folder, tensors, config), untied).read<float>("head.weight")[3], 0.5F);
}

// --- refusals ------------------------------------------------------------------------------------
TEST(HuggingFaceGpt2, OtherSizesAreRefusedByName) {
  const auto with = [](auto change) {
    LanguageModelConfig model = kModel;
    change(model);
    return refusal(kGolden, model);
  };
  EXPECT_THAT(with([](auto& m) { m.layers = 3; }),
              HasSubstr("model.layers is 3, " + kGolden + "/config.json has n_layer 2"));
  EXPECT_THAT(with([](auto& m) { m.heads = 4; }), HasSubstr("has n_head 2"));
  EXPECT_THAT(with([](auto& m) { m.width = 16; }), HasSubstr("has n_embd 8"));
  EXPECT_THAT(with([](auto& m) { m.context = 13; }), HasSubstr("has n_positions 12"));
  EXPECT_THAT(with([](auto& m) { m.vocabulary = 65; }),
              HasSubstr("the vocabulary is 65, " + kGolden + "/config.json has vocab_size 17"));
  EXPECT_THAT(with([](auto& m) { m.tanh_gelu = false; }),
              HasSubstr("model.activation is gelu, " + kGolden +
                        "/config.json has activation_function gelu_tanh"));
  EXPECT_THAT(with([](auto& m) { m.bias = false; }), HasSubstr("set model.bias=true"));
}

TEST(HuggingFaceGpt2, OtherTensorsAreRefusedByName) {
  const testing::ScratchFolder folder;
  Tensors missing;
  missing.erase("transformer.h.1.mlp.c_fc.weight");
  EXPECT_THAT(
      refusal(write(folder, missing)),
      HasSubstr("model.safetensors: the tensor 'transformer.h.1.mlp.c_fc.weight' is missing"));
  Tensors unknown;
  unknown.add("transformer.h.2.ln_1.weight", {DType::f32, {8}}, 1);
  EXPECT_THAT(refusal(write(folder, unknown)),
              HasSubstr("'transformer.h.2.ln_1.weight' is no tensor of a gpt2"));
  Tensors turned;
  turned["transformer.h.0.attn.c_attn.weight"].type.shape = {24, 8};
  EXPECT_THAT(
      refusal(write(folder, turned)),
      HasSubstr("'transformer.h.0.attn.c_attn.weight' is f32[24,8]; f32[8,24] was expected"));
}

TEST(HuggingFaceGpt2, OtherSettingsAreRefusedByName) {
  const testing::ScratchFolder folder;
  const Tensors tensors;
  const auto with = [&](const char* key, const json& value) {
    json config = golden_config();
    if (value.is_discarded())
      config.erase(key);
    else
      config[key] = value;
    return refusal(write(folder, tensors, config));
  };
  const json absent(json::value_t::discarded);
  EXPECT_THAT(with("model_type", "llama"), HasSubstr("'num_hidden_layers' is missing"));
  EXPECT_THAT(with("model_type", "bert"),
              HasSubstr("'model_type' is \"bert\"; gpt2, llama or qwen2 was expected"));
  EXPECT_THAT(with("n_inner", 31), HasSubstr("f32[8,31] was expected"));
  EXPECT_EQ(with("n_inner", 32), "");
  EXPECT_THAT(with("layer_norm_epsilon", 1e-6), HasSubstr("epsilon is 1e-05, "));
  EXPECT_THAT(with("hidden_sise", 3),
              HasSubstr("'hidden_sise' is a setting that is not known here"));
  EXPECT_THAT(with("scale_attn_by_inverse_layer_idx", true), HasSubstr("only false is known"));
  EXPECT_THAT(with("activation_function", "relu"), HasSubstr("gelu_new or gelu was expected"));
  EXPECT_THAT(with("n_layer", absent), HasSubstr("config.json: 'n_layer' is missing"));
  for (const json& value : {json("2"), json(0), json(-1), json(2.5), json(int64_t{1} << 40)})
    EXPECT_THAT(with("n_layer", value), HasSubstr("a whole number from 1 to 1000 was expected"));
  EXPECT_THAT(with("tie_word_embeddings", 1), HasSubstr("true or false was expected"));
}

TEST(HuggingFaceGpt2, WhatIsNoSuchFolderIsRefused) {
  const testing::ScratchFolder folder;
  EXPECT_THAT(refusal(folder / "none"), HasSubstr("is no folder with a model"));
  EXPECT_THAT(refusal(folder.path()), HasSubstr("config.json"));
  folder.put("config.json", "[1]");
  EXPECT_THAT(refusal(folder.path()), HasSubstr("config.json: not a JSON object"));
  folder.put("config.json", golden_config().dump());
  EXPECT_THAT(refusal(folder.path()), HasSubstr("model.safetensors"));
  folder.put("pytorch_model.bin", "x");
  EXPECT_THAT(refusal(folder.path()), HasSubstr("there is only pytorch_model.bin; save the model"));
  folder.put("model.safetensors", "x");
  EXPECT_THAT(refusal(folder.path()), HasSubstr("model.safetensors"));
}

TEST(HuggingFaceGpt2, ExportOverwritesNothing) {
  const testing::ScratchFolder folder;
  const State state = filled(kGolden, kModel);
  export_model(folder / "a/b", kModel, state);
  EXPECT_THROW(export_model(folder / "a/b", kModel, state), DataError);
  folder.put("file", "");
  EXPECT_THROW(export_model(folder / "file", kModel, state), DataError);
}

}  // namespace
}  // namespace fullbore
