#include "fullbore/data/word_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(WordTokenizer, WordsAreWhatWhiteSpaceParts) {
  const WordTokenizer words = WordTokenizer::create({"a", "cat", "sits"}).take_or_throw();
  EXPECT_EQ(words.vocabulary_size(), 7);
  const std::vector<int32_t> ids = words.encode(" a\tcat\n sits Cat ").take_or_throw();
  EXPECT_THAT(ids, ElementsAre(4, 5, 6, WordTokenizer::kUnknown));
  EXPECT_EQ(words.decode(ids).take_or_throw(), " a cat sits <unk>");
  EXPECT_THAT(words.encode(" \n").take_or_throw(), IsEmpty());
}

TEST(WordTokenizer, SpecialTokensComeFirst) {
  const WordTokenizer words = WordTokenizer::create({"a"}).take_or_throw();
  EXPECT_THAT(words.encode("<bos> a <eos><pad>").take_or_throw(), ElementsAre(2, 4, 3, 0));
  EXPECT_THAT(words.encode("<bos> a", SpecialTokens::kAsText).take_or_throw(), ElementsAre(1, 4));
}

TEST(WordTokenizer, RefusesListsThatAreNone) {
  EXPECT_EQ(WordTokenizer::create({}).error(), "there are no words");
  EXPECT_EQ(WordTokenizer::create({"a", "b", "a"}).error(), "word 2, 'a', is there already");
  EXPECT_EQ(WordTokenizer::create({"a", ""}).error(), "word 1 is empty");
  EXPECT_EQ(WordTokenizer::create({"a b"}).error(), "word 0 has white space in it");
  EXPECT_EQ(WordTokenizer::create({"<eos>"}).error(), "word 0, '<eos>', is there already");
  EXPECT_EQ(WordTokenizer::create({"\xff"}).error(), "word 0 is no UTF-8");
}

TEST(WordTokenizer, WritesItself) {
  const WordTokenizer words = WordTokenizer::create({"na\xc3\xafve", "\"cat\""}).take_or_throw();
  const auto again = parse_tokenizer(words.to_json(), "x").take_or_throw();
  EXPECT_EQ(again->to_json(), words.to_json());
  EXPECT_EQ(again->hash(), words.hash());
  EXPECT_THAT(parse_tokenizer(R"({"format":"fullbore.word_tokenizer","version":1})", "x").error(),
              HasSubstr("x: not a tokenizer: there are no words"));
  EXPECT_THAT(
      parse_tokenizer(R"({"format":"fullbore.word_tokenizer","words":["a"],"version":2})", "x")
          .error(),
      HasSubstr("version 2 is not known; 1 is"));
}

}  // namespace
}  // namespace fullbore
