#include "fullbore/nn/modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "fullbore/base/philox.h"
#include "fullbore/device/interpret.h"
#include "tests/support/evaluate.h"
#include "tests/support/interpret_by_name.h"

namespace fullbore {
namespace {

using testing::ElementsAre;
using testing::Pointwise;

MATCHER_P(IsNear, bound, "") { return std::abs(std::get<0>(arg) - std::get<1>(arg)) <= bound; }

TensorType f32(Shape shape) { return {DType::f32, std::move(shape)}; }

std::vector<std::string> declared(const Trace& trace) {
  std::vector<std::string> parameters;
  for (const Trace::Parameter& parameter : trace.parameters())
    parameters.push_back(parameter.name + " " + parameter.tensor.type().text());
  return parameters;
}

Literal random_literal(TensorType type, uint64_t seed) {
  PhiloxStream draws(seed);
  Literal literal(std::move(type));
  for (int64_t i = 0; i < literal.elements(); ++i) literal.put(i, draws.normal());
  return literal;
}

// Random values for all that the graph reads.
std::map<std::string, Literal> random_inputs(const Graph& graph) {
  std::map<std::string, Literal> inputs;
  for (const Graph::Input& input : graph.inputs())
    if (is_floating(graph.type(input.value).dtype))
      inputs[input.name] = random_literal(graph.type(input.value), inputs.size() + 1);
  return inputs;
}

// --- linear --------------------------------------------------------------------------------------
TEST(Linear, MultipliesByItsWeightAndAddsItsBias) {
  Trace trace("t", true);
  const Tensor x = trace.batch("x", f32({2, 3}));
  trace.result("y", nn::linear(trace, "f", x, 2));
  EXPECT_THAT(declared(trace), ElementsAre("f.weight f32[2,3]", "f.bias f32[2]"));
  EXPECT_EQ(trace.initializers().at("f.bias").kind, Initializer::Kind::zeros);
  EXPECT_EQ(trace.initializers().at("f.weight").kind, Initializer::Kind::normal);
  EXPECT_EQ(trace.initializers().at("f.weight").b, 0.02);
  const auto results =
      interpret_by_name(trace.finish(), {{"x", Literal::of(f32({2, 3}), {1, 2, 3, -1, 0, 1})},
                                         {"f.weight", Literal::of(f32({2, 3}), {1, 0, 2, 3, 1, 0})},
                                         {"f.bias", Literal::of(f32({2}), {10, 20})}});
  EXPECT_THAT(elements(results.at("y")), ElementsAre(17, 25, 11, 17));
}

TEST(Linear, TakesAnyLeadingAxesAndNoBias) {
  Trace trace("t", true);
  const Initializer ones = Initializer::ones();
  const Tensor y = nn::linear(trace, "f", trace.batch("x", f32({5, 1, 4, 3})), 7,
                              {.bias = false, .weight_initializer = ones});
  EXPECT_EQ(y.type(), f32({5, 1, 4, 7}));
  EXPECT_THAT(declared(trace), ElementsAre("f.weight f32[7,3]"));
  EXPECT_EQ(trace.initializers().at("f.weight").kind, Initializer::Kind::ones);
}

TEST(Linear, ComputesInTheActivationsDtypeFromF32Masters) {
  Trace trace("t", true);
  const Tensor y = nn::linear(trace, "f", trace.batch("x", {DType::bf16, {4, 3}}), 2);
  EXPECT_EQ(y.dtype(), DType::bf16);
  EXPECT_THAT(declared(trace), ElementsAre("f.weight f32[2,3]", "f.bias f32[2]"));
}

TEST(Linear, SharesWeightsWhereThatIsSaid) {
  Trace trace("t", true);
  const Tensor x = trace.batch("x", f32({4, 3}));
  const Tensor once = nn::linear(trace, "f", x, 3);
  const SharedScope shared = share(trace);
  trace.result("twice", nn::linear(trace, "f", once, 3));
  EXPECT_THAT(declared(trace), ElementsAre("f.weight f32[3,3]", "f.bias f32[3]"));
  const auto results = interpret_by_name(
      trace.finish(), {{"x", Literal::of(f32({4, 3}), std::vector<double>(12, 1))},
                       {"f.weight", Literal::of(f32({3, 3}), {2, 0, 0,  //
                                                              0, 3, 0,  //
                                                              0, 0, 4})},
                       {"f.bias", Literal::of(f32({3}), {1, 0, 0})}});
  std::vector<double> row = elements(results.at("twice"));
  row.resize(3);
  EXPECT_THAT(row, ElementsAre(7, 9, 16));
}

TEST(Linear, RefusesTheSameNameWithOtherExtents) {
  Trace trace("t", true);
  nn::linear(trace, "f", trace.batch("x", f32({4, 3})), 2);
  const SharedScope shared = share(trace);
  const Tensor wide = trace.batch("wide", f32({4, 5}));
  const SourceLoc loc{"models/mine.cpp", 12};
  EXPECT_EQ(usage_error([&] { nn::linear(trace, "f", wide, 2, {}, loc); }),
            "state 'f.weight' is parameter f32[2,5] here and parameter f32[2,3] elsewhere "
            "(models/mine.cpp:12)");
  EXPECT_EQ(trace.builder().scope(), "");
}

TEST(Linear, RefusesAScalar) {
  Trace trace("t", true);
  const Tensor x = trace.batch("x", f32({}));
  EXPECT_EQ(usage_error([&] {
              nn::linear(trace, "f", x, 2, {}, {"models/mine.cpp", 12});
            }),
            "linear: needs x [..., I], got f32[] (models/mine.cpp:12)");
}

TEST(Linear, DrawsEachParameterFromItsOwnName) {
  Trace trace("t", true);
  const Tensor x = trace.batch("x", f32({4, 3}));
  nn::linear(trace, "a", x, 3);
  nn::linear(trace, "b", x, 3);
  const auto values = [&](const std::string& name) {
    std::vector<float> result(9);
    initialize(trace.initializers().at(name), f32({3, 3}), 1, name, result.data());
    return result;
  };
  EXPECT_NE(values("a.weight"), values("b.weight"));
}

// --- embedding -----------------------------------------------------------------------------------
TEST(Embedding, ReadsRowsOfTheTableThatAHeadMayShare) {
  Trace trace("t", true);
  const Tensor indices = trace.batch("i", {DType::i32, {2, 2}});
  const Tensor rows = nn::embedding(trace, "tokens", indices, 3, 2);
  const Tensor table = nn::embedding_table(trace, "tokens", 3, 2);
  EXPECT_EQ(rows.type(), f32({2, 2, 2}));
  trace.result("rows", rows);
  trace.result("logits", linear(rows, table));
  EXPECT_THAT(declared(trace), ElementsAre("tokens.weight f32[3,2]"));
  const auto results = interpret_by_name(
      trace.finish(), {{"i", integers(DType::i32, {2, 2}, {2, 0, 1, 1})},
                       {"tokens.weight", Literal::of(f32({3, 2}), {1, 2, 3, 4, 5, 6})}});
  EXPECT_THAT(elements(results.at("rows")), ElementsAre(5, 6, 1, 2, 3, 4, 3, 4));
  std::vector<double> first = elements(results.at("logits"));
  first.resize(3);
  EXPECT_THAT(first, ElementsAre(17, 39, 61));
}

// --- layer_norm ----------------------------------------------------------------------------------
TEST(LayerNorm, StartsAsTheIdentityOfNormalisedRows) {
  Trace trace("t", true);
  const Tensor x = trace.batch("x", f32({2, 4}));
  trace.result("y", nn::layer_norm(trace, "norm", x, {.epsilon = 0}));
  EXPECT_THAT(declared(trace), ElementsAre("norm.weight f32[4]", "norm.bias f32[4]"));
  EXPECT_EQ(trace.initializers().at("norm.weight").kind, Initializer::Kind::ones);
  EXPECT_EQ(trace.initializers().at("norm.bias").kind, Initializer::Kind::zeros);
  const auto results =
      interpret_by_name(trace.finish(), {{"x", Literal::of(f32({2, 4}), {1, 3, 1, 3, 5, 5, 9, 9})},
                                         {"norm.weight", Literal::of(f32({4}), {1, 1, 2, 1})},
                                         {"norm.bias", Literal::of(f32({4}), {0, 0, 0, 10})}});
  EXPECT_THAT(elements(results.at("y")),
              Pointwise(IsNear(1e-12), {-1.0, 1.0, -2.0, 11.0, -1.0, -1.0, 2.0, 11.0}));
}

TEST(LayerNorm, HasNoBiasIfNoneIsAsked) {
  Trace trace("t", true);
  nn::layer_norm(trace, "norm", trace.batch("x", f32({2, 4})), {.bias = false});
  EXPECT_THAT(declared(trace), ElementsAre("norm.weight f32[4]"));
}

TEST(LayerNorm, RefusesAScalar) {
  Trace trace("t", true);
  const Tensor x = trace.batch("x", f32({}));
  EXPECT_EQ(usage_error([&] {
              nn::layer_norm(trace, "norm", x, {}, {"models/mine.cpp", 12});
            }),
            "layer_norm: needs x [..., C], got f32[] (models/mine.cpp:12)");
}

// --- dropout -------------------------------------------------------------------------------------
TEST(Dropout, IsTheIdentityUnlessTraining) {
  Trace evaluation("t", false);
  const Tensor x = evaluation.batch("x", f32({100}));
  EXPECT_EQ(nn::dropout(evaluation, x, 0.5).value(), x.value());
  Trace training("t", true);
  const Tensor y = training.batch("x", f32({100}));
  EXPECT_EQ(nn::dropout(training, y, 0).value(), y.value());
  EXPECT_EQ(training.finish().inputs().size(), 1U);  // no seed, no step
}

TEST(Dropout, DropsAndScalesAnewAtEachPlaceAndStep) {
  constexpr int64_t kCount = 10000;
  Trace trace("t", true);
  const Tensor x = trace.batch("x", f32({kCount}));
  trace.result("a", nn::dropout(trace, x, 0.25));
  trace.result("b", nn::dropout(trace, x, 0.25));
  const Graph graph = trace.finish();
  const auto draws = [&](double seed, double step) {
    return interpret_by_name(graph,
                             {{"x", Literal::of(f32({kCount}), std::vector<double>(kCount, 3))},
                              {"random.seed", integers(DType::i64, {}, {seed})},
                              {"step", integers(DType::i64, {}, {step})}});
  };
  const auto now = draws(1, 0);
  const std::vector<double> a = elements(now.at("a"));
  double kept = 0;
  for (double value : a) {
    if (value == 0) continue;
    EXPECT_NEAR(value, 4, 1e-6);
    ++kept;
  }
  EXPECT_NEAR(kept / kCount, 0.75, 5 * std::sqrt(0.75 * 0.25 / kCount));
  EXPECT_EQ(a, elements(draws(1, 0).at("a")));
  EXPECT_NE(a, elements(now.at("b")));
  EXPECT_NE(a, elements(draws(1, 1).at("a")));
  EXPECT_NE(a, elements(draws(2, 0).at("a")));
}

// --- self_attention ------------------------------------------------------------------------------
TEST(SelfAttention, DeclaresTwoLinearLayers) {
  Trace trace("t", true);
  const Tensor x = trace.batch("x", f32({2, 5, 6}));
  const Initializer last = Initializer::normal(0.5);
  EXPECT_EQ(
      nn::self_attention(trace, "mix", x, {.heads = 3, .projection_initializer = last}).type(),
      f32({2, 5, 6}));
  EXPECT_THAT(declared(trace), ElementsAre("mix.qkv.weight f32[18,6]", "mix.qkv.bias f32[18]",
                                           "mix.projection.weight f32[6,6]",  //
                                           "mix.projection.bias f32[6]"));
  EXPECT_EQ(trace.initializers().at("mix.projection.weight").b, 0.5);
  EXPECT_EQ(trace.initializers().at("mix.qkv.weight").b, 0.02);
}

TEST(SelfAttention, SharesWeightsAndLeavesOutBiases) {
  Trace trace("t", true);
  const SharedScope shared = share(trace);
  Tensor x = trace.batch("x", f32({2, 5, 6}));
  for (int layer = 0; layer < 3; ++layer)
    x = nn::self_attention(trace, "mix", x, {.heads = 2, .bias = false});
  EXPECT_THAT(declared(trace),
              ElementsAre("mix.qkv.weight f32[18,6]", "mix.projection.weight f32[6,6]"));
}

// Loops over the definition: one head per block of width/heads columns, softmax(q k^T / sqrt D) v.
std::vector<double> attend(const std::map<std::string, Literal>& inputs, int64_t batch,
                           int64_t length, int64_t width, int64_t heads, bool causal) {
  const int64_t head_width = width / heads;
  const auto product = [&](const std::vector<double>& x, const std::string& layer,
                           int64_t outputs) {
    std::vector<double> y;
    for (int64_t row = 0; row < batch * length; ++row)
      for (int64_t o = 0; o < outputs; ++o) {
        double sum = inputs.at(layer + ".bias").at(o);
        for (int64_t i = 0; i < width; ++i)
          sum += x[static_cast<size_t>(row * width + i)] *
                 inputs.at(layer + ".weight").at(o * width + i);
        y.push_back(sum);
      }
    return y;
  };
  const std::vector<double> qkv = product(elements(inputs.at("x")), "mix.qkv", 3 * width);
  const auto at = [&](int64_t which, int64_t b, int64_t t, int64_t column) {
    return qkv[static_cast<size_t>((b * length + t) * 3 * width + which * width + column)];
  };
  std::vector<double> mixed(static_cast<size_t>(batch * length * width));
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t t = 0; t < length; ++t) {
        std::vector<double> weights;
        for (int64_t s = 0; s < (causal ? t + 1 : length); ++s) {
          double score = 0;
          for (int64_t d = h * head_width; d < (h + 1) * head_width; ++d)
            score += at(0, b, t, d) * at(1, b, s, d);
          weights.push_back(std::exp(score / std::sqrt(static_cast<double>(head_width))));
        }
        const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
        for (int64_t d = h * head_width; d < (h + 1) * head_width; ++d)
          for (size_t s = 0; s < weights.size(); ++s)
            mixed[static_cast<size_t>((b * length + t) * width + d)] +=
                weights[s] / total * at(2, b, static_cast<int64_t>(s), d);
      }
  return product(mixed, "mix.projection", width);
}

TEST(SelfAttention, EqualsItsDefinition) {
  for (const bool causal : {true, false}) {
    Trace trace("t", true);
    const Tensor x = trace.batch("x", f32({2, 5, 6}));
    trace.result("y", nn::self_attention(trace, "mix", x, {.heads = 3, .causal = causal}));
    const Graph graph = trace.finish();
    const auto inputs = random_inputs(graph);
    // The scale 1/sqrt(D) is a constant of the graph and so a float.
    EXPECT_THAT(elements(interpret_by_name(graph, inputs).at("y")),
                Pointwise(IsNear(1e-5), attend(inputs, 2, 5, 6, 3, causal)))
        << (causal ? "causal" : "full");
  }
}

TEST(SelfAttention, DropsProbabilitiesInTrainingOnly) {
  const auto inputs_of = [](bool training, double probability) {
    Trace trace("t", training);
    const Tensor x = trace.batch("x", f32({1, 4, 4}));
    trace.result("y", nn::self_attention(trace, "mix", x, {.heads = 2, .dropout = probability}));
    return trace.finish();
  };
  EXPECT_LT(inputs_of(false, 0.5).find_input("random.seed"), 0);
  EXPECT_LT(inputs_of(true, 0).find_input("random.seed"), 0);
  const Graph with = inputs_of(true, 0.5);
  EXPECT_GE(with.find_input("random.seed"), 0);
  const auto inputs = random_inputs(with);
  EXPECT_NE(elements(interpret_by_name(with, inputs).at("y")),
            elements(interpret_by_name(inputs_of(true, 0), inputs).at("y")));
}

TEST(SelfAttention, RefusesHeadsThatDoNotDivideAndOtherRanks) {
  Trace trace("t", true);
  const Tensor x = trace.batch("x", f32({2, 5, 6}));
  const auto refusal = [&](Tensor operand, int64_t heads) {
    return usage_error([&] {
      nn::self_attention(trace, "mix", operand, {.heads = heads}, {"models/mine.cpp", 12});
    });
  };
  EXPECT_EQ(refusal(x, 4),
            "self_attention: width 6 is not a multiple of 4 heads (models/mine.cpp:12)");
  EXPECT_EQ(refusal(x, 0),
            "self_attention: width 6 is not a multiple of 0 heads (models/mine.cpp:12)");
  EXPECT_EQ(refusal(trace.batch("rows", f32({5, 6})), 2),
            "self_attention: needs x [B,T,C], got f32[5,6] (models/mine.cpp:12)");
  EXPECT_TRUE(trace.parameters().empty());
}

// --- caches --------------------------------------------------------------------------------------
TEST(SelfAttention, WithACacheDeclaresItByNameAndShape) {
  Trace trace("t", false);
  const Tensor position = trace.batch("position", {DType::i64, {}});
  nn::self_attention(trace, "a", trace.batch("x", f32({2, 3, 8})),
                     {.heads = 4, .cache = {.position = position, .capacity = 7}});
  const Graph graph = trace.finish();
  for (const char* name : {"a.cache.keys", "a.cache.values"}) {
    const int input = graph.find_input(name);
    ASSERT_GE(input, 0) << name;
    EXPECT_EQ(graph.inputs()[static_cast<size_t>(input)].role, Role::recurrent);
    EXPECT_EQ(graph.type(graph.inputs()[static_cast<size_t>(input)].value), f32({2, 4, 7, 2}));
    EXPECT_EQ(graph.outputs()[static_cast<size_t>(graph.find_output(name))].updates, input);
  }
}

TEST(SelfAttention, RefusesACacheThatIsTooSmallOrNotCausal) {
  const auto refusal = [](bool causal, int64_t capacity) {
    return usage_error([&] {
      Trace trace("t", false);
      const Tensor position = trace.batch("position", {DType::i64, {}});
      nn::self_attention(trace, "a", trace.batch("x", f32({1, 3, 8})),
                         {.causal = causal, .cache = {.position = position, .capacity = capacity}});
    });
  };
  EXPECT_EQ(refusal(true, 3), "");
  EXPECT_THAT(refusal(true, 2), testing::HasSubstr("a cache of 2 places needs causal attention"));
  EXPECT_THAT(refusal(false, 3), testing::HasSubstr("got f32[1,3,8]"));
}

// A row of two segments is two sequences: what each gives alone stands at its places.
TEST(SelfAttention, SegmentsKeepTheSequencesOfARowApart) {
  for (const bool causal : {true, false}) {
    const auto graph_of = [&](int64_t length, bool segmented) {
      Trace trace("t", true);
      const Tensor x = trace.batch("x", f32({1, length, 4}));
      Tensor mask;
      if (segmented) mask = nn::same_segment(trace.batch("segments", {DType::i32, {1, length}}));
      trace.result(
          "y", nn::self_attention(trace, "mix", x, {.heads = 2, .causal = causal, .mask = mask}));
      return trace.finish();
    };
    auto inputs = random_inputs(graph_of(5, false));
    const std::vector<double> x = elements(inputs.at("x"));
    inputs["segments"] = integers(DType::i32, {1, 5}, {1, 1, 2, 2, 2});
    const std::vector<double> both = elements(interpret_by_name(graph_of(5, true), inputs).at("y"));
    inputs.erase("segments");
    std::vector<double> apart;
    for (const auto& [begin, end] : {std::pair{0, 8}, std::pair{8, 20}}) {
      inputs["x"] =
          Literal::of(f32({1, (end - begin) / 4, 4}), {x.begin() + begin, x.begin() + end});
      for (const double value :
           elements(interpret_by_name(graph_of((end - begin) / 4, false), inputs).at("y")))
        apart.push_back(value);
    }
    EXPECT_THAT(both, Pointwise(IsNear(1e-12), apart)) << (causal ? "causal" : "full");
  }
}

TEST(SelfAttention, SegmentsAreOnePerToken) {
  Trace trace("t", true);
  EXPECT_EQ(nn::same_segment(trace.batch("s", {DType::i32, {2, 5}})).type(),
            (TensorType{DType::boolean, {2, 1, 5, 5}}));
  EXPECT_THAT(usage_error([&] {
                nn::same_segment(trace.batch("t", {DType::i32, {5}}));
              }),
              testing::HasSubstr("same_segment: needs x [B,T], got i32[5]"));
  EXPECT_THAT(usage_error([&] {
                nn::same_branch(trace.batch("u", {DType::i32, {5}}));
              }),
              testing::HasSubstr("same_branch: needs x [B,T], got i32[5]"));
}

TEST(SelfAttention, BranchesSeeThemselvesAndWhatIsShared) {
  GraphBuilder builder;
  const TensorType type{DType::i32, {1, 5}};
  builder.output("mask", nn::same_branch(builder.input("branches", Role::batch, type)));
  const std::vector<Literal> inputs = {Literal::of(type, {0, 0, 1, 1, 2})};
  EXPECT_THAT(interpret(builder.take(), inputs)[0].integers(),
              testing::ElementsAre(1, 1, 0, 0, 0,  //
                                   1, 1, 0, 0, 0,  //
                                   1, 1, 1, 1, 0,  //
                                   1, 1, 1, 1, 0,  //
                                   1, 1, 0, 0, 1));
}

}  // namespace
}  // namespace fullbore
