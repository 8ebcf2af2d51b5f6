#include "fullbore/nn/decoder_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "fullbore/base/philox.h"
#include "tests/support/evaluate.h"
#include "tests/support/gradcheck.h"
#include "tests/support/interpret_by_name.h"

namespace fullbore {
namespace {

using nn::DecoderConfig;
using testing::HasSubstr;
using Literals = std::map<std::string, Literal>;

TensorType f32(Shape shape) { return {DType::f32, std::move(shape)}; }

// --- rotary positions ----------------------------------------------------------------------------

// LatentWire specification, check 14.
TEST(Rotary, TurnsHalfSplitPairs) {
  Trace trace("t", false);
  const Tensor x = trace.batch("x", f32({1, 2, 1, 4}));
  const Tensor positions = iota(trace.builder(), {DType::i32, {2}}, 0);
  trace.result("y", nn::rotate(x, nn::rotary_tables(positions, nn::rotary_frequencies(4, 1e4))));
  const std::vector<double> y =
      elements(interpret_by_name(trace.finish(),
                                 {{"x", Literal::of(f32({1, 2, 1, 4}), {5, 6, 7, 8, 1, 0, 0, 0})}})
                   .at("y"));
  const std::vector<double> expected = {5, 6, 7, 8, 0.540302, 0, 0.841471, 0};
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], expected[i], 5e-7) << i;
}

TEST(Rotary, ScalesFrequenciesAsLlama31Does) {
  const nn::RotaryScaling scaling{nn::RotaryScaling::Kind::llama3, 8, 1, 4, 8192};
  const std::vector<double> scaled = nn::rotary_frequencies(128, 5e5, scaling);
  const std::map<size_t, double> expected = {{28, 3.21144599e-3}, {29, 2.16657076e-3},
                                             {32, 5.24846161e-4}, {34, 1.78507813e-4},
                                             {35, 9.55621235e-5}, {63, 3.06892599e-7}};
  for (const auto& [i, value] : expected) EXPECT_NEAR(scaled[i] / value, 1, 1e-8) << i;
  const std::vector<double> plain = nn::rotary_frequencies(128, 5e5);
  EXPECT_EQ(scaled[28], plain[28]) << "short waves stay";
  const std::vector<double> linear =
      nn::rotary_frequencies(128, 5e5, {.kind = nn::RotaryScaling::Kind::linear, .factor = 4});
  EXPECT_EQ(linear[7], plain[7] / 4);
}

TEST(Rotary, PassesHeadsThroughAndTakesPositionsOfEachRow) {
  Trace trace("t", false);
  const Tensor x = trace.batch("x", f32({2, 2, 2, 2}));
  const Tensor positions = trace.batch("positions", {DType::i32, {2, 2}});
  const nn::RotaryTables tables = nn::rotary_tables(positions, {1.0});
  trace.result("y", nn::rotate(x, tables, 1));
  const Literal y =
      interpret_by_name(trace.finish(),
                        {{"x", Literal::of(f32({2, 2, 2, 2}), {1, 0, 1, 2, 1, 0, 3, 4,  //
                                                               1, 0, 5, 6, 1, 0, 7, 8})},
                         {"positions", integers(DType::i32, {2, 2}, {3, 0, 7, 9})}})
          .at("y");
  const double places[] = {3, 0, 7, 9};
  for (int64_t t = 0; t < 4; ++t) {
    EXPECT_NEAR(y.at(4 * t), std::cos(places[t]), 1e-12);
    EXPECT_NEAR(y.at(4 * t + 1), std::sin(places[t]), 1e-12);
    EXPECT_EQ(y.at(4 * t + 2), static_cast<double>(2 * t + 1));
  }
}

TEST(Rotary, RefusesWhatHasNoPairs) {
  EXPECT_THAT(usage_error([] { nn::rotary_frequencies(7, 1e4); }), HasSubstr("even width"));
  EXPECT_THAT(usage_error([] { nn::rotary_frequencies(8, 0); }), HasSubstr("positive theta"));
  Trace trace("t", false);
  const Tensor x = trace.batch("x", f32({1, 2, 1, 6}));
  const Tensor positions = iota(trace.builder(), {DType::i32, {2}}, 0);
  EXPECT_THAT(usage_error([&] {
                nn::rotate(x, nn::rotary_tables(positions, {1, 1}));
              }),
              HasSubstr("needs x [B,T,N,4], got f32[1,2,1,6]"));
}

