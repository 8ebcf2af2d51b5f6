// Completions of prompts, many side by side: each is what it would be alone, and both of its log-probabilities are those
// of the model without a cache.
#include "fullbore/train/rollout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "fullbore/base/error.h"
#include "fullbore/base/hash.h"
#include "fullbore/base/philox.h"
#include "fullbore/monitor/process.h"
#include "fullbore/nn/decoder_model.h"
#include "tests/support/device.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kTokens = 30;      // that there are
constexpr int64_t kVocabulary = 32;  // rows of the table
constexpr int64_t kContext = 48;

nn::DecoderConfig model() {
  return {.style = nn::DecoderConfig::Style::gpt2,
          .vocabulary = kVocabulary,
          .layers = 2,
          .heads = 4,
          .width = 32,
          .context = kContext};
}

// Rows of the table beyond the tokens would always win.
Tensor logits_of(Trace& trace, Tensor hidden) {
  const Tensor logits = language_model_logits(trace, nn::decoder_head(trace, hidden, model()));
  const Tensor id = iota(trace.builder(), {DType::i32, logits.shape()}, logits.rank() - 1);
  return select(less(id, static_cast<double>(kTokens)), logits * 6.0, 1000.0);
}

Tensor decode(Trace& trace, const PagedInputs& given) {
  const nn::DecoderInputs inputs{.embeddings = nn::decoder_embeddings(trace, given.tokens, model()),
                                 .cache = {.position = given.position,
                                           .capacity = given.pages.dim(1) * nn::kPageTokens,
                                           .pages = given.pages,
                                           .counts = given.counts,
                                           .pool_pages = given.pool_pages,
                                           .pool_dtype = given.pool_dtype,
                                           .copies = given.copies}};
  const Tensor last = nn::decoder_states(trace, inputs, model()).last;
  const int64_t rows = last.dim(0), length = last.dim(1);
  const Tensor first = iota(trace.builder(), {DType::i64, {rows}}, 0) * static_cast<double>(length);
  const Tensor flat = reshape(last, {rows * length, last.dim(2)});
  return squeeze(logits_of(trace, expand_dims(gather(flat, first + given.counts - 1.0), 1)), 1);
}

/// By prompt's index and sample.
using Rows = std::map<std::pair<uint32_t, uint32_t>, RolloutRow>;

class RolloutTest : public ::testing::Test {
 protected:
  State filled(const Graph& graph, int workers = 2) {
    State state(state_entries(graph), testing_support::cpu_device(workers));
    for (size_t i = 0; i < state.entries().size(); ++i) {
      const StateEntry& entry = state.entries()[i];
      if (entry.role != Role::parameter) continue;
      PhiloxStream draws(hash_text(entry.name));
      std::vector<float> values(static_cast<size_t>(entry.type.elements()));
      draws.normals(values, entry.name.ends_with("norm.weight") ? 1 : 0, 0.1);
      state.write(static_cast<int>(i), std::as_bytes(std::span(values)));
    }
    return state;
  }

  Rows run(const RolloutSizes& sizes, std::span<const RolloutPrompt> prompts,
           const RolloutOptions& options, int workers = 2, const CompileOptions& compile = {}) {
    State state = filled(Rollout::trace(decode, sizes), workers);
    Rollout rollout(decode, sizes, state, compile);
    Rows rows;
    counts_ = rollout.run(prompts, options, [&](RolloutRow&& row) {
      const auto key = std::pair(prompts[row.prompt].index, row.sample);
      EXPECT_TRUE(rows.emplace(key, std::move(row)).second) << "handed over twice";
    });
    EXPECT_EQ(rollout.used_pages(), 0);
    return rows;
  }

  static RolloutSizes sizes(int64_t slots, int64_t tokens_per_launch = 1) {
    return {.slots = slots,
            .context = kContext,
            .vocabulary = kTokens,
            .chunk = 8,
            .prefilled = 2,
            .tokens_per_launch = tokens_per_launch};
  }

