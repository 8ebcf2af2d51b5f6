// A BERT whose states transformers computed (workloads/latentwire/tests/golden/bert.py), and wires made of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "fullbore/base/files.h"
#include "fullbore/ckpt/mapped_tensors.h"
#include "fullbore/text/huggingface_bert.h"
#include "tests/support/evaluate.h"
#include "tests/support/gradcheck.h"
#include "tests/support/interpret_by_name.h"
#include "tests/support/paths.h"
#include "workloads/latentwire/latent_keys.h"
#include "workloads/latentwire/prompt_encoder.h"
#include "workloads/latentwire/receiver.h"

namespace fullbore::latentwire {
namespace {

const std::string kGolden = testing::source_folder() + "/workloads/latentwire/tests/golden/bert";

std::vector<double> numbers(const MappedTensors& file, const char* name) {
  const MappedTensor& tensor = *file.find(name);
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.type.elements(); ++i)
    values.push_back(load_element(tensor.bytes.data(), tensor.type.dtype, i));
  return values;
}

Literal f32_literal(const Shape& shape, const std::vector<float>& values) {
  Literal literal({DType::f32, shape});
  for (size_t i = 0; i < values.size(); ++i) literal.put(static_cast<int64_t>(i), values[i]);
  return literal;
}

Config config_of(const std::string& encoder, const std::string& folder) {
  return parse_config(
      "{model: {name: latentwire}, wire: {slots: 3, width: 6, heads: 2, max_tokens: 8, encoder: " +
          encoder + ", text_encoder: '" + folder + "'}}",
      "x");
}

// Weights of the folder by their names here.
std::map<std::string, Literal> weights(const HuggingFaceBert& bert, const std::string& scope) {
  std::map<std::string, Literal> inputs;
  for (const HuggingFaceName& name : bert_names(bert.config, bert.prefix)) {
    const std::vector<float> values = bert.tensors.find(name.theirs)->read();
    inputs[scope + name.ours] = f32_literal(name.shape, values);
  }
  return inputs;
}

TEST(TextEncoder, SaysWhatTransformersSays) {
  const HuggingFaceBert bert = HuggingFaceBert::open(kGolden);
  const MappedTensors expected = MappedTensors::open(kGolden + "/expected.safetensors");
  const std::vector<double> tokens = numbers(expected, "tokens");
  const std::vector<double> lengths = numbers(expected, "lengths");
  const auto places = std::ssize(tokens) / 2;
  Trace trace("t", false);
  trace.result("states", nn::bert_states(trace, trace.batch("tokens", {DType::i32, {2, places}}),
                                         trace.batch("lengths", {DType::i32, {2}}), bert.config));
  std::map<std::string, Literal> inputs = weights(bert, "");
  inputs["tokens"] = integers(DType::i32, {2, places}, tokens);
  inputs["lengths"] = integers(DType::i32, {2}, lengths);
  const std::vector<double> found =
      elements(interpret_by_name(trace.finish(), inputs).at("states"));
  const std::vector<double> golden = numbers(expected, "states");
  ASSERT_EQ(found.size(), golden.size());
  const size_t width = golden.size() / tokens.size();
  for (size_t row = 0; row < 2; ++row)
    for (size_t i = 0; i < static_cast<size_t>(lengths[row]) * width; ++i) {
      const size_t at = row * static_cast<size_t>(places) * width + i;
      EXPECT_NEAR(found[at], golden[at], 1e-5) << row << " " << i;
    }
  // Its tokens too.
  const auto encoder = open_text_encoder(config_of("tokens", kGolden));
  const std::vector<int32_t> ids = encoder->ids("The day is Monday.", 16);
  EXPECT_EQ(std::vector<double>(ids.begin(), ids.end()),
            std::vector<double>(tokens.begin(),
                                tokens.begin() + static_cast<std::ptrdiff_t>(lengths[0])));
  EXPECT_EQ(encoder->ids("The day is Monday.", 4).size(), 4U);
  EXPECT_EQ(encoder->ids("The day is Monday.", 4).back(), 3);  // [SEP]
}

TEST(TextEncoder, HasTheParametersOfMiniLm) {
  // 22,713,216 of sentence-transformers/all-MiniLM-L6-v2 without its pooler.
  EXPECT_EQ(nn::bert_parameters({}), 22'713'216 - (384 * 384 + 384));
}

// What stands behind a row changes nothing; slots of tokens differ, those of a sentence are one.
TEST(TextEncoder, MakesWiresOfTokensOrOfASentence) {
  for (const char* const kind : {"tokens", "sentence"}) {
    const Config config = config_of(kind, kGolden);
    const auto encoder = open_text_encoder(config);
    const bool is_sentence = std::string(kind) == "sentence";
    const auto wire_of = [&](int64_t places) {
      Trace trace("t", false);
      EncoderSizes sizes{
          .reads = is_sentence ? EncoderSizes::Reads::sentence : EncoderSizes::Reads::tokens,
          .text = encoder.get(),
          .width = 6,
          .heads = 2,
          .slots = 3};
      trace.result("wire", encode_prompts(trace, trace.batch("units", {DType::i32, {1, places}}),
                                          trace.batch("lengths", {DType::i32, {1}}), sizes));
      // Nothing of the encoder is trained.
      for (const Trace::Parameter& each : trace.parameters())
        EXPECT_TRUE(each.name.starts_with("pooler.")) << each.name;
      const Graph graph = trace.finish();
      std::map<std::string, Literal> inputs =
          weights(HuggingFaceBert::open(kGolden), "text_encoder.");
      for (const Graph::Input& input : graph.inputs())
        if (input.role == Role::parameter) {
          std::vector<float> values;
          for (int64_t i = 0; i < graph.type(input.value).elements(); ++i)
            values.push_back(std::sin(static_cast<float>(i * i + 1)));
          inputs[input.name] = f32_literal(graph.type(input.value).shape, values);
        }
      std::vector<double> units = {2, 5, 6, 3};
      units.resize(static_cast<size_t>(places), 9);
      inputs["units"] = integers(DType::i32, {1, places}, units);
      inputs["lengths"] = integers(DType::i32, {1}, {4});
      return elements(interpret_by_name(graph, inputs).at("wire"));
    };
    const std::vector<double> alone = wire_of(4), padded = wire_of(7);
    ASSERT_EQ(alone.size(), 18U);
    for (size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(alone[i], padded[i], 1e-6);
    double between = 0;
    for (size_t i = 0; i < 6; ++i) between += std::abs(alone[i] - alone[i + 6]);
    if (is_sentence)
      EXPECT_EQ(between, 0);
    else
      EXPECT_GT(between, 1e-3);
  }
}

// Check 5 of the specification, of what is trained above a frozen encoder.
TEST(TextEncoder, ItsWiresHaveTheGradientsOfFiniteDifferences) {
  TextEncoder encoder;
  encoder.config = {
      .vocabulary = 9, .layers = 1, .heads = 2, .width = 4, .hidden = 6, .context = 4};
  for (const EncoderSizes::Reads reads :
       {EncoderSizes::Reads::tokens, EncoderSizes::Reads::sentence}) {
    Trace trace("t", false);
    const Tensor units =
        constant(trace.builder(), {DType::i32, {2, 3}}, std::vector<double>{1, 7, 3, 8, 2, 0});
    const Tensor lengths = constant(trace.builder(), {DType::i32, {2}}, std::vector<double>{3, 2});
    trace.result(
        "wire",
        encode_prompts(trace, units, lengths,
                       {.reads = reads, .text = &encoder, .width = 3, .heads = 2, .slots = 2}));
    GradcheckCase check{trace.finish(), {}, {}};
    for (const Graph::Input& each : check.graph.inputs()) {
      check.inputs.push_back(random_literal(check.graph.type(each.value), 7, check.inputs.size()));
      check.wanted.push_back(each.role == Role::parameter);
    }
    EXPECT_EQ(gradcheck(check).problem, "");
    EXPECT_NE(gradcheck(check, {.gradient_scale = 1.01}).problem, "");
  }
}

TEST(TextEncoder, IsKeptByACheckpointAndRefusedByName) {
  const Config config = config_of("tokens", kGolden);
  const auto encoder = open_text_encoder(config);
  const auto again = recorded_text_encoder(receivers_json({}, encoder.get()), config);
  EXPECT_EQ(again->config, encoder->config);
  EXPECT_EQ(again->ids("What is the price?", 8), encoder->ids("What is the price?", 8));
  EXPECT_EQ(again->folder, "");
  EXPECT_EQ(recorded_text_encoder("", parse_config("{model: {name: latentwire}}", "x")), nullptr);
  EXPECT_EQ(open_text_encoder(parse_config("{model: {name: latentwire}}", "x")), nullptr);

  EXPECT_NE(usage_error([] {
              open_text_encoder(config_of("tokens", "nowhere"));
            }).find("wire.text_encoder: there is no folder 'nowhere'"),
            std::string::npos);
  EXPECT_NE(usage_error([] { config_of("tokens", ""); }).find("wire.text_encoder"),
            std::string::npos);
  const auto error = [&](const std::string& from, const std::string& to) {
    std::string text = read_file(kGolden + "/config.json").take_or_throw();
    text.replace(text.find(from), from.size(), to);
    try {
      parse_bert_config(text, "config.json");
    } catch (const DataError& refused) {
      return std::string(refused.what());
    }
    return std::string();
  };
  EXPECT_EQ(error("\"gelu\"", "\"relu\""),
            "config.json: 'hidden_act' is \"relu\"; only \"gelu\" is known here");
  EXPECT_NE(error("\"hidden_size\": 8", "\"hidden_size\": 9").find("hidden_size"),
            std::string::npos);
  EXPECT_NE(error("\"use_cache\"", "\"use_magic\"").find("use_magic"), std::string::npos);
}

}  // namespace
}  // namespace fullbore::latentwire
