// Llamas and Qwen2s whose results Hugging Face's transformers computed (workloads/language/tests/golden/huggingface_llama.py),
// read from folders as it saves them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/base/processor.h"
#include "fullbore/runtime/program.h"
#include "fullbore/text/huggingface_model.h"
#include "fullbore/train/generator.h"
#include "tests/support/device.h"
#include "tests/support/paths.h"
#include "tests/support/scratch_folder.h"
#include "workloads/language/huggingface_check.h"
#include "workloads/language/llama.h"

namespace fullbore {
namespace {

using nlohmann::json;
using nn::DecoderConfig;
using ::testing::HasSubstr;
using testing_support::cpu_device;

const std::string kGolden =
    testing::source_folder() + "/workloads/language/tests/golden/huggingface_llama/";

// --- the folder ----------------------------------------------------------------------------------

/// The counter-based values of the golden script.
std::vector<float> drawn(const HuggingFaceName& name) {
  uint64_t seed = 0xCBF29CE484222325;
  for (const char byte : name.theirs) seed = (seed ^ static_cast<uint8_t>(byte)) * 0x100000001B3;
  const bool vector = name.shape.rank() == 1;
  const double power =
      vector ? -2 : std::floor(std::log2(3.0 / static_cast<double>(name.shape[1])) / 2);
  const auto scale = static_cast<float>(std::exp2(power));
  const float mean = vector && name.theirs.find("norm") != std::string::npos ? 1.0F : 0.0F;
  std::vector<float> values(static_cast<size_t>(name.shape.elements()));
  for (float& value : values) {
    uint64_t z = seed += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    z ^= z >> 31;
    value = (static_cast<float>(z >> 40) / (1 << 23) - 1) * scale + mean;
  }
  return values;
}

/// A model's folder: config.json as transformers wrote it or `config`, and the weights in `files` files.
struct Folder {
  testing::ScratchFolder scratch;

  explicit Folder(const std::string& name, size_t files = 1) {
    const std::string text = read_file(kGolden + name + "/config.json").value();
    scratch.put("config.json", text);
    const DecoderConfig model = parse_huggingface_config(text, "golden").decoder;
    std::vector<std::vector<float>> memory;
    std::vector<std::vector<NamedTensor>> tensors(files);
    json index;
    for (const HuggingFaceName& each : huggingface_names(model, "model.")) {
      const size_t file = memory.size() % files;
      memory.push_back(drawn(each));
      tensors[file].push_back({each.theirs, {DType::f32, each.shape}, memory.back().data()});
      index["weight_map"][each.theirs] = file_name(file, files);
    }
    for (size_t file = 0; file < files; ++file)
      EXPECT_TRUE(write_checkpoint(scratch / file_name(file, files), tensors[file], {}).ok());
    if (files > 1) scratch.put("model.safetensors.index.json", index.dump());
  }
  static std::string file_name(size_t file, size_t files) {
    return files == 1 ? "model.safetensors" : "model-" + std::to_string(file) + ".safetensors";
  }
};

/// What transformers computed.
struct Expected {
  Checkpoint file;
  explicit Expected(const std::string& name)
      : file(read_checkpoint(kGolden + name + "/expected.safetensors", Verify::kStructure)
                 .take_or_throw()) {}
  template <class T>
  std::vector<T> values(const char* name) const {
    std::vector<T> values(static_cast<size_t>(file.find(name)->type.elements()));
    EXPECT_TRUE(file.read(*file.find(name), values.data()).ok());
    return values;
  }
};

DecodeFunction decode_of(const DecoderConfig& config) {
  return [config](Trace& trace, Tensor tokens, Tensor position, Tensor row, int64_t capacity) {
    return llama_decode(trace, {tokens, position, row, capacity}, config);
  };
}

struct Difference {
  double absolute = 0;  ///< the largest
  double relative = 0;  ///< to the largest value
};
/// The whole pass in f32 or bf16, beside what transformers computed in f32.
std::map<std::string, Difference> differences(const HuggingFaceModel& model,
                                              const Expected& expected, DType precision) {
  const DecoderConfig& config = model.config().decoder;
  const std::vector<int32_t> tokens = expected.values<int32_t>("tokens");
  const int64_t length = static_cast<int64_t>(tokens.size()) / 2;
  Trace trace("whole", false);
  const Tensor x =
      nn::decoder_embeddings(trace, trace.batch("tokens", {DType::i32, {2, length}}), config);
  const int64_t first[] = {1};
  const nn::DecoderStates states = nn::decoder_states(trace, {.embeddings = x}, config, first);
  // Of a wide model the file has the last position of each row, and some of the vocabulary.
  const int64_t rows = expected.file.find("last")->type.shape[1];
  const auto last_rows = [&](Tensor y) { return slice(y, 1, length - rows, length); };
  trace.result("first", last_rows(states.chosen[0]));
  trace.result("last", last_rows(states.last));
  const Tensor logits =
      language_model_logits(trace, nn::decoder_head(trace, last_rows(states.last), config));
  trace.result("logits", slice(logits, 2, 0, expected.file.find("logits")->type.shape[2]));
  const Graph graph = trace.finish();
  State state(state_entries(graph), cpu_device(2));
  model.fill(config, state);
  Program program = Program::compile(graph, state, {.precision = precision});
  alignas(64) std::array<int32_t, 64> batch{};
  std::ranges::copy(tokens, batch.begin());
  const void* const pointers[] = {batch.data()};
  program.run(pointers);
  std::map<std::string, Difference> differences;
  for (const char* name : {"first", "last", "logits"}) {
    const std::vector<float> found = program.read_result<float>(program.output(name));
    const std::vector<float> golden = expected.values<float>(name);
    EXPECT_EQ(found.size(), golden.size());
    double difference = 0, largest = 0;
    for (size_t i = 0; i < std::min(found.size(), golden.size()); ++i) {
      difference = std::max<double>(difference, std::abs(found[i] - golden[i]));
      largest = std::max<double>(largest, std::abs(golden[i]));
    }
    differences[name] = {difference, difference / largest};
  }
  return differences;
}

class HuggingFaceLlama : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    // The others use the same kernels, and this one takes as long as all of them.
    if (std::string(GetParam()) == "smollm2" && this_processor().level != machine_processor().level)
      GTEST_SKIP() << "wide: at this machine's own level only";
  }
};