// --- grouped attention ---------------------------------------------------------------------------

constexpr int64_t kBatch = 2, kLength = 5, kWidth = 6, kHeads = 4, kGroups = 2, kHeadWidth = 4;

Literals random_inputs(const Graph& graph) {
  Literals inputs;
  for (const Graph::Input& input : graph.inputs())
    if (is_floating(graph.type(input.value).dtype) && input.role != Role::recurrent)
      inputs[input.name] = random_literal(graph.type(input.value), 3, inputs.size());
  return inputs;
}

// The definition in loops: one query head at a time, softmax over the keys of its group that it may see.
std::vector<double> defined_attention(const Literals& in, int64_t window, bool padded) {
  const auto projected = [&](const std::string& part, int64_t head, int64_t b, int64_t t) {
    std::vector<double> y;
    for (int64_t d = 0; d < kHeadWidth; ++d) {
      const int64_t row = head * kHeadWidth + d;
      double sum = in.at("a." + part + ".bias").at(row);
      for (int64_t i = 0; i < kWidth; ++i)
        sum += in.at("x").at((b * kLength + t) * kWidth + i) *
               in.at("a." + part + ".weight").at(row * kWidth + i);
      y.push_back(sum);
    }
    if (part == "value") return y;
    std::vector<double> turned(kHeadWidth);
    for (size_t i = 0; i < kHeadWidth / 2; ++i) {
      const double angle = static_cast<double>(t) * (i == 0 ? 1.0 : 0.5);
      const double first = y[i], second = y[i + kHeadWidth / 2];
      turned[i] = first * std::cos(angle) - second * std::sin(angle);
      turned[i + kHeadWidth / 2] = second * std::cos(angle) + first * std::sin(angle);
    }
    return turned;
  };
  std::vector<double> y(kBatch * kLength * kWidth);
  for (int64_t b = 0; b < kBatch; ++b)
    for (int64_t t = 0; t < kLength; ++t)
      for (int64_t h = 0; h < kHeads; ++h) {
        const int64_t group = h * kGroups / kHeads;
        const std::vector<double> q = projected("query", h, b, t);
        std::vector<double> mixed(kHeadWidth);
        double total = 0;
        for (int64_t s = 0; s <= t; ++s) {
          if ((window > 0 && t - s >= window) || (padded && b == 1 && s < 2)) continue;
          const std::vector<double> k = projected("key", group, b, s);
          const std::vector<double> v = projected("value", group, b, s);
          const double weight = std::exp(std::inner_product(q.begin(), q.end(), k.begin(), 0.0) /
                                         std::sqrt(static_cast<double>(kHeadWidth)));
          total += weight;
          for (size_t d = 0; d < v.size(); ++d) mixed[d] += weight * v[d];
        }
        if (total == 0) continue;
        for (int64_t c = 0; c < kWidth; ++c)
          for (int64_t d = 0; d < kHeadWidth; ++d)
            y[static_cast<size_t>((b * kLength + t) * kWidth + c)] +=
                in.at("a.projection.weight").at(c * kHeads * kHeadWidth + h * kHeadWidth + d) *
                mixed[static_cast<size_t>(d)] / total;
      }
  return y;
}

Graph attention_graph(int64_t window, bool padded) {
  Trace trace("t", true);
  const Tensor x = trace.batch("x", f32({kBatch, kLength, kWidth}));
  nn::GroupedAttentionOptions options{
      .heads = kHeads, .groups = kGroups, .head_width = kHeadWidth, .bias = true, .window = window};
  options.rotary = nn::rotary_tables(iota(trace.builder(), {DType::i32, {kLength}}, 0), {1, 0.5});
  if (padded)
    options.mask =
        nn::places_between(constant(trace.builder(), {DType::i32, {kBatch}}, {0, 2}), {}, kLength);
  trace.result("y", nn::grouped_attention(trace, "a", x, options));
  return trace.finish();
}

