#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/runtime/program.h"
#include "fullbore/trace/trace.h"
#include "fullbore/train/sample_rows.h"
#include "fullbore/train/sampling.h"
#include "tests/support/device.h"

namespace fullbore {
namespace {

std::vector<int> count_draws(const std::vector<float>& logits, const SamplingOptions& options,
                             int draws) {
  PhiloxStream stream(7);
  std::vector<int> counts(logits.size(), 0);
  for (int i = 0; i < draws; ++i)
    ++counts[static_cast<size_t>(sample_token(logits, options, stream))];
  return counts;
}

/// sample_rows() of the same logits in each row, as many as there are draws.
std::vector<SampledToken> drawn_by_graph(SamplingKind kind, const SamplingOptions& options,
                                         const std::vector<float>& logits,
                                         const std::vector<float>& uniform) {
  const auto rows = static_cast<int64_t>(uniform.size());
  const auto tokens = static_cast<int64_t>(logits.size());
  Trace trace("draws", false);
  const auto given = [&](TensorType type, const std::vector<float>& values) {
    return constant(trace.builder(), std::move(type),
                    std::vector<double>(values.begin(), values.end()));
  };
  const auto number = [&](DType dtype, double value) {
    return full(trace.builder(), {dtype, {}}, value);
  };
  const SampledRows drawn = sample_rows(
      kind, {.logits = broadcast_to(given({DType::f32, {tokens}}, logits), {rows, tokens}),
             .uniform = given({DType::f32, {rows}}, uniform),
             .temperature = number(DType::f32, options.temperature),
             .top_k = number(DType::i64, static_cast<double>(options.top_k)),
             .top_p = number(DType::f32, options.top_p)});
  trace.result("tokens", drawn.tokens);
  trace.result("raw", drawn.raw);
  trace.result("sampled", drawn.sampled);
  const Graph graph = trace.finish();
  State state({}, testing_support::cpu_device(1));
  Program program = Program::compile(graph, state);
  program.run({});
  const auto ids = program.read_result<int32_t>(program.output("tokens"));
  const auto raw = program.read_result<float>(program.output("raw"));
  const auto sampled = program.read_result<float>(program.output("sampled"));
  std::vector<SampledToken> result;
  for (size_t i = 0; i < ids.size(); ++i) result.push_back({ids[i], raw[i], sampled[i]});
  return result;
}

TEST(Sampling, FollowsTheSoftmax) {
  const std::vector<float> logits = {0, 1, -1, 2};
  constexpr int kDraws = 40'000;
  for (const double temperature : {0.5, 1.0, 2.0}) {
    const std::vector<int> counts = count_draws(logits, {.temperature = temperature}, kDraws);
    double total = 0;
    for (const float logit : logits) total += std::exp(logit / temperature);
    for (size_t id = 0; id < logits.size(); ++id) {
      const double p = std::exp(logits[id] / temperature) / total;
      EXPECT_NEAR(counts[id], kDraws * p, 5 * std::sqrt(kDraws * p * (1 - p))) << id;
    }
  }
}

TEST(Sampling, TopKDrawsFromTheKLargestAndTiesGoToTheLowerId) {
  const std::vector<float> logits = {3, 5, 5, 5, 1};
  const std::vector<int> counts = count_draws(logits, {.top_k = 2}, 1000);
  EXPECT_EQ(counts[1] + counts[2], 1000);
  EXPECT_GT(counts[1], 400);
  EXPECT_GT(counts[2], 400);
  EXPECT_EQ(count_draws(logits, {.top_k = 1}, 10)[1], 10);
  EXPECT_GT(count_draws(logits, {.top_k = 100}, 2000)[4], 0)
      << "k beyond the vocabulary is all of it";
}

TEST(Sampling, TemperatureZeroTakesTheLargest) {
  EXPECT_EQ(count_draws({0, 3, 2, 3}, {.temperature = 0}, 10)[1], 10);
}

TEST(Sampling, WhatIsNotAllowedIsNotDrawnAndTheOthersKeepTheirProportions) {
  const std::vector<float> logits = {5, 1, 1, 4};
  const std::vector<bool> allowed = {false, true, true, false};
  EXPECT_EQ(sample_token(logits, {.temperature = 0}, 0, {}, allowed).token, 1);
  EXPECT_EQ(sample_token(logits, {}, 0.49, {}, allowed).token, 1);
  const SampledToken drawn = sample_token(logits, {.top_k = 3}, 0.51, {}, allowed);
  EXPECT_EQ(drawn.token, 2);
  EXPECT_NEAR(drawn.sampled, std::log(0.5), 1e-6);
  const double all = std::exp(5.0) + 2 * std::exp(1.0) + std::exp(4.0);
  EXPECT_NEAR(drawn.raw, 1 - std::log(all), 1e-6) << "by the model, of all tokens";
  EXPECT_THROW(sample_token(logits, {}, 0.5, {}, std::vector<bool>(4, false)), NumericalError);
}

TEST(Sampling, HugeAndMinusInfiniteLogitsAreFine) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(count_draws({1000, -1000, -infinity}, {}, 100)[0], 100);
}

TEST(Sampling, WhatIsNoDistributionIsRefused) {
  PhiloxStream stream(1);
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto draw = [&](std::vector<float> logits) { sample_token(logits, {}, stream); };
  EXPECT_THROW(draw({1, nan}), NumericalError);
  EXPECT_THROW(draw({1, infinity}), NumericalError);
  EXPECT_THROW(draw({-infinity, -infinity}), NumericalError);
}

// Probabilities 0.64, 0.24, 0.09, 0.03.
const std::vector<float> kDescending = {
    static_cast<float>(std::log(0.24)), static_cast<float>(std::log(0.03)),
    static_cast<float>(std::log(0.64)), static_cast<float>(std::log(0.09))};

TEST(Sampling, TopPKeepsTheFewestThatReachIt) {
  const auto drawn = [](double top_p, int64_t top_k = 0) {
    std::vector<int> ids;
    const std::vector<int> counts =
        count_draws(kDescending, {.top_k = top_k, .top_p = top_p}, 4000);
    for (size_t id = 0; id < counts.size(); ++id)
      if (counts[id] > 0) ids.push_back(static_cast<int>(id));
    return ids;
  };
  using Ids = std::vector<int>;
  EXPECT_EQ(drawn(0), (Ids{2}));
  EXPECT_EQ(drawn(0.6), (Ids{2}));
  EXPECT_EQ(drawn(0.7), (Ids{0, 2}));
  EXPECT_EQ(drawn(0.9), (Ids{0, 2, 3}));
  EXPECT_EQ(drawn(1), (Ids{0, 1, 2, 3}));
  // Of the two likeliest the first has 0.64 / 0.88 = 0.727.
  EXPECT_EQ(drawn(0.72, 2), (Ids{2}));
  EXPECT_EQ(drawn(0.74, 2), (Ids{0, 2}));
}

TEST(Sampling, TopPKeepsTheOthersInProportion) {
  constexpr int kDraws = 20'000;
  const std::vector<int> counts = count_draws(kDescending, {.top_p = 0.7}, kDraws);
  const double p = 0.64 / 0.88;
  EXPECT_NEAR(counts[2], kDraws * p, 5 * std::sqrt(kDraws * p * (1 - p)));
}

TEST(Sampling, TheRepetitionPenaltyIsOfTokensSeenOnce) {
  const auto likeliest = [](const std::vector<float>& logits, double penalty,
                            const std::vector<bool>& seen) {
    PhiloxStream stream(1);
    return sample_token(logits, {.repetition_penalty = penalty, .temperature = 0}, stream, seen);
  };
  EXPECT_EQ(likeliest({4, 3, 1}, 1, {true}), 0);
  EXPECT_EQ(likeliest({4, 3, 1}, 1.5, {true}), 1) << "4 / 1.5 is below 3";
  EXPECT_EQ(likeliest({4, 3, 1}, 1.5, {false, true}), 0);
  EXPECT_EQ(likeliest({-2, -3, -9}, 2, {true}), 1) << "-2 * 2 is below -3";
  EXPECT_EQ(likeliest({4, 2.5, 1}, 1.5, {true}), 0);
  EXPECT_EQ(likeliest({4, 3, 1}, 0.5, {false, true}), 1) << "below 1 it is a reward";
  EXPECT_EQ(likeliest({4, 3, 1}, 1.5, {false, false, false, true}), 0) << "a token without a logit";
}

TEST(Sampling, SameSeedSameTokens) {
  const std::vector<float> logits = {0, 1, 2, 3};
  PhiloxStream a(5), b(5), c(6);
  std::vector<int32_t> draws_a, draws_b, draws_c;
  for (int i = 0; i < 50; ++i) {
    draws_a.push_back(sample_token(logits, {}, a));
    draws_b.push_back(sample_token(logits, {}, b));
    draws_c.push_back(sample_token(logits, {}, c));
  }
  EXPECT_EQ(draws_a, draws_b);
  EXPECT_NE(draws_a, draws_c);
}

// --- values worked out by hand: logits 2, 1, 0.5, 0, -1 -------------------------------------------

const std::vector<float> kLogits = {2, 1, 0.5, 0, -1};
constexpr double kRaw[] = {-0.57443794, -1.57443794, -2.07443794, -2.57443794, -3.57443794};

struct Kept {
  SamplingOptions options;
  std::vector<double> probabilities;  ///< of the first tokens; the others are left out
};
const Kept kKept[] = {
    {{.temperature = 0.8, .top_k = 4, .top_p = 0.8}, {0.77729986, 0.22270014}},
    {{.temperature = 0.8, .top_p = 0.95}, {0.65705407, 0.18824914, 0.10076251, 0.05393428}},
    {{.temperature = 0.7, .top_k = 2}, {0.80667863, 0.19332137}},
    {{.temperature = 0}, {1}},
    {{}, {0.56302123, 0.20712393, 0.12562701, 0.07619664, 0.02803118}}};

// The host's draws and the graph's, at a thousand places of [0, 1).
TEST(Sampling, BothLogProbabilitiesAreExact) {
  constexpr int64_t kRows = 1000;
  for (const Kept& kept : kKept) {
    const SamplingOptions& options = kept.options;
    std::vector<int> counts(kLogits.size(), 0);
    std::vector<SampledToken> host;
    std::vector<float> uniform;
    for (int i = 0; i < kRows; ++i) {
      uniform.push_back((static_cast<float>(i) + 0.5F) / kRows);
      host.push_back(sample_token(kLogits, options, uniform.back()));
      const auto id = static_cast<size_t>(host.back().token);
      ASSERT_LT(id, kept.probabilities.size());
      ++counts[id];
      EXPECT_NEAR(host.back().raw, kRaw[id], 1e-6);
      EXPECT_NEAR(host.back().sampled, std::log(kept.probabilities[id]), 1e-6);
    }
    for (size_t id = 0; id < kept.probabilities.size(); ++id)
      EXPECT_NEAR(counts[id], kRows * kept.probabilities[id], 1) << id;

    const SamplingKind kind = options.temperature == 0                 ? SamplingKind::greedy
                              : options.top_k > 0 || options.top_p < 1 ? SamplingKind::kept
                                                                       : SamplingKind::full;
    const std::vector<SampledToken> graph = drawn_by_graph(kind, options, kLogits, uniform);
    for (size_t i = 0; i < graph.size(); ++i) {
      EXPECT_EQ(graph[i].token, host[i].token) << i;
      EXPECT_NEAR(graph[i].raw, host[i].raw, 1e-6);
      EXPECT_NEAR(graph[i].sampled, host[i].sampled, 1e-6);
    }
  }
}

TEST(Sampling, ADrawIsWord0OfPhiloxOfStepPromptSampleAndToken) {
  EXPECT_EQ(draw_uniform(0, 0, 0, 0, 0), static_cast<float>(0x6627e8) * 0x1p-24F);
  EXPECT_EQ(draw_uniform(~0ULL, ~0U, ~0U, ~0U, ~0U), static_cast<float>(0x408f27) * 0x1p-24F);
  EXPECT_EQ(draw_uniform(0x299f31d0a4093822, 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344),
            static_cast<float>(0xd16cfe) * 0x1p-24F);
  Trace trace("draws", false);
  const auto words = [&](uint64_t value) {
    return full(trace.builder(), {DType::i64, {}}, static_cast<double>(value));
  };
  trace.result("uniform", draw_uniforms(words(7), words(3 + (uint64_t{5} << 32)),
                                        words(2 + (uint64_t{9} << 32))));
  const Graph graph = trace.finish();
  State state({}, testing_support::cpu_device(1));
  Program program = Program::compile(graph, state);
  program.run({});
  EXPECT_EQ(program.read_result<float>(0)[0], draw_uniform(7, 3, 5, 2, 9));
}

}  // namespace
}  // namespace fullbore