TEST_P(HuggingFaceLlama, ComputesWhatTransformersComputes) {
  const std::string name = GetParam();
  const Folder folder(name, name == "linear" ? 2 : 1);
  const HuggingFaceModel model = HuggingFaceModel::open(folder.scratch.path());
  const Expected expected(name);
  for (const auto& [result, difference] : differences(model, expected, DType::f32))
    EXPECT_LT(difference.absolute, 1e-4) << result;
  for (const auto& [result, difference] : differences(model, expected, DType::bf16))
    EXPECT_LT(difference.relative, 2e-2) << "bf16 " << result;
}

TEST_P(HuggingFaceLlama, GeneratesWhatTransformersGenerates) {
  const std::string name = GetParam();
  const Folder folder(name);
  const HuggingFaceModel model = HuggingFaceModel::open(folder.scratch.path());
  const DecoderConfig& config = model.config().decoder;
  const Expected expected(name);
  const std::vector<int32_t> tokens = expected.values<int32_t>("tokens");
  const std::vector<int32_t> greedy = expected.values<int32_t>("greedy");
  const GeneratorSizes sizes{.samples = 1, .context = config.context, .chunk = 4};
  State state(state_entries(Generator::trace(decode_of(config), sizes, 1)), cpu_device(2));
  model.fill(config, state);
  Generator generator(decode_of(config), sizes, state, {});
  std::vector<int32_t> found;
  generator.generate(std::span(tokens).first(6), static_cast<int64_t>(greedy.size()),
                     {.temperature = 0}, 1, [&](int64_t, int32_t token) {
                       found.push_back(token);
                       return true;
                     });
  EXPECT_EQ(found.size(), 64U);
  EXPECT_EQ(found, greedy);
}

INSTANTIATE_TEST_SUITE_P(Options, HuggingFaceLlama,
                         ::testing::Values("grouped", "tied_llama3", "linear", "qwen2",
                                           "qwen2_window", "smollm2"),
                         [](const auto& each) { return std::string(each.param); });

// --- what is stored otherwise ---------------------------------------------------------------------

/// The tensors of "grouped" in memory, to be written anew in other ways.
struct Tensors {
  DecoderConfig model;
  std::vector<NamedTensor> named;
  std::vector<std::vector<char>> memory;

  Tensors() {
    const std::string text = read_file(kGolden + "grouped/config.json").value();
    model = parse_huggingface_config(text, "golden").decoder;
    for (const HuggingFaceName& each : huggingface_names(model, "model."))
      add(each.theirs, {DType::f32, each.shape}, drawn(each));
  }
  void add(const std::string& name, const TensorType& type, const std::vector<float>& values) {
    std::vector<char>& bytes = memory.emplace_back(static_cast<size_t>(type.bytes()));
    for (size_t i = 0; i < values.size(); ++i)
      store_element(bytes.data(), type.dtype, static_cast<int64_t>(i), values[i]);
    named.push_back({name, type, bytes.data()});
  }
  /// The folder opened, with what changes config.json.
  HuggingFaceModel open(const json& changes = json::object()) const {
    const testing::ScratchFolder folder;
    json config = json::parse(read_file(kGolden + "grouped/config.json").value());
    config.update(changes);
    folder.put("config.json", config.dump());
    EXPECT_TRUE(write_checkpoint(folder / "model.safetensors", named, {}).ok());
    return HuggingFaceModel::open(folder.path());
  }
  std::string refusal(const json& changes = json::object()) const {
    try {
      open(changes);
      return "";
    } catch (const DataError& error) {
      return error.what();
    }
  }
};

