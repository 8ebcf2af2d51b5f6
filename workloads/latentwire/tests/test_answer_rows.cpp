// Checks 6, 7 and 8 of the specification: answers over a cache are those of whole passes.
#include "workloads/latentwire/answer_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/support/device.h"
#include "workloads/latentwire/answer_graphs.h"
#include "workloads/latentwire/attribute_corpus.h"
#include "workloads/latentwire/evaluate_systems.h"
#include "workloads/latentwire/prompt_batches.h"

namespace fullbore::latentwire {
namespace {

using Answers = std::vector<std::vector<int32_t>>;

constexpr int64_t kRows = 3, kAnswer = 5;
constexpr const char* kConditioned =
    ", conditioning: {deep_prefix: true, coprocessor: 8, attending_blocks: [1], rank: 2}";

Config config_of(const std::string& rest) {
  return parse_config(
      "{model: {name: latentwire}, wire: {slots: 2, own_slots: 1, width: 16, layers: 1, heads: 2}, "
      "receivers: {begin: front}" +
          rest + "}",
      "x");
}

/// A receiver with random weights, read both ways.
class Both {
 public:
  Both(const std::string& kind, const std::string& rest, int64_t text_places)
      : config_(config_of(rest)),
        receivers_(recorded_receivers(
            R"({"receivers": [{"name": "one", "kind": ")" + kind + R"("}]})", config_)),
        sizes_{config_, receivers_, 0, kRows, kAnswer, text_places},
        state_(state_entries(cached_answer_graph(sizes_)), testing_support::cpu_device(1)),
        whole_(whole_answer_rows(sizes_, state_)),
        cached_(cached_answer_rows(sizes_, state_)) {
    std::mt19937 random(3);
    for (const StateEntry& entry : state_.entries()) {
      if (entry.role == Role::recurrent) continue;
      const bool is_gain = entry.name.find("norm") != std::string::npos;
      std::normal_distribution<float> draw(is_gain ? 1.0F : 0.0F, 0.15F);
      std::vector<float> values(static_cast<size_t>(entry.type.shape.elements()));
      std::ranges::generate(values, [&] { return draw(random); });
      if (entry.name.ends_with("rms")) values = {0.15F};
      state_.write(entry.name, values);
    }
    std::normal_distribution<float> draw;
    wires_.resize(static_cast<size_t>(kRows * wire_numbers(sizes_)));
    std::ranges::generate(wires_, [&] { return draw(random); });
  }

  AnswerRows& whole() { return *whole_; }
  AnswerRows& cached() { return *cached_; }
  const Receiver& receiver() const { return receivers_[0]; }
  Given wires() const { return {.wires = wires_}; }

  /// Both ways answer and judge alike.
  void expect_same(const Given& given, std::span<const size_t> chosen) {
    whole_->begin(given, chosen);
    cached_->begin(given, chosen);
    const Answers answers = cached_->write({});
    EXPECT_TRUE(answers == whole_->write({}));
    ASSERT_EQ(answers.size(), chosen.size());
    // Twice over one reading, of lengths 5, 2 and 1; then what was written again.
    Answers given_answers = {{4, 9, 300, 7, 11}, {5, 6}, {8}};
    given_answers.resize(chosen.size());
    if (receiver().kind == "bytes") given_answers[0][2] = 30;
    for (const Answers& each : {given_answers, answers}) {
      const std::vector<Likelihood> a = whole_->judge(each), b = cached_->judge(each);
      for (size_t row = 0; row < each.size(); ++row) {
        EXPECT_EQ(b[row].losses.size(), each[row].size());
        EXPECT_EQ(a[row].ranks, b[row].ranks);
        for (size_t t = 0; t < each[row].size(); ++t)
          EXPECT_NEAR(a[row].losses[t], b[row].losses[t], 1e-5) << row << " " << t;
      }
    }
    EXPECT_TRUE(answers == cached_->write({}));
  }

