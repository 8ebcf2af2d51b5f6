// Check 2 of the specification: what a loop over the first K tokens computes, a pass for each, is what one pass computes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/hash.h"
#include "tests/support/evaluate.h"
#include "tests/support/gradcheck.h"
#include "tests/support/interpret_by_name.h"
#include "workloads/latentwire/answer_pass.h"
#include "workloads/latentwire/prefix_losses.h"

namespace fullbore::latentwire {
namespace {

using Begin = RowLayout::Begin;
using Literals = std::map<std::string, Literal>;

constexpr int64_t kBatch = 3, kPrefix = 2, kWidth = 8, kVocabulary = 7, kLength = 4;
constexpr int64_t kStateLayers[] = {1, 2};

nn::DecoderConfig decoder(bool llama) {
  nn::DecoderConfig config{
      .style = llama ? nn::DecoderConfig::Style::llama : nn::DecoderConfig::Style::gpt2,
      .vocabulary = kVocabulary,
      .layers = 2,
      .heads = 4,
      .width = kWidth,
      .hidden = 12,
      .context = 16};
  if (llama) {
    config.groups = 2;
    config.tie_head = false;
  }
  return config;
}

// Ragged: 4, 2 and 1 tokens.
const std::vector<AnswerLength> kAnswers = {{4, 0}, {2, 1}, {1, 0}};
const std::vector<double> kTokens = {3, 1, 5, 6, 2, 6, -1, -1, 4, -1, -1, -1};
// The teacher reads prompts of 3, 1 and 2 tokens, directly followed by the answers.
constexpr int64_t kPlaces = 7;
const std::vector<double> kPrompts = {1, 2, 3, 3, 1, 5, 0, 6, 2, 0, 0,
                                      0, 0, 0, 5, 5, 4, 0, 0, 0, 0};

struct Case {
  bool llama = true;
  int64_t early = 1;
  RowLayout layout = {};
};

struct Losses {
  Tensor early, distilled, states;
};

// Losses of the first K tokens, by one pass.
Losses one_pass(Trace& trace, const Case& each, Tensor prefix, Tensor answer) {
  const nn::DecoderConfig config = decoder(each.llama);
  const int64_t places = std::min(each.early, kLength);
  const std::vector<float> early = answer_factors(kAnswers, kLength, each.early).early;
  const Tensor factors =
      constant(trace.builder(), {DType::f32, {kBatch, kLength}}, {early.begin(), early.end()});
  const nn::DecoderStates student =
      prefix_states(trace, config, each.layout, prefix, answer, kStateLayers);
  const Tensor prompts = constant(trace.builder(), {DType::i32, {kBatch, kPlaces}}, kPrompts);
  const Tensor lengths = constant(trace.builder(), {DType::i32, {kBatch}}, {3, 1, 2});
  const nn::DecoderStates teacher =
      prompt_states(trace, config, prompts, lengths, places, kStateLayers);
  const auto logits = [&](Tensor hidden) {
    return language_model_logits(trace, decoder_head(trace, hidden, config));
  };
  const auto first = [&](Tensor x) { return slice(x, 1, 0, places); };
  Losses losses;
  losses.early =
      factored_sum(token_losses(trace, decoder_head(trace, student.last, config), answer), factors);
  losses.distilled =
      distillation(logits(teacher.last), logits(first(student.last)), first(factors), 2);
  for (size_t i = 0; i < 2; ++i) {
    const Tensor distance =
        state_distillation(teacher.chosen[i], first(student.chosen[i]), first(factors));
    losses.states = losses.states.valid() ? losses.states + distance : distance;
  }
  return losses;
}

// The same by a pass for each token, of which the last place alone is read: means over rows, then over tokens that any row
// has.
Losses loop(Trace& trace, const Case& each, Tensor prefix, Tensor answer) {
  const nn::DecoderConfig config = decoder(each.llama);
  GraphBuilder& builder = trace.builder();
  Losses sums;
  double counted = 0;
  const auto add = [](Tensor& sum, Tensor value) { sum = sum.valid() ? sum + value : value; };
  for (int64_t t = 0; t < std::min(each.early, kLength); ++t) {
    std::vector<double> valid;
    for (const AnswerLength& row : kAnswers) valid.push_back(t < row.tokens ? 1 : 0);
    double rows = 0;
    for (const double v : valid) rows += v;
    if (rows == 0) continue;
    ++counted;
    const Tensor weight = constant(builder, {DType::f32, {kBatch}}, valid) / rows;
    std::vector<Tensor> parts;
    const auto tokens = [&](std::vector<int32_t> ids) {
      const Tensor row = constant(builder, {DType::i32, {1, std::ssize(ids)}},
                                  std::vector<double>(ids.begin(), ids.end()));
      parts.push_back(
          decoder_embeddings(trace, broadcast_to(row, {kBatch, std::ssize(ids)}), config));
    };
    if (each.layout.begin == Begin::front) tokens({each.layout.begin_token});
    parts.push_back(prefix);
    if (each.layout.begin == Begin::before_anchor) tokens({each.layout.begin_token});
    if (!each.layout.anchor.empty()) tokens(each.layout.anchor);
    if (t > 0) parts.push_back(decoder_embeddings(trace, slice(answer, 1, 0, t), config));
    const auto last = [](Tensor x) { return squeeze(slice(x, 1, x.dim(1) - 1, x.dim(1)), 1); };
    const nn::DecoderStates student =
        decoder_states(trace, {.embeddings = concat(parts, 1)}, config, kStateLayers);
    const auto logits = [&](Tensor hidden) {
      return language_model_logits(trace, decoder_head(trace, hidden, config));
    };
    const Tensor gold = squeeze(slice(answer, 1, t, t + 1), 1);
    add(sums.early, reduce_sum(cross_entropy(logits(last(student.last)), gold) * weight, {0}));
    // Each row of the teacher by itself, without padding.
    const std::vector<int64_t> lengths = {3, 1, 2};
    std::vector<Tensor> teacher_logits;
    std::vector<std::vector<Tensor>> teacher_states(2);
    for (size_t row = 0; row < 3; ++row) {
      const auto from = kPrompts.begin() + static_cast<std::ptrdiff_t>(row) * kPlaces;
      const Tensor ids = constant(builder, {DType::i32, {1, lengths[row] + t}},
                                  std::vector<double>(from, from + lengths[row] + t));
      const nn::DecoderStates states = decoder_states(
          trace, {.embeddings = decoder_embeddings(trace, ids, config)}, config, kStateLayers);
      teacher_logits.push_back(logits(last(states.last)));
      for (size_t i = 0; i < 2; ++i) teacher_states[i].push_back(last(states.chosen[i]));
    }
    const Tensor p = log_softmax(stop_gradient(concat(teacher_logits, 0)) / 2.0);
    const Tensor q = log_softmax(logits(last(student.last)) / 2.0);
    add(sums.distilled, reduce_sum(reduce_sum(exp(p) * (p - q), {1}) * weight * 4.0, {0}));
    for (size_t i = 0; i < 2; ++i) {
      const Tensor difference =
          last(student.chosen[i]) - stop_gradient(concat(teacher_states[i], 0));
      add(sums.states, reduce_sum(reduce_mean(difference * difference, {1}) * weight, {0}));
    }
  }
  return {sums.early / counted, sums.distilled / counted, sums.states / counted};
}

// Every loss and its gradient by the prefix.
std::vector<double> numbers(const Case& each, bool looped) {
  Trace trace("losses", false);
  const Tensor prefix = trace.batch("prefix", {DType::f32, {kBatch, kPrefix, kWidth}});
  const Tensor answer = constant(trace.builder(), {DType::i32, {kBatch, kLength}}, kTokens);
  const Losses losses =
      looped ? loop(trace, each, prefix, answer) : one_pass(trace, each, prefix, answer);
  const std::vector<std::pair<std::string, Tensor>> all = {
      {"a", losses.early}, {"b", losses.distilled}, {"c", losses.states}};
  for (const auto& [name, loss] : all) {
    trace.result(name, loss);
    trace.result(name + "_gradient", gradient(loss, std::vector<Tensor>{prefix})[0]);
  }
  const Graph graph = trace.finish();
  Literals inputs;
  for (const Graph::Input& input : graph.inputs())
    inputs[input.name] = random_literal(graph.type(input.value), 3, hash_text(input.name));
  std::vector<double> result;
  for (const auto& [name, value] : interpret_by_name(graph, inputs))
    for (const double x : elements(value)) result.push_back(x);
  return result;
}

TEST(AnswerPass, IsTheLoopOverTokens) {
  std::vector<Case> cases;
  const std::vector<int32_t> one = {5}, four = {5, 1, 1, 2};
  for (const bool llama : {true, false}) {
    for (const int64_t early : {1, 3, 4, 8}) cases.push_back({llama, early, {.anchor = one}});
    cases.push_back({llama, 3, {}});
    cases.push_back({llama, 3, {.anchor = four}});
    cases.push_back({llama, 3, {Begin::front, 1, one}});
    cases.push_back({llama, 3, {Begin::before_anchor, 1, four}});
    cases.push_back({llama, 3, {Begin::before_anchor, 1, {}}});
  }
  for (const Case& each : cases) {
    const std::vector<double> fused = numbers(each, false), looped = numbers(each, true);
    ASSERT_EQ(fused.size(), looped.size());
    ASSERT_GT(fused[0], 0.1);
    double largest = 0;
    for (const double x : looped) largest = std::max(largest, std::abs(x));
    for (size_t i = 0; i < fused.size(); ++i)  // factors are f32
      EXPECT_NEAR(fused[i], looped[i], 1e-7 * largest) << each.llama << each.early << " " << i;
  }
}

// Check 7: a model that always answers the token behind the last.
TEST(AnswerPass, ShiftsOnce) {
  // One layer that adds nothing, a table of unit vectors, and a head that turns them by one.
  nn::DecoderConfig config = decoder(true);
  config.layers = 1;
  config.width = 8;
  Trace trace("stub", false);
  const Tensor prefix = trace.batch("prefix", {DType::f32, {1, kPrefix, kWidth}});
  const Tensor answer =
      constant(trace.builder(), {DType::i32, {1, 3}}, std::vector<double>{3, 4, 5});
  const nn::DecoderStates states = prefix_states(trace, config, {.anchor = {6, 2}}, prefix, answer);
  const LanguageModelHead head = decoder_head(trace, states.last, config);
  trace.result("right", token_losses(trace, head, answer));
  const Tensor twice =
      constant(trace.builder(), {DType::i32, {1, 3}}, std::vector<double>{4, 5, 6});
  trace.result("twice", token_losses(trace, head, twice));
  const Graph graph = trace.finish();
  Literals inputs;
  for (const Graph::Input& input : graph.inputs()) {
    Literal values(graph.type(input.value));
    const bool table = input.name.ends_with("token_embedding.weight");
    if (table || input.name.ends_with("head.weight"))
      for (int64_t token = 0; token < kVocabulary; ++token)
        values.put(token * kWidth + (table ? token + 1 : token) % kWidth, 1);
    if (input.name.ends_with("norm.weight"))
      for (int64_t i = 0; i < values.elements(); ++i) values.put(i, 20);
    inputs[input.name] = values;
  }
  const Literals results = interpret_by_name(graph, inputs);
  for (const double loss : elements(results.at("right"))) EXPECT_NEAR(loss, 0, 1e-6);
  for (const double loss : elements(results.at("twice"))) EXPECT_GT(loss, 10);
}

}  // namespace
}  // namespace fullbore::latentwire