  std::vector<RolloutPrompt> prompts() {
    PhiloxStream draws(3);
    std::vector<RolloutPrompt> made;
    for (const int64_t length : {21, 1, 5, 16, 17, 40})
      made.push_back({.tokens = std::vector<int32_t>(static_cast<size_t>(length)),
                      .samples = 3,
                      .max_new_tokens = 12,
                      .index = static_cast<uint32_t>(length)});
    for (RolloutPrompt& prompt : made)
      for (int32_t& token : prompt.tokens) token = static_cast<int32_t>(draws.below(kTokens));
    return made;
  }

  /// log softmax(logits) behind each token of the text, of the model without a cache: [T, kTokens].
  std::vector<double> log_probabilities(const std::vector<int32_t>& text, double temperature = 1,
                                        const CompileOptions& compile = {}) {
    Trace trace("whole", false);
    const Tensor tokens = trace.batch("tokens", {DType::i32, {1, kContext}});
    nn::DecoderInputs inputs;
    inputs.embeddings = nn::decoder_embeddings(trace, tokens, model());
    trace.result("logits", logits_of(trace, nn::decoder_states(trace, inputs, model()).last));
    const Graph graph = trace.finish();
    State state = filled(graph);
    Program program = Program::compile(graph, state, compile);
    alignas(64) std::array<int32_t, 64> padded{};
    std::ranges::copy(text, padded.begin());
    const void* const batch[] = {padded.data()};
    program.run(batch);
    const auto logits = program.read_result<float>(program.output("logits"));
    std::vector<double> result;
    for (size_t t = 0; t < text.size(); ++t) {
      double sum = 0;
      const auto logit = [&](int64_t id) {
        return static_cast<double>(logits[t * kVocabulary + static_cast<size_t>(id)]) / temperature;
      };
      for (int64_t id = 0; id < kTokens; ++id) sum += std::exp(logit(id));
      for (int64_t id = 0; id < kTokens; ++id) result.push_back(logit(id) - std::log(sum));
    }
    return result;
  }

  RolloutCounts counts_;
};

std::vector<std::vector<int32_t>> tokens_of(const Rows& rows) {
  std::vector<std::vector<int32_t>> tokens;
  for (const auto& [key, row] : rows) tokens.push_back(row.tokens);
  return tokens;
}

TEST_F(RolloutTest, ARowDependsOnNoOtherAndOnNoSize) {
  std::vector<RolloutPrompt> asked = prompts();
  const RolloutOptions options{.stop_tokens = {4, 9}, .key = 11, .step = 5};
  const Rows expected = run(sizes(20), asked, options);
  ASSERT_EQ(expected.size(), 18U);
  std::set<std::vector<int32_t>> different;
  for (const auto& [key, row] : expected) different.insert(row.tokens);
  EXPECT_GT(different.size(), 15U) << "samples of a prompt are not each other's copies";
  EXPECT_EQ(tokens_of(run(sizes(20), asked, options)), tokens_of(expected));
  EXPECT_EQ(tokens_of(run(sizes(1), asked, options)), tokens_of(expected)) << "a slot";
  EXPECT_EQ(tokens_of(run(sizes(5), asked, options, 1)), tokens_of(expected)) << "a thread";
  EXPECT_EQ(tokens_of(run(sizes(5, 4), asked, options)), tokens_of(expected)) << "four a launch";
  EXPECT_EQ(tokens_of(run(sizes(20, 32), asked, options)), tokens_of(expected)) << "all a launch";
  std::ranges::reverse(asked);
  EXPECT_EQ(tokens_of(run(sizes(5, 3), asked, options)), tokens_of(expected)) << "another order";
  RolloutOptions later = options;
  later.step = 6;
  EXPECT_NE(tokens_of(run(sizes(20), asked, later)), tokens_of(expected));
  later.step = 5, later.key = 12;
  EXPECT_NE(tokens_of(run(sizes(20), asked, later)), tokens_of(expected));
}