TEST(GroupedAttention, EqualsItsDefinition) {
  for (const int64_t window : {0, 3})
    for (const bool padded : {false, true}) {
      const Graph graph = attention_graph(window, padded);
      const Literals inputs = random_inputs(graph);
      const std::vector<double> y = elements(interpret_by_name(graph, inputs).at("y"));
      const std::vector<double> expected = defined_attention(inputs, window, padded);
      for (size_t i = 0; i < y.size(); ++i)
        ASSERT_NEAR(y[i], expected[i], 1e-6 * (1 + std::abs(expected[i])))
            << "window " << window << (padded ? " padded " : " ") << i;
    }
}

TEST(GroupedAttention, RefusesWhatDoesNotFit) {
  Trace trace("t", true);
  const Tensor x = trace.batch("x", f32({2, 5, 6}));
  const auto refusal = [&](const nn::GroupedAttentionOptions& options, Tensor input) {
    return usage_error([&] { nn::grouped_attention(trace, "a", input, options); });
  };
  EXPECT_THAT(refusal({.heads = 4, .groups = 3}, x),
              HasSubstr("4 heads of queries are not a multiple of 3 of keys"));
  EXPECT_THAT(refusal({.heads = 4, .groups = 2}, x), HasSubstr("width 6 is not a multiple of 4"));
  EXPECT_THAT(refusal({.heads = 2, .window = -2}, x), HasSubstr("a window of -2 tokens"));
  EXPECT_THAT(refusal({}, trace.batch("flat", f32({5, 6}))), HasSubstr("needs x [B,T,C]"));
  const Tensor position = trace.batch("position", {DType::i64, {}});
  EXPECT_THAT(refusal({.cache = {.position = position, .capacity = 4}}, x),
              HasSubstr("a cache of 4 places has no room for f32[2,5,6]"));
}

// --- the whole model -----------------------------------------------------------------------------

DecoderConfig llama_config() {
  return {.vocabulary = 7,
          .layers = 2,
          .heads = 4,
          .width = 8,
          .hidden = 12,
          .context = 6,
          .tie_head = false,
          .groups = 2,
          .head_width = 4,
          .theta = 100,
          .attention_bias = true};
}

DecoderConfig gpt2_config() {
  return {.style = DecoderConfig::Style::gpt2,
          .vocabulary = 7,
          .layers = 2,
          .heads = 2,
          .width = 8,
          .context = 6};
}

std::vector<DecoderConfig> both_styles() { return {llama_config(), gpt2_config()}; }

// Logits of embeddings that are given.
Graph whole_pass(const DecoderConfig& config, int64_t batch, int64_t length) {
  Trace trace("whole", false);
  const Tensor x = trace.batch("x", f32({batch, length, config.width}));
  const nn::DecoderStates states = nn::decoder_states(trace, {.embeddings = x}, config);
  trace.result("y", language_model_logits(trace, nn::decoder_head(trace, states.last, config)));
  return trace.finish();
}

TEST(DecoderModel, GradientsOfEverythingAreThoseOfFiniteDifferences) {
  for (DecoderConfig config : both_styles()) {
    config.layers = 1;
    const Graph graph = whole_pass(config, 1, 3);
    GradcheckCase check{graph, {}, {}};
    for (const Graph::Input& input : graph.inputs()) {
      Literal values = random_literal(graph.type(input.value), 5, check.inputs.size());
      check.inputs.push_back(values);
      check.wanted.push_back(true);
    }
    EXPECT_EQ(gradcheck(check).problem, "") << static_cast<int>(config.style);
    EXPECT_NE(gradcheck(check, {.gradient_scale = 1.01}).problem, "");
  }
}

