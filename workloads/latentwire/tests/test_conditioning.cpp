#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "fullbore/base/error.h"
#include "tests/support/evaluate.h"
#include "tests/support/gradcheck.h"
#include "tests/support/interpret_by_name.h"
#include "workloads/latentwire/conditioning.h"

namespace fullbore::latentwire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TensorType f32(Shape shape) { return {DType::f32, std::move(shape)}; }

nn::DecoderConfig small_decoder(bool llama) {
  nn::DecoderConfig decoder{
      .vocabulary = 7, .layers = 2, .heads = 4, .width = 8, .hidden = 8, .context = 8};
  decoder.groups = 2;
  decoder.head_width = 4;
  if (!llama) decoder.style = nn::DecoderConfig::Style::gpt2;
  return decoder;
}

ConditioningOptions everything() {
  return {.deep_prefix = true,
          .attending_blocks = {1},
          .attending_heads = 2,
          .coprocessor = 3,
          .rank = 2,
          .rank_scale = 4,
          .adapted_blocks = 1};
}

// Section 2.4 of the specification: of Llama-3.1-8B.
TEST(Conditioning, DeepPrefixHasTheParametersOfTheSpecification) {
  nn::DecoderConfig decoder{.vocabulary = 128256, .layers = 32, .heads = 32, .width = 4096};
  decoder.groups = 8;
  Trace trace("t", true);
  condition(trace, "conditioning", {.deep_prefix = true}, decoder,
            trace.batch("prefix", f32({1, 32, 4096})), trace.batch("slots", f32({1, 32, 256})));
  int64_t count = 0;
  for (const Trace::Parameter& each : trace.parameters()) count += each.tensor.type().elements();
  EXPECT_EQ(count, 285'220'864);
  EXPECT_THAT(quarter_blocks(32), ElementsAre(8, 16, 24));
  EXPECT_THAT(quarter_blocks(3), ElementsAre());
}

// Of a frozen model under a FrozenScope, by everything that is trained, the prefix and the slots.
TEST(Conditioning, GradientsOfEverythingAreThoseOfFiniteDifferences) {
  for (const bool llama : {true, false}) {
    const nn::DecoderConfig decoder = small_decoder(llama);
    Trace trace("t", true);
    const Tensor prefix = trace.batch("prefix", f32({2, 2, decoder.width}));
    const Tensor slots = trace.batch("slots", f32({2, 2, 4}));
    nn::DecoderInputs inputs{.embeddings = trace.batch("x", f32({2, 2, decoder.width}))};
    inputs.additions = condition(trace, "adapters.one", everything(), decoder, prefix, slots);
    {
      const FrozenScope frozen(trace);
      const Scope scope(trace, "receivers.one");
      trace.result("y", nn::decoder_states(trace, inputs, decoder).last);
    }
    GradcheckCase check{trace.finish(), {}, {}};
    int trained = 0;
    for (const Graph::Input& input : check.graph.inputs()) {
      check.inputs.push_back(random_literal(check.graph.type(input.value), 5, check.inputs.size()));
      check.wanted.push_back(input.role == Role::parameter || input.name == "prefix" ||
                             input.name == "slots");
      if (input.role == Role::parameter) {
        ++trained;
        EXPECT_TRUE(input.name.starts_with("adapters.one.")) << input.name;
      }
    }
    EXPECT_GT(trained, 20);
    EXPECT_EQ(gradcheck(check).problem, "") << (llama ? "llama" : "gpt2");
    EXPECT_NE(gradcheck(check, {.gradient_scale = 1.01}).problem, "");
  }
}

TEST(Conditioning, LowRankTermsBeginAtNothing) {
  const nn::DecoderConfig decoder = small_decoder(true);
  Trace trace("t", true);
  const Tensor slots = trace.batch("slots", f32({1, 2, 4}));
  const Tensor x = trace.batch("x", f32({1, 3, decoder.width}));
  const auto additions =
      condition(trace, "a", {.rank = 2, .adapted_blocks = 1}, decoder, slots, slots);
  EXPECT_FALSE(additions.before);
  EXPECT_FALSE(additions.behind);
  EXPECT_FALSE(additions.beside(1, "query", x, 16).valid()) << "only the first block has them";
  const Tensor term = additions.beside(0, "query", x, 16);
  ASSERT_TRUE(term.valid());
  EXPECT_EQ(term.shape(), (Shape{1, 3, 16}));
  EXPECT_EQ(trace.initializers().at("a.low_rank.0.query.up").kind, Initializer::Kind::zeros);
}

TEST(Conditioning, GistsCountForTheirTokensAlone) {
  Trace trace("t", false);
  const Tensor lengths = trace.batch("lengths", {DType::i32, {2}});
  trace.result("factors", gist_factors(trace, lengths, 4, 0.15));
  trace.result("gists",
               gist_embeddings(trace, "gist", trace.batch("slots", f32({2, 3, 4})), 5, 2, 6));
  const Graph graph = trace.finish();
  std::map<std::string, Literal> inputs;
  for (const Graph::Input& input : graph.inputs())
    if (is_floating(graph.type(input.value).dtype))
      inputs[input.name] = random_literal(graph.type(input.value), 3, inputs.size());
  inputs["lengths"] = Literal::of({DType::i32, {2}}, {1, 9});
  const auto outputs = interpret_by_name(graph, inputs);
  EXPECT_EQ(elements(outputs.at("factors")),
            (std::vector<double>{0.5, 0, 0, 0, 0.125, 0.125, 0.125, 0.125}));
  EXPECT_EQ(outputs.at("gists").type().shape, (Shape{2, 5, 6}));
}

TEST(Conditioning, BlocksAndHeadsThatDoNotFitAreRefused) {
  const nn::DecoderConfig decoder = small_decoder(true);
  const auto refusal = [&](const ConditioningOptions& options) -> std::string {
    Trace trace("t", true);
    const Tensor slots = trace.batch("slots", f32({1, 2, 4}));
    try {
      condition(trace, "a", options, decoder, slots, slots);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal({.attending_blocks = {3}}), HasSubstr("there is no block 3 among 1 ... 2"));
  EXPECT_THAT(refusal({.attending_blocks = {1}, .attending_heads = 3}),
              HasSubstr("width 8 of a model is not a multiple of 3 heads"));
}

}  // namespace
}  // namespace fullbore::latentwire