TEST_F(RolloutTest, BothLogProbabilitiesAreThoseOfTheModelWithoutACache) {
  const std::vector<RolloutPrompt> asked = prompts();
  for (const double temperature : {1.0, 0.7}) {
    const RolloutOptions options{.sampling = {.temperature = temperature}, .key = 2};
    const Rows rows = run(sizes(4, 3), asked, options);
    for (const RolloutPrompt& prompt : asked) {
      const RolloutRow& row = rows.at({prompt.index, 1});
      std::vector<int32_t> text = prompt.tokens;
      text.insert(text.end(), row.tokens.begin(), row.tokens.end() - 1);
      const std::vector<double> raw = log_probabilities(text);
      const std::vector<double> sampled = log_probabilities(text, temperature);
      for (size_t t = 0; t < row.tokens.size(); ++t) {
        const size_t at =
            (prompt.tokens.size() - 1 + t) * kTokens + static_cast<size_t>(row.tokens[t]);
        EXPECT_NEAR(row.raw[t], raw[at], 1e-4);
        EXPECT_NEAR(row.sampled[t], sampled[at], 1e-4);
      }
    }
  }
}

// Keys and values in 16 bits are what a whole pass of that precision multiplies: a row's log-probabilities are as near to those
// of f32 as that pass's own, and half the bytes are kept.
TEST_F(RolloutTest, APoolOf16BitsIsAsNearAsAWholePassInThatPrecision) {
  const auto pool_bytes = [](const RolloutSizes& sizes) {
    int64_t bytes = 0;
    for (const StateEntry& entry : state_entries(Rollout::trace(decode, sizes)))
      if (entry.role == Role::recurrent) bytes += entry.type.bytes();
    return bytes;
  };
  const std::vector<RolloutPrompt> asked = prompts();
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const CompileOptions compile{.precision = dtype};
    RolloutSizes narrow = sizes(4, 3);
    narrow.pool_dtype = pool_dtype(compile);
    EXPECT_EQ(2 * pool_bytes(narrow), pool_bytes(sizes(4, 3)));
    const Rows rows = run(narrow, asked, {.key = 2}, 2, compile);
    double of_rollout = 0, of_pass = 0, largest = 0;
    for (const RolloutPrompt& prompt : asked) {
      const RolloutRow& row = rows.at({prompt.index, 1});
      std::vector<int32_t> text = prompt.tokens;
      text.insert(text.end(), row.tokens.begin(), row.tokens.end() - 1);
      const std::vector<double> exact = log_probabilities(text);
      const std::vector<double> pass = log_probabilities(text, 1, compile);
      for (size_t t = 0; t < row.tokens.size(); ++t) {
        const size_t at =
            (prompt.tokens.size() - 1 + t) * kTokens + static_cast<size_t>(row.tokens[t]);
        of_rollout += std::abs(row.raw[t] - exact[at]);
        of_pass += std::abs(pass[at] - exact[at]);
        largest = std::max(largest, std::abs(row.raw[t] - pass[at]));
      }
    }
    EXPECT_GT(of_pass, 0);
    EXPECT_LT(of_rollout, 1.5 * of_pass) << dtype_name(dtype);
    EXPECT_LT(largest, dtype == DType::bf16 ? 0.1 : 0.0125) << dtype_name(dtype);
  }
}

// A model whose modules stay f32 in part may attend there, and one that nothing lowers does.
TEST(PoolDtype, IsThePrecisionUnlessModulesStayF32) {
  EXPECT_EQ(pool_dtype({}), DType::f32);
  EXPECT_EQ(pool_dtype({.precision = DType::bf16}), DType::bf16);
  EXPECT_EQ(pool_dtype({.precision = DType::f16}), DType::f16);
  EXPECT_EQ(pool_dtype({.precision = DType::bf16, .fp32_scopes = {"layers.0.*"}}), DType::f32);
  CompileOptions kept{.precision = DType::bf16};
  kept.passes.disabled = {"lower_precision"};
  EXPECT_EQ(pool_dtype(kept), DType::f32);
}

