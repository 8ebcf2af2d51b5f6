// What is put into a decoder from outside: keys before a row, layers behind a block, terms beside a matrix.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/base/philox.h"
#include "fullbore/nn/decoder_model.h"
#include "tests/support/evaluate.h"
#include "tests/support/gradcheck.h"
#include "tests/support/interpret_by_name.h"

namespace fullbore {
namespace {

using nn::DecoderConfig;
using testing::ElementsAre;
using testing::HasSubstr;
using Literals = std::map<std::string, Literal>;

TensorType f32(Shape shape) { return {DType::f32, std::move(shape)}; }

std::vector<DecoderConfig> both_styles() {
  DecoderConfig config{.vocabulary = 7, .layers = 2, .heads = 4, .width = 8, .context = 6};
  config.groups = 2;
  std::vector<DecoderConfig> styles = {config, config};
  styles[1].style = DecoderConfig::Style::gpt2;
  return styles;
}

Literals random_inputs(const Graph& graph) {
  Literals inputs;
  for (const Graph::Input& input : graph.inputs())
    if (is_floating(graph.type(input.value).dtype) && input.role != Role::recurrent)
      inputs[input.name] = random_literal(graph.type(input.value), 3, inputs.size());
  return inputs;
}

constexpr int64_t kHeads = 4, kGroups = 2, kBefore = 2, kTokens = 3;
constexpr int64_t kPlaces = kBefore + kTokens, kHeadWidth = 2;

// Keys and values of a row's first tokens stand before the others: these give what they give in the whole row, with a
// window, with a mask, and where a cache takes all of them.
TEST(DecoderAdditions, KeysBeforeARowAreThoseOfTokensBeforeIt) {
  for (const int64_t window : {0, 3})
    for (const bool masked : {false, true})
      for (const bool cached : {false, true}) {
        Trace trace("t", false);
        GraphBuilder& builder = trace.builder();
        const Tensor qkv = trace.batch("qkv", f32({2, kPlaces, kHeads + 2 * kGroups, kHeadWidth}));
        nn::HeadsOptions options{.heads = kHeads, .groups = kGroups, .window = window};
        // Of each row a token is hidden that is not before it.
        const Tensor hidden = constant(builder, {DType::i32, {2, 1, 1, 1}}, {kBefore, kBefore + 1});
        const auto hides = [&](int64_t before, int64_t places) {
          const Tensor place = iota(builder, {DType::i32, {1, 1, 1, places}}, 3);
          return not_equal(place + static_cast<double>(before), hidden);
        };
        if (masked) options.mask = hides(0, kPlaces);
        trace.result("whole", slice(nn::attend_heads(trace, qkv, options), 1, kBefore, kPlaces));
        const Tensor first = transpose(slice(qkv, 1, 0, kBefore), {0, 2, 1, 3});
        options.before = {slice(first, 1, kHeads, kHeads + kGroups),
                          slice(first, 1, kHeads + kGroups, kHeads + 2 * kGroups)};
        if (masked) options.mask = cached ? hides(0, 8) : hides(kBefore, kTokens);
        if (cached)
          options.cache = {.position = trace.batch("position", {DType::i64, {}}), .capacity = 8};
        const Tensor rest = slice(qkv, 1, kBefore, kPlaces);
        trace.result("rest", nn::attend_heads(trace, rest, options));
        const Graph graph = trace.finish();
        Literals inputs = random_inputs(graph);
        if (cached) inputs["position"] = Literal::scalar(DType::i64, 0);
        const Literals outputs = interpret_by_name(graph, inputs);
        const Literal &whole = outputs.at("whole"), &behind = outputs.at("rest");
        for (int64_t i = 0; i < whole.type().elements(); ++i)
          ASSERT_NEAR(behind.at(i), whole.at(i), 1e-12)
              << "window " << window << (masked ? " masked" : "") << (cached ? " cached " : " ")
              << i;
      }
}

TEST(DecoderAdditions, TermsBesideMatricesAreThoseOfOtherMatrices) {
  for (const DecoderConfig& config : both_styles()) {
    const bool llama = config.style == DecoderConfig::Style::llama;
    const std::string part = llama ? "query" : "qkv";
    std::vector<std::string> asked;
    const auto graph_of = [&](bool beside) {
      Trace trace("t", false);
      nn::DecoderInputs inputs{.embeddings = trace.batch("x", f32({1, 3, config.width}))};
      if (beside)
        inputs.additions.beside = [&](int64_t layer, const std::string& name, Tensor x,
                                      int64_t outputs) {
          asked.push_back(std::to_string(layer) + name);
          if (layer != 1 || name != part) return Tensor();
          return linear(x, trace.batch("term", f32({outputs, x.dim(-1)})));
        };
      trace.result("y", nn::decoder_states(trace, inputs, config).last);
      return trace.finish();
    };
    const Graph with = graph_of(true), without = graph_of(false);
    Literals inputs = random_inputs(with);
    const Literal y = interpret_by_name(with, inputs).at("y");
    const Literal term = inputs.at("term");
    inputs.erase("term");
    Literal& weight = inputs.at("layers.1.attention." + part + ".weight");
    const Literal before = interpret_by_name(without, inputs).at("y");
    for (int64_t i = 0; i < weight.type().elements(); ++i) weight.put(i, weight.at(i) + term.at(i));
    const Literal expected = interpret_by_name(without, inputs).at("y");
    for (int64_t i = 0; i < y.type().elements(); ++i)
      EXPECT_NEAR(y.at(i), expected.at(i), 1e-5) << i;
    const int64_t last = y.type().elements() - 1;
    EXPECT_NE(y.at(last), before.at(last));
    if (llama)
      EXPECT_THAT(asked, ElementsAre("0query", "0key", "0value", "0projection", "1query", "1key",
                                     "1value", "1projection"));
    else
      EXPECT_THAT(asked, ElementsAre("0qkv", "0projection", "1qkv", "1projection"));
  }
}

TEST(DecoderAdditions, LayersBehindABlockAreReadByTheNext) {
  for (const DecoderConfig& config : both_styles()) {
    Trace trace("t", false);
    const Tensor x = trace.batch("x", f32({1, 3, config.width}));
    const int64_t layers[] = {0, 1, 2};
    const auto plain = nn::decoder_states(trace, {.embeddings = x}, config, layers);
    nn::DecoderInputs inputs{.embeddings = x};
    inputs.additions.behind = [](int64_t layer, Tensor y) {
      return layer == 0 ? y * 0.0 + 1.0 : y + 2.0;
    };
    const auto changed = nn::decoder_states(trace, inputs, config, layers);
    for (size_t i = 0; i < 3; ++i) {
      trace.result("plain" + std::to_string(i), plain.chosen[i]);
      trace.result("changed" + std::to_string(i), changed.chosen[i]);
    }
    const Graph graph = trace.finish();
    const Literals outputs = interpret_by_name(graph, random_inputs(graph));
    for (int64_t i = 0; i < 3 * config.width; ++i) {
      EXPECT_EQ(outputs.at("changed0").at(i), outputs.at("plain0").at(i));
      EXPECT_EQ(outputs.at("changed1").at(i), 1);
      EXPECT_NE(outputs.at("changed2").at(i), outputs.at("plain2").at(i) + 2)
          << "the second block read what the first had given";
    }
  }
}

TEST(DecoderAdditions, KeysBeforeARowThatSeesBothWaysAreRefused) {
  Trace trace("t", false);
  const Tensor x = trace.batch("x", f32({1, 3, 8}));
  const Tensor keys = trace.batch("keys", f32({1, 2, 1, 4}));
  try {
    nn::self_attention(trace, "a", x, {.heads = 2, .causal = false, .before = {keys, keys}});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("need causal attention"));
  }
}

}  // namespace
}  // namespace fullbore