 private:
  Config config_;
  std::vector<Receiver> receivers_;
  AnswerSizes sizes_;
  State state_;
  std::unique_ptr<AnswerRows> whole_, cached_;
  std::vector<float> wires_;
};

constexpr size_t kAll[] = {0, 1, 2};

// Keys before the row, layers that attend and terms beside matrices, all at once.
TEST(AnswerRows, BehindWiresAreThoseOfWholePasses) {
  for (const auto& [kind, rest] :
       {std::pair{"bpe", ""}, {"bpe", kConditioned}, {"bytes", kConditioned}}) {
    SCOPED_TRACE(std::string(kind) + rest);
    Both both(kind, rest, 0);
    both.expect_same(both.wires(), kAll);
    EXPECT_GT(both.cached().times().decoded, 0);
  }
}

TEST(AnswerRows, BehindTextsAreThoseOfWholePasses) {
  Both both("bpe", "", 80);
  Answers texts;
  for (const size_t tokens : {40, 70, 9}) {
    texts.emplace_back(tokens);
    std::iota(texts.back().begin(), texts.back().end(), static_cast<int32_t>(7 * tokens % 300));
  }
  const Given given{.prompts = texts};
  both.expect_same(given, kAll);

  // Check 6: alone, and so with other padding and in other pages, a row is what it is among longer ones.
  const Answers answers = {{4, 9, 300}, {5, 6, 2}, {8, 1}};
  both.cached().begin(given, kAll);
  const std::vector<Likelihood> together = both.cached().judge(answers);
  for (const size_t row : kAll) {
    const size_t chosen[] = {row};
    both.cached().begin(given, chosen);
    const Likelihood alone = both.cached().judge({&answers[row], 1})[0];
    for (size_t t = 0; t < answers[row].size(); ++t)
      EXPECT_NEAR(alone.losses[t], together[row].losses[t], 1e-6);
  }

  // Check 7: teacher forcing is the sum of steps, each behind what stands before it.
  both.cached().begin(given, kAll);
  const double forced = both.cached().judge(answers)[0].nats();
  double stepped = 0;
  Answers longer = texts;
  for (const int32_t token : answers[0]) {
    both.cached().begin({.prompts = longer}, kAll);
    const Answers next = {{token}, {1}, {1}};
    stepped += both.cached().judge(next)[0].nats();
    longer[0].push_back(token);
  }
  EXPECT_NEAR(forced, stepped, 1e-4);

  // Check 8: as vectors the tokens say what they say.
  both.cached().begin(given, kAll);
  const Answers written = both.cached().write({});
  both.cached().begin({.prompts = texts, .as_embeddings = true}, kAll);
  const std::vector<Likelihood> replayed = both.cached().judge(answers);
  for (const size_t row : kAll) EXPECT_TRUE(replayed[row].losses == together[row].losses);
  EXPECT_TRUE(both.cached().write({}) == written);
}

TEST(AnswerRows, WhatTextsBeginWithIsReadOnce) {
  Both both("bpe", "", 60);
  Answers texts;
  for (const size_t tokens : {39, 50, 34}) {
    texts.emplace_back(tokens);
    std::iota(texts.back().begin(), texts.back().begin() + 33, 40);
    std::iota(texts.back().begin() + 33, texts.back().end(), static_cast<int32_t>(3 * tokens));
  }
  both.expect_same({.prompts = texts}, kAll);
  EXPECT_EQ(both.cached().times().shared, 3 * 32);
  const int64_t before = both.cached().times().prefilled;
  both.expect_same({.prompts = texts}, kAll);
  EXPECT_EQ(both.cached().times().prefilled - before, kRows * 32) << "it is read again";
}

TEST(AnswerRows, EndWhereTheyMay) {
  const Config config = config_of("");
  const std::vector<Receiver> receivers =
      recorded_receivers(R"({"receivers": [{"name": "one", "kind": "bytes"}]})", config);
  const int32_t end = receivers[0].ids("\n")[0];
  std::vector<float> logits(259);
  logits[static_cast<size_t>(end)] = 3;
  logits[7] = logits[9] = 2;
  EXPECT_EQ(likeliest_token(logits, receivers[0], {5}, true), end);
  EXPECT_EQ(likeliest_token(logits, receivers[0], {5}, false), 7);

  Likelihood likelihood;
  likelihood.add(logits, 9);
  EXPECT_EQ(likelihood.ranks[0], 1);
  EXPECT_NEAR(likelihood.nats(), std::log(256 + 2 * std::exp(2.0) + std::exp(3.0)) - 2, 1e-5);

  Both both("bytes", "", 0);
  both.cached().begin(both.wires(), kAll);
  for (const std::vector<int32_t>& each : both.cached().write({.least_tokens = kAnswer}))
    EXPECT_EQ(std::ssize(each), kAnswer);
  // Of the likeliest alone a draw is what is likeliest.
  const Answers likeliest = both.cached().write({});
  EXPECT_TRUE(both.cached().write({.first_temperature = 1, .first_top_p = 1e-6}) == likeliest);
  EXPECT_FALSE(both.cached().write({.first_temperature = 50}) == likeliest);
}

}  // namespace
}  // namespace fullbore::latentwire