// Whatever draws, graph or host: a penalty of nearly nothing is the host's, and changes nothing.
TEST_F(RolloutTest, TheHostDrawsTheSame) {
  const std::vector<RolloutPrompt> asked = prompts();
  for (const SamplingOptions& sampling :
       {SamplingOptions{}, SamplingOptions{.temperature = 0.8, .top_k = 7, .top_p = 0.9},
        SamplingOptions{.top_p = 0.5}, SamplingOptions{.temperature = 0}}) {
    RolloutOptions options{.sampling = sampling, .stop_tokens = {4}, .key = 3};
    const Rows drawn = run(sizes(6, 4), asked, options);
    options.sampling.repetition_penalty = 1 + 1e-12;
    const Rows expected = run(sizes(6), asked, options);
    EXPECT_EQ(tokens_of(drawn), tokens_of(expected));
    for (const auto& [key, row] : expected)
      for (size_t t = 0; t < row.tokens.size(); ++t) {
        EXPECT_NEAR(drawn.at(key).raw[t], row.raw[t], 1e-4);
        EXPECT_NEAR(drawn.at(key).sampled[t], row.sampled[t], 1e-4);
      }
  }
}

TEST_F(RolloutTest, RowsEndWhereTheyShould) {
  const std::vector<RolloutPrompt> asked = prompts();
  const Rows rows = run(sizes(7, 5), asked, {.stop_tokens = {4, 9, 13}, .key = 1});
  int stopped = 0;
  for (const auto& [key, row] : rows) {
    const auto end = std::ranges::find_if(
        row.tokens, [](int32_t token) { return token == 4 || token == 9 || token == 13; });
    EXPECT_EQ(row.reason == FinishReason::stopped, end != row.tokens.end());
    EXPECT_EQ(row.raw.size(), row.tokens.size());
    EXPECT_EQ(row.sampled.size(), row.tokens.size());
    if (row.reason == FinishReason::stopped) {
      EXPECT_EQ(end, row.tokens.end() - 1) << "nothing follows";
      ++stopped;
    } else {
      EXPECT_EQ(row.tokens.size(), key.first == 40 ? 9U : 12U) << "the context ends those of 40";
    }
    for (const int32_t token : row.tokens) EXPECT_LT(token, kTokens);
  }
  EXPECT_GT(stopped, 5);
  EXPECT_LT(stopped, 18);
  const Rows cut =
      run(sizes(7, 5), asked,
          {.key = 1, .goes_on = [](const RolloutRow& row) { return row.tokens.size() < 2; }});
  for (const auto& [key, row] : cut) EXPECT_EQ(row.tokens.size(), 2U);
}

// With engine.row_invariant the log-probabilities of a row are those that training computes of it, to the bit.
TEST_F(RolloutTest, RowInvariantOnesAreTrainingsToTheBit) {
  const std::vector<RolloutPrompt> asked = prompts();
  const CompileOptions exact{.row_invariant = true};
  const Rows rows = run(sizes(5), asked, {.key = 8}, 2, exact);
  const Rows others = run(sizes(20, 4), asked, {.key = 8}, 1, exact);
  EXPECT_EQ(tokens_of(others), tokens_of(rows));
  Trace trace("loss", false);
  const Tensor tokens = trace.batch("tokens", {DType::i32, {1, kContext}});
  const Tensor targets = trace.batch("targets", {DType::i32, {1, kContext}});
  nn::DecoderInputs inputs;
  inputs.embeddings = nn::decoder_embeddings(trace, tokens, model());
  const Tensor logits = logits_of(trace, nn::decoder_states(trace, inputs, model()).last);
  trace.result("losses", cross_entropy(slice(logits, 2, 0, kTokens), targets));
  const Graph graph = trace.finish();
  State state = filled(graph);
  Program program = Program::compile(graph, state, exact);
  for (const RolloutPrompt& prompt : asked)
    for (const uint32_t sample : {0U, 2U}) {
      const RolloutRow& row = rows.at({prompt.index, sample});
      EXPECT_EQ(others.at({prompt.index, sample}).raw, row.raw);
      alignas(64) std::array<int32_t, 64> text{}, next{};
      std::ranges::copy(prompt.tokens, text.begin());
      std::copy(row.tokens.begin(), row.tokens.end() - 1, text.begin() + prompt.tokens.size());
      std::ranges::copy(row.tokens, next.begin() + prompt.tokens.size() - 1);
      const std::map<std::string, const void*> given = {{"tokens", text.data()},
                                                        {"targets", next.data()}};
      std::vector<const void*> batch;
      for (const Graph::Input& input : program.plan().graph.inputs())
        if (!is_kept(input.role)) batch.push_back(given.at(input.name));
      program.run(batch);
      const auto losses = program.read_result<float>(program.output("losses"));
      for (size_t t = 0; t < row.tokens.size(); ++t)
        EXPECT_EQ(row.raw[t], -losses[prompt.tokens.size() - 1 + t])
            << "prompt " << prompt.index << ", token " << t;
    }
}

