#include "fullbore/text/sample_quality.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace fullbore {
namespace {

using Tokens = std::vector<int32_t>;

TEST(SampleQuality, OfATextThatRepeatsItself) {
  Tokens tokens;
  for (int i = 0; i < 40; ++i) tokens.push_back(i % 5);
  const SampleQuality quality = sample_quality(tokens, "");
  EXPECT_DOUBLE_EQ(quality.distinct_four_grams, 5.0 / 37);
  EXPECT_EQ(quality.longest_repetition, 35) << "both may overlap";
}

TEST(SampleQuality, OfATextWithoutRepetition) {
  const SampleQuality quality = sample_quality(Tokens{1, 2, 3, 4, 5, 6}, "");
  EXPECT_EQ(quality.distinct_four_grams, 1);
  EXPECT_EQ(quality.longest_repetition, 0);
  EXPECT_EQ(sample_quality({}, "").longest_repetition, 0);
}

TEST(SampleQuality, CountsWhatIsNoCharacter) {
  EXPECT_EQ(sample_quality({}, "caf\xc3\xa9\n\tfine").invalid_characters, 0);
  EXPECT_EQ(sample_quality({},
                           "a\xef\xbf\xbd\xef\xbf\xbd"
                           "b\x01\x7f")
                .invalid_characters,
            4);
}

/// By looking at all pairs of places.
int64_t slow_repetition(const Tokens& a) {
  int64_t longest = 0;
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = i + 1; j < a.size(); ++j) {
      size_t length = 0;
      while (j + length < a.size() && a[i + length] == a[j + length]) ++length;
      longest = std::max(longest, static_cast<int64_t>(length));
    }
  return longest;
}
int64_t slow_copy(const Tokens& a, const Tokens& b) {
  int64_t longest = 0;
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < b.size(); ++j) {
      size_t length = 0;
      while (i + length < a.size() && j + length < b.size() && a[i + length] == b[j + length])
        ++length;
      longest = std::max(longest, static_cast<int64_t>(length));
    }
  return longest;
}

TEST(SampleQuality, AgreesWithLookingEverywhere) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    const auto draw = [&](size_t length) {
      Tokens tokens(length);
      for (int32_t& token : tokens) token = static_cast<int32_t>(random() % 3);
      return tokens;
    };
    const Tokens a = draw(random() % 40);
    const Tokens b = draw(random() % 60);
    EXPECT_EQ(sample_quality(a, "").longest_repetition, slow_repetition(a)) << trial;
    EXPECT_EQ(longest_copy(a, b), slow_copy(a, b)) << trial;
  }
}

}  // namespace
}  // namespace fullbore
