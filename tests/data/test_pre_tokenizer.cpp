#include "fullbore/data/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fullbore/base/philox.h"
#include "fullbore/data/unicode_classes.h"
#include "fullbore/data/utf8.h"

namespace fullbore {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> words(std::string_view text, WordSplit split = WordSplit::kGpt2) {
  std::vector<std::string> result;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    const char* const next = word_end(at, end, split);
    result.emplace_back(at, next);
    at = next;
  }
  return result;
}

TEST(UnicodeClasses, AreThoseOfVersion16) {
  const UnicodeClasses& classes = UnicodeClasses::instance();
  size_t counts[4] = {};
  for (char32_t c = 0; c <= 0x10FFFF; ++c) ++counts[static_cast<size_t>(classes.of(c))];
  // Counted by Python's unicodedata2 16.0.0: categories L* and N*.
  EXPECT_EQ(counts[static_cast<size_t>(CharacterClass::kLetter)], 141'028U);
  EXPECT_EQ(counts[static_cast<size_t>(CharacterClass::kNumber)], 1911U);
  EXPECT_EQ(counts[static_cast<size_t>(CharacterClass::kSpace)], 25U);
  for (const char32_t letter : {U'a', U'Z', U'\u00AA', U'\u00DF', U'\u4E2D', U'\U00031350'})
    EXPECT_EQ(classes.of(letter), CharacterClass::kLetter);
  for (const char32_t number : {U'0', U'\u00B2', U'\u0967', U'\u2167', U'\u3007', U'\U0001D7D8'})
    EXPECT_EQ(classes.of(number), CharacterClass::kNumber);
  // A zero-width space, a byte-order mark and the separators 1C-1F are no white space.
  for (const char32_t other : {U'_', U'\u200B', U'\uFEFF', U'\u001C', U'\u0301', U'\U0010FFFF'})
    EXPECT_EQ(classes.of(other), CharacterClass::kOther);
}

TEST(PreTokenizer, SplitsAsGpt2) {
  EXPECT_THAT(words("Hello, world!"), ElementsAre("Hello", ",", " world", "!"));
  EXPECT_THAT(words("it's we'll I'M"), ElementsAre("it", "'s", " we", "'ll", " I", "'", "M"));
  EXPECT_THAT(words("x'ty ''s '"), ElementsAre("x", "'t", "y", " ''", "s", " '"));
  EXPECT_THAT(words("''s"), ElementsAre("''", "s"));
  EXPECT_THAT(words("a1b 22,3"), ElementsAre("a", "1", "b", " 22", ",", "3"));
  EXPECT_THAT(words("a  b"), ElementsAre("a", " ", " b"));
  EXPECT_THAT(words("a \n b\n"), ElementsAre("a", " \n", " b", "\n"));
  EXPECT_THAT(words("\n\nx"), ElementsAre("\n", "\n", "x"));
  EXPECT_THAT(words("x   "), ElementsAre("x", "   "));
  EXPECT_THAT(words(" "), ElementsAre(" "));
  EXPECT_THAT(words("a\u00A0b"), ElementsAre("a", "\u00A0", "b"));
  EXPECT_THAT(words("a\u00A0 b\u3000"), ElementsAre("a", "\u00A0", " b", "\u3000"));
  EXPECT_THAT(words(" \u4E2D\u6587\uFF0C"), ElementsAre(" \u4E2D\u6587", "\uFF0C"));
  EXPECT_THAT(words("e\u0301x"), ElementsAre("e", "\u0301", "x"));
}

// What the Python package tokenizers says of these: ids of a small vocabulary do not tell where a word ends.
TEST(PreTokenizer, SplitsAsLlama3AndQwen2) {
  EXPECT_THAT(words("it'S I'LL 'VE", WordSplit::kLlama3),
              ElementsAre("it", "'S", " I", "'LL", " '", "VE"));
  EXPECT_THAT(words("x'\u017Fy", WordSplit::kLlama3), ElementsAre("x", "'\u017F", "y"));
  EXPECT_THAT(words("1234567 12", WordSplit::kLlama3), ElementsAre("123", "456", "7", " ", "12"));
  EXPECT_THAT(words("a  b\n\n c \r\n d", WordSplit::kLlama3),
              ElementsAre("a", " ", " b", "\n\n", " c", " \r\n", " d"));
  EXPECT_THAT(words("!!\r\n\nx", WordSplit::kLlama3), ElementsAre("!!\r\n\n", "x"));
  EXPECT_THAT(words("-word \u3000w", WordSplit::kLlama3), ElementsAre("-word", " ", "\u3000w"));
  EXPECT_THAT(words("e\u0301x", WordSplit::kLlama3), ElementsAre("e", "\u0301x"));
  EXPECT_THAT(words("(\u00A0x)", WordSplit::kLlama3), ElementsAre("(", "\u00A0x", ")"));
  EXPECT_THAT(words("it'S I'LL 'VE", WordSplit::kQwen2),
              ElementsAre("it", "'S", " I", "'LL", " '", "VE"));
  EXPECT_THAT(words("x'\u017Fy", WordSplit::kQwen2), ElementsAre("x", "'\u017F", "y"));
  EXPECT_THAT(words("1234567 12", WordSplit::kQwen2),
              ElementsAre("1", "2", "3", "4", "5", "6", "7", " ", "1", "2"));
  EXPECT_THAT(words("a  b\n\n c \r\n d", WordSplit::kQwen2),
              ElementsAre("a", " ", " b", "\n\n", " c", " \r\n", " d"));
  EXPECT_THAT(words("!!\r\n\nx", WordSplit::kQwen2), ElementsAre("!!\r\n\n", "x"));
  EXPECT_THAT(words("-word \u3000w", WordSplit::kQwen2), ElementsAre("-word", " ", "\u3000w"));
  EXPECT_THAT(words("e\u0301x", WordSplit::kQwen2), ElementsAre("e", "\u0301x"));
  EXPECT_THAT(words("(\u00A0x)", WordSplit::kQwen2), ElementsAre("(", "\u00A0x", ")"));
}

TEST(PreTokenizer, SplitsAsSmolLm) {
  EXPECT_THAT(words("it's 1234", WordSplit::kSmolLm),
              ElementsAre("it", "'s", " ", "1", "2", "3", "4"));
  EXPECT_THAT(words("a  12  b", WordSplit::kSmolLm), ElementsAre("a", "  ", "1", "2", " ", " b"));
  EXPECT_THAT(words("\u00B2\U00011DE3\U00016FF5!", WordSplit::kSmolLm),
              ElementsAre("\u00B2", "\U00011DE3", "\U00016FF5", "!"));
  EXPECT_THAT(words("'s1's", WordSplit::kSmolLm), ElementsAre("'s", "1", "'s"));
  EXPECT_THAT(words(" \n1", WordSplit::kSmolLm), ElementsAre(" \n", "1"));
}

TEST(PreTokenizer, ACutAtAWordBoundaryChangesNoWord) {
  PhiloxStream random(5);
  const char32_t pool[] = {U'a', U'1', U'.', U'\'', U's', U' ', U' ', U'\n', U'\u00A0', U'\u4E2D'};
  int cuts = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    std::string more;
    for (uint64_t n = random.below(12); n > 0; --n) append_utf8(text, pool[random.below(10)]);
    for (uint64_t n = random.below(5); n > 0; --n) append_utf8(more, pool[random.below(10)]);
    const size_t cut = last_word_boundary(text);
    cuts += cut > 0 ? 1 : 0;
    std::vector<std::string> halves = words(text.substr(0, cut));
    for (std::string& word : words(text.substr(cut) + more)) halves.push_back(std::move(word));
    ASSERT_EQ(halves, words(text + more)) << text << "|" << more;
  }
  EXPECT_GT(cuts, 10'000);
  EXPECT_EQ(last_word_boundary("abc"), 0U);
  EXPECT_EQ(last_word_boundary("   "), 0U);
  EXPECT_EQ(last_word_boundary("ab cd e"), 5U);
  EXPECT_EQ(last_word_boundary("\u4E2D\u3000"), 3U);
}

}  // namespace
}  // namespace fullbore