// Token by token and in chunks over a cache: rows as long as each other, and rows with padding on their left, whose
// positions begin behind it. What a row gives does not depend on how it lies.
TEST(DecoderModel, OverACacheItGivesWhatTheWholePassGives) {
  constexpr int64_t kTokens = 5;
  for (DecoderConfig config : both_styles())
    for (const int64_t window : {0, 2}) {
      config.window = window;
      config.window_layer = 1;
      const Graph whole = whole_pass(config, 1, kTokens);
      Literals inputs = random_inputs(whole);
      const Literal expected = interpret_by_name(whole, inputs).at("y");
      for (const int64_t chunk : {1, 3})
        for (const int64_t padding : {0, 1}) {
          Trace trace("chunk", false);
          const Tensor x = trace.batch("x", f32({2, chunk, config.width}));
          nn::DecoderInputs given{.embeddings = x};
          given.cache = {.position = trace.batch("position", {DType::i64, {}}), .capacity = 8};
          // Of two equal rows the second lies `padding` places further to the right.
          const Tensor first =
              constant(trace.builder(), {DType::i64, {2, 1}}, {0, static_cast<double>(padding)});
          const Tensor places =
              iota(trace.builder(), {DType::i64, {1, chunk}}, 1) + given.cache.position;
          given.positions = maximum(places - first, 0.0);
          given.mask = nn::places_between(reshape(first, {2}), {}, 8);
          const nn::DecoderStates states = nn::decoder_states(trace, given, config);
          trace.result("y",
                       language_model_logits(trace, nn::decoder_head(trace, states.last, config)));
          const Graph graph = trace.finish();
          Literals state = inputs;
          for (int64_t at = 0; at < kTokens + padding; at += chunk) {
            Literal rows(f32({2, chunk, config.width}));
            for (int64_t row = 0; row < 2; ++row)
              for (int64_t t = 0; t < chunk; ++t)
                for (int64_t c = 0; c < config.width; ++c) {
                  const int64_t token = at + t - row * padding;
                  const bool is_token = token >= 0 && token < kTokens;
                  rows.put((row * chunk + t) * config.width + c,
                           is_token ? inputs.at("x").at(token * config.width + c) : 3.0);
                }
            state["x"] = rows;
            state["position"] = Literal::scalar(DType::i64, static_cast<double>(at));
            const Literals outputs = interpret_by_name(graph, state);
            for (const Graph::Output& output : graph.outputs())
              if (output.updates >= 0) state[output.name] = outputs.at(output.name);
            for (int64_t row = 0; row < 2; ++row)
              for (int64_t t = 0; t < chunk; ++t) {
                const int64_t token = at + t - row * padding;
                if (token < 0 || token >= kTokens) continue;
                for (int64_t v = 0; v < config.vocabulary; ++v)
                  ASSERT_NEAR(outputs.at("y").at((row * chunk + t) * config.vocabulary + v),
                              expected.at(token * config.vocabulary + v), 1e-10)
                      << "window " << window << " chunk " << chunk << " row " << row << " token "
                      << token;
              }
          }
        }
    }
}

TEST(DecoderModel, GivesStatesOfChosenLayers) {
  for (const DecoderConfig& config : both_styles()) {
    Trace trace("t", false);
    const Tensor tokens = trace.batch("tokens", {DType::i32, {1, 3}});
    const Tensor x = nn::decoder_embeddings(trace, tokens, config);
    const int64_t layers[] = {2, 0, 1};
    const nn::DecoderStates states = nn::decoder_states(trace, {.embeddings = x}, config, layers);
    for (size_t i = 0; i < 3; ++i) trace.result("state" + std::to_string(i), states.chosen[i]);
    trace.result("last", states.last);
    const Graph graph = trace.finish();
    Literals inputs = random_inputs(graph);
    const char* gain = "final_norm.weight";
    for (int64_t i = 0; i < config.width; ++i) inputs[gain].put(i, 1);
    inputs["tokens"] = integers(DType::i32, {1, 3}, {2, 0, 6});
    const Literals outputs = interpret_by_name(graph, inputs);
    const Literal& table = inputs.at("token_embedding.weight");
    for (int64_t c = 0; c < config.width; ++c) {
      double expected = table.at(6 * config.width + c);
      if (config.style == DecoderConfig::Style::gpt2)
        expected += inputs.at("position_embedding.weight").at(2 * config.width + c);
      EXPECT_NEAR(outputs.at("state1").at(2 * config.width + c), expected, 1e-12);
    }
    if (config.style == DecoderConfig::Style::gpt2) continue;
    double squares = 0;
    for (int64_t c = 0; c < config.width; ++c) squares += std::pow(outputs.at("state0").at(c), 2);
    EXPECT_NEAR(outputs.at("last").at(0),
                outputs.at("state0").at(0) /
                    std::sqrt(squares / static_cast<double>(config.width) + config.epsilon),
                1e-6);
    EXPECT_NE(outputs.at("state2").at(0), outputs.at("state0").at(0));
  }
}