TEST_F(RolloutTest, APromptIsReadOnceForAllOfItsSamples) {
  std::vector<RolloutPrompt> asked = prompts();
  run(sizes(4), asked, {});
  int64_t tokens = 0;
  for (const RolloutPrompt& prompt : asked)
    tokens += static_cast<int64_t>(prompt.tokens.size()) - 1;
  EXPECT_EQ(counts_.prefilled_tokens, tokens);
  EXPECT_EQ(counts_.rows, 18);
  EXPECT_EQ(counts_.generated_tokens, 5 * 3 * 12 + 3 * 9);
  // What all begin with is read once for all.
  for (RolloutPrompt& prompt : asked)
    prompt.tokens.insert(prompt.tokens.begin(), 20, 7), prompt.max_new_tokens = 4;
  asked.resize(5);
  const Rows alike = run(sizes(4), asked, {});
  EXPECT_EQ(counts_.prefilled_tokens, 20 + 20 + 0 + 4 + 15 + 16);
  asked.resize(1);
  EXPECT_EQ(run(sizes(4), asked, {}).at({21, 2}).tokens, alike.at({21, 2}).tokens);
}

TEST_F(RolloutTest, WhatIsNotAllowedIsNotDrawn) {
  const std::vector<RolloutPrompt> asked = prompts();
  // Of row after row, tokens of one parity by turns.
  const auto may = [](const RolloutRow& row, size_t place, int32_t token) {
    return (static_cast<size_t>(token) + place + row.sample) % 2 == 0;
  };
  const RolloutOptions options{
      .key = 4, .allow = [&](const RolloutRow& row, std::vector<bool>& allowed) {
        ASSERT_EQ(allowed.size(), static_cast<size_t>(kTokens));
        for (size_t id = 0; id < allowed.size(); ++id) {
          ASSERT_TRUE(allowed[id]);
          allowed[id] = may(row, row.tokens.size(), static_cast<int32_t>(id));
        }
      }};
  const Rows rows = run(sizes(3), asked, options);
  for (const auto& [key, row] : rows)
    for (size_t place = 0; place < row.tokens.size(); ++place) {
      EXPECT_TRUE(may(row, place, row.tokens[place])) << place;
      EXPECT_GT(row.sampled[place], row.raw[place]) << "of fewer tokens each is likelier";
    }
  EXPECT_EQ(tokens_of(run(sizes(6, 4), asked, options)), tokens_of(rows));
  EXPECT_NE(tokens_of(run(sizes(3), asked, {.key = 4})), tokens_of(rows));
}