TEST(HuggingFaceLlamaFolder, ReadsNarrowTypesAndOldBuffers) {
  Tensors tensors;
  for (const DType dtype : {DType::bf16, DType::f16}) {
    NamedTensor& key = tensors.named[2];
    ASSERT_EQ(key.name, "model.layers.0.self_attn.q_proj.weight");
    std::vector<float> values(static_cast<size_t>(key.type.elements()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 64) / 4;
    Tensors narrow;
    narrow.named.erase(narrow.named.begin() + 2);
    narrow.add(key.name, {dtype, key.type.shape}, values);
    narrow.add("model.layers.0.self_attn.rotary_emb.inv_freq", {DType::f32, {2}}, {1, 2});
    const testing::ScratchFolder folder;
    folder.put("config.json", read_file(kGolden + "grouped/config.json").value());
    ASSERT_TRUE(write_checkpoint(folder / "model.safetensors", narrow.named, {}).ok());
    const HuggingFaceModel model = HuggingFaceModel::open(folder.path());
    EXPECT_EQ(model.tensors().find(key.name)->read(), values);
  }
}

TEST(HuggingFaceLlamaFolder, RefusesTensorsByName) {
  Tensors missing;
  missing.named.erase(missing.named.begin() + 3);
  EXPECT_THAT(missing.refusal(),
              HasSubstr("the tensor 'model.layers.0.self_attn.k_proj.weight' is missing"));
  Tensors headless;
  headless.named.pop_back();
  EXPECT_THAT(headless.refusal(), HasSubstr("the tensor 'lm_head.weight' is missing"));
  EXPECT_EQ(headless.refusal({{"tie_word_embeddings", true}}), "");
  Tensors turned;
  turned.named[3].type.shape = {16, 8};
  EXPECT_THAT(turned.refusal(),
              HasSubstr("'model.layers.0.self_attn.k_proj.weight' is f32[16,8]; f32[8,16] was"));
  Tensors whole;
  whole.named[1].type.dtype = DType::i32;
  EXPECT_THAT(whole.refusal(), HasSubstr("'model.layers.0.input_layernorm.weight' is i32[16]"));
  Tensors biased;
  biased.add("model.layers.0.self_attn.q_proj.bias", {DType::f32, {16}}, std::vector<float>(16));
  EXPECT_THAT(biased.refusal(),
              HasSubstr("'model.layers.0.self_attn.q_proj.bias' is no tensor of a llama as "
                        "config.json has it"));
}

TEST(HuggingFaceLlamaFolder, OtherSettingsAreRefusedByName) {
  const Tensors tensors;
  const HuggingFaceModel source = tensors.open();
  const auto refused = [&](const std::function<void(DecoderConfig&)>& change) {
    DecoderConfig model = tensors.model;
    change(model);
    try {
      check_huggingface(source, model);
      return std::string();
    } catch (const DataError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(refused([](auto& m) { m.context = 5; }), "");
  EXPECT_EQ(refused([](auto& m) { m.tie_head = true; }), "");
  EXPECT_THAT(refused([](auto& m) { m.context = 97; }), HasSubstr("model.context is 97"));
  EXPECT_THAT(refused([](auto& m) { m.groups = 4; }),
              HasSubstr("model.key_value_heads is 4, " + source.folder() +
                        "/config.json has num_key_value_heads 2"));
  EXPECT_THAT(refused([](auto& m) { m.theta = 5; }), HasSubstr("model.rotary_theta is 5"));
  EXPECT_THAT(refused([](auto& m) { m.scaling.kind = nn::RotaryScaling::Kind::llama3; }),
              HasSubstr("model.rotary_scaling is llama3 1 1 4 8192, "));
  EXPECT_THAT(refused([](auto& m) { m.attention_bias = true; }),
              HasSubstr("model.attention_bias is qkv, "));
  EXPECT_THAT(refused([](auto& m) { m.window = 4; }), HasSubstr("model.window is 4"));
  EXPECT_THAT(refused([](auto& m) { m.style = DecoderConfig::Style::gpt2; }),
              HasSubstr("model.name is gpt, " + source.folder() + "/config.json has model_type"));
}

}  // namespace
}  // namespace fullbore