// Those of the specification (section 8.1), and of checkpoints that are known.
TEST(DecoderModel, HasAsManyParametersAsItShould) {
  const DecoderConfig bytes{.style = DecoderConfig::Style::gpt2,
                            .vocabulary = 259,
                            .layers = 3,
                            .heads = 4,
                            .width = 96,
                            .context = 640};
  const DecoderConfig pairs{.vocabulary = 512,
                            .layers = 2,
                            .heads = 4,
                            .width = 64,
                            .hidden = 168,
                            .tie_head = false,
                            .groups = 2};
  const DecoderConfig smollm2{
      .vocabulary = 49152, .layers = 30, .heads = 9, .width = 576, .hidden = 1536, .groups = 3};
  const DecoderConfig llama{.vocabulary = 128256,
                            .layers = 32,
                            .heads = 32,
                            .width = 4096,
                            .hidden = 14336,
                            .tie_head = false,
                            .groups = 8};
  const DecoderConfig qwen{.vocabulary = 152064,
                           .layers = 28,
                           .heads = 28,
                           .width = 3584,
                           .hidden = 18944,
                           .tie_head = false,
                           .groups = 4,
                           .attention_bias = true};
  EXPECT_EQ(nn::decoder_parameters(bytes), 422'016);
  EXPECT_EQ(nn::decoder_parameters(pairs), 154'944);
  EXPECT_EQ(nn::decoder_parameters(smollm2), 134'515'008);
  EXPECT_EQ(nn::decoder_parameters(llama), 8'030'261'248);
  EXPECT_EQ(nn::decoder_parameters(qwen), 7'615'616'512);
  for (DecoderConfig config : both_styles())
    for (const bool bias : {false, true}) {
      config.bias = config.attention_bias = config.projection_bias = config.mlp_bias = bias;
      Trace trace("t", false);
      const Tensor tokens = trace.batch("tokens", {DType::i32, {1, 3}});
      const Tensor x = nn::decoder_embeddings(trace, tokens, config);
      nn::decoder_head(trace, nn::decoder_states(trace, {.embeddings = x}, config).last, config);
      int64_t declared = 0;
      for (const Trace::Parameter& each : trace.parameters())
        declared += each.tensor.type().elements();
      EXPECT_EQ(declared, nn::decoder_parameters(config));
    }
}

TEST(DecoderModel, RefusesWhatDoesNotFit) {
  const auto refusal = [](const std::function<void(DecoderConfig&)>& change,
                          Shape shape = {1, 3, 8}, std::vector<int64_t> layers = {}) {
    DecoderConfig config = llama_config();
    change(config);
    Trace trace("t", false);
    const Tensor x = trace.batch("x", f32(std::move(shape)));
    return usage_error([&] { nn::decoder_states(trace, {.embeddings = x}, config, layers); });
  };
  const auto same = [](DecoderConfig&) {};
  EXPECT_EQ(refusal(same), "");
  EXPECT_THAT(refusal([](auto& c) { c.layers = 0; }), HasSubstr("layers is 0; at least 1"));
  EXPECT_THAT(refusal([](auto& c) { c.groups = 3; }), HasSubstr("4 heads are not a multiple of 3"));
  EXPECT_THAT(refusal([](auto& c) { c.head_width = 3; }), HasSubstr("width 3 have no pairs"));
  EXPECT_THAT(refusal([](auto& c) { c.theta = -2; }), HasSubstr("theta -2 is not positive"));
  EXPECT_THAT(refusal([](auto& c) { c.window = -2; }), HasSubstr("window -2 is negative"));
  EXPECT_THAT(refusal([](auto& c) { c.epsilon = -2; }), HasSubstr("epsilon -2 is negative"));
  EXPECT_THAT(refusal(same, {1, 3, 7}), HasSubstr("needs embeddings [B,T,8], got f32[1,3,7]"));
  EXPECT_THAT(refusal(same, {1, 7, 8}), HasSubstr("7 tokens, the context is 6"));
  EXPECT_THAT(refusal(same, {1, 3, 8}, {3}), HasSubstr("no layer 3 among 0 ... 2"));
}

}  // namespace
}  // namespace fullbore