TEST_F(RolloutTest, WhatSlidesGoesOnBeyondTheContext) {
  std::vector<RolloutPrompt> asked = prompts();
  for (RolloutPrompt& prompt : asked) prompt.samples = 1, prompt.max_new_tokens = 70;
  asked[1].tokens.assign(60, 5);
  const RolloutOptions options{.key = 4, .slides = true};
  const Rows rows = run(sizes(2, 4), asked, options);
  EXPECT_EQ(tokens_of(run(sizes(6), asked, options)), tokens_of(rows));
  for (const auto& [key, row] : rows) EXPECT_EQ(row.tokens.size(), 70U);
  // Of token 50 of the first, whose places were taken anew from the newest 24 tokens.
  const RolloutRow& row = rows.at({21, 0});
  std::vector<int32_t> text = asked[0].tokens;
  text.insert(text.end(), row.tokens.begin(), row.tokens.end());
  const std::vector<int32_t> seen(text.begin() + 25, text.begin() + 25 + 24);
  EXPECT_NEAR(row.raw[28],
              log_probabilities(seen)[23 * kTokens + static_cast<size_t>(row.tokens[28])], 1e-4);
}

TEST_F(RolloutTest, AThousandRunsTakeNoMoreThanTwenty) {
  const RolloutSizes small = sizes(2, 2);
  State state = filled(Rollout::trace(decode, small), 1);
  Rollout rollout(decode, small, state, {});
  std::vector<RolloutPrompt> asked = prompts();
  asked.resize(2);
  for (RolloutPrompt& prompt : asked) prompt.max_new_tokens = 2;
  [[maybe_unused]] int64_t before = 0;
  for (uint32_t step = 0; step < 1000; ++step) {
    rollout.run(asked, {.step = step}, [](RolloutRow&&) {});
    ASSERT_EQ(rollout.used_pages(), 0);
    if (step == 20) before = resident_bytes();
  }
#ifndef __SANITIZE_ADDRESS__  // whose heap keeps what is freed
  EXPECT_LT(resident_bytes() - before, 1 << 20);
#endif
}

TEST_F(RolloutTest, WhatCannotBeCompletedIsRefusedBeforeAnythingRuns) {
  State state = filled(Rollout::trace(decode, sizes(2)));
  Rollout rollout(decode, sizes(2), state, {});
  const auto refused = [&](RolloutPrompt prompt) {
    const RolloutPrompt two[] = {{.tokens = {1, 2}}, std::move(prompt)};
    try {
      rollout.run(two, {}, [](RolloutRow&&) { ADD_FAILURE() << "something ran"; });
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_THAT(refused({}), HasSubstr("prompt 1 has no tokens"));
  EXPECT_THAT(refused({.tokens = std::vector<int32_t>(49, 1)}),
              HasSubstr("prompt 1 has 49 tokens, the context has 48 places"));
  EXPECT_THAT(refused({.tokens = {1, 30}}), HasSubstr("token 30 in a vocabulary of 30"));
  EXPECT_THAT(refused({.tokens = {-1}}), HasSubstr("token -1"));
  EXPECT_THAT(refused({.tokens = {1}, .samples = 0}), HasSubstr("0 samples"));
  EXPECT_THAT(refused({.tokens = {1}, .max_new_tokens = 0}), HasSubstr("0 new tokens"));
}

TEST_F(RolloutTest, LogitsThatAreNotFiniteAreAnError) {
  for (const int64_t tokens : {1, 4}) {
    State state = filled(Rollout::trace(decode, sizes(2, tokens)));
    Rollout rollout(decode, sizes(2, tokens), state, {});
    const RolloutPrompt asked[] = {{.tokens = {1, 2}, .samples = 2, .max_new_tokens = 3}};
    for (const StateEntry& entry : state.entries())
      if (entry.name.ends_with("final_norm.weight"))
        state.write(entry.name, std::vector<float>(static_cast<size_t>(entry.type.elements()),
                                                   std::numeric_limits<float>::quiet_NaN()));
    try {
      rollout.run(asked, {}, [](RolloutRow&&) {});
      ADD_FAILURE() << "nothing was thrown";
    } catch (const NumericalError& error) {
      EXPECT_THAT(error.what(), HasSubstr("not finite: prompt 0, sample 0, token 0"));
    }
    EXPECT_EQ(rollout.used_pages(), 0);
  }
}

}  // namespace
}  // namespace fullbore
