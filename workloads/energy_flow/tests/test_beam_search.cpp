#include "workloads/energy_flow/beam_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "fullbore/base/philox.h"

namespace fullbore::energy_flow {
namespace {

constexpr int32_t kBegin = 0, kEnd = 1;
constexpr int64_t kVocabulary = 5, kLength = 4;

// A made-up model: log-probabilities of what follows a text.
std::vector<double> following(uint64_t key, const std::vector<int32_t>& text) {
  uint64_t state = key;
  for (const int32_t token : text) state = state * 31 + static_cast<uint64_t>(token) + 1;
  PhiloxStream draws(state);
  std::vector<double> logs;
  double sum = 0;
  for (int64_t i = 0; i < kVocabulary; ++i) logs.push_back(2 * draws.normal());
  for (const double x : logs) sum += std::exp(x);
  for (double& x : logs) x = static_cast<double>(static_cast<float>(x - std::log(sum)));
  return logs;
}

std::vector<WrittenText> searched(int64_t texts, int64_t beams, std::vector<int32_t> never = {}) {
  BeamSearch search({.texts = texts,
                     .beams = beams,
                     .length = kLength,
                     .vocabulary = kVocabulary,
                     .begin = kBegin,
                     .end = kEnd,
                     .never = std::move(never)});
  std::vector<std::vector<int32_t>> rows(static_cast<size_t>(search.rows()));
  for (bool first = true; !search.is_done(); first = false) {
    std::vector<std::vector<int32_t>> next;
    std::vector<float> logs;
    for (size_t row = 0; row < rows.size(); ++row) {
      std::vector<int32_t> text = rows[static_cast<size_t>(search.parents()[row])];
      if (first)
        EXPECT_EQ(search.tokens()[row], kBegin);
      else
        text.push_back(search.tokens()[row]);
      const auto key = static_cast<uint64_t>(row) / static_cast<uint64_t>(beams);
      for (const double x : following(key, text)) logs.push_back(static_cast<float>(x));
      next.push_back(std::move(text));
    }
    rows = next;
    search.take(logs);
  }
  std::vector<WrittenText> best;
  for (int64_t text = 0; text < texts; ++text) best.push_back(search.best(text));
  return best;
}

// The best of all texts that end, or that are as long as texts may be.
WrittenText best_of_all(uint64_t key, const std::vector<int32_t>& never) {
  WrittenText best{{}, -INFINITY}, longest{{}, -INFINITY};
  const std::function<void(const WrittenText&)> visit = [&](const WrittenText& text) {
    if (std::ssize(text.tokens) == kLength) {
      if (text.score > longest.score) longest = text;
      return;
    }
    const std::vector<double> logs = following(key, text.tokens);
    for (int32_t token = 0; token < kVocabulary; ++token) {
      if (std::ranges::find(never, token) != never.end()) continue;
      WrittenText next{text.tokens, text.score + logs[static_cast<size_t>(token)]};
      if (token == kEnd) {
        if (next.score > best.score) best = next;
        continue;
      }
      next.tokens.push_back(token);
      visit(next);
    }
  };
  visit({});
  return std::isinf(best.score) ? longest : best;
}

TEST(BeamSearch, WithAllBeamsIsExact) {
  // So many beams that none is ever left out.
  for (const std::vector<int32_t>& never : {std::vector<int32_t>{}, std::vector<int32_t>{0, 3}}) {
    const std::vector<WrittenText> found = searched(20, 300, never);
    for (uint64_t key = 0; key < found.size(); ++key) {
      const WrittenText expected = best_of_all(key, never);
      EXPECT_EQ(found[key].tokens, expected.tokens) << key;
      EXPECT_NEAR(found[key].score, expected.score, 1e-9);
    }
  }
}

TEST(BeamSearch, OneBeamTakesTheLikeliestTokenEachTime) {
  const std::vector<WrittenText> found = searched(40, 1);
  int ended = 0;
  for (uint64_t key = 0; key < found.size(); ++key) {
    std::vector<int32_t> text;
    while (std::ssize(text) < kLength) {
      const std::vector<double> logs = following(key, text);
      const auto token = static_cast<int32_t>(std::ranges::max_element(logs) - logs.begin());
      if (token == kEnd) break;
      text.push_back(token);
    }
    ended += std::ssize(text) < kLength;
    EXPECT_EQ(found[key].tokens, text) << key;
  }
  EXPECT_GT(ended, 5);
  EXPECT_LT(ended, 40);
}

TEST(BeamSearch, MoreBeamsFindTheBestMoreOften) {
  std::vector<int> found;
  for (const int64_t beams : {1, 2, 4}) {
    const std::vector<WrittenText> texts = searched(100, beams);
    int best = 0;
    for (uint64_t key = 0; key < texts.size(); ++key)
      best += texts[key].tokens == best_of_all(key, {}).tokens;
    found.push_back(best);
  }
  EXPECT_GT(found[1], found[0]);
  EXPECT_GT(found[2], found[1]);
  EXPECT_LT(found[2], 100);
}

TEST(BeamSearch, EqualScoresGoByTheOrderOfTokens) {
  BeamSearch search({.texts = 1, .beams = 2, .length = 1, .vocabulary = 4, .begin = 0, .end = 3});
  const std::vector<float> same(8, -1.0F);
  search.take(same);
  EXPECT_TRUE(search.is_done());
  EXPECT_EQ(search.best(0).tokens, (std::vector<int32_t>{0}));
  EXPECT_EQ(search.tokens()[1], 1);
}

}  // namespace
}  // namespace fullbore::energy_flow
