#include "fullbore/data/recorded_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const RecordedTokenizer kTokenizer({U'\n', U'a', U'\u00E9'});

TEST(RecordedTokenizer, CharactersFollowTheReservedIds) {
  EXPECT_EQ(kTokenizer.vocabulary_size(), 35);
  const std::vector<int32_t> ids = kTokenizer.encode("a\u00E9\n").take_or_throw();
  EXPECT_THAT(ids, ElementsAre(33, 34, 32));
  EXPECT_EQ(kTokenizer.decode(ids).take_or_throw(), "a\u00E9\n");
}

TEST(RecordedTokenizer, SpecialTextsAreOneTokenEach) {
  const std::string all = "<pad><unk><bos><eos><|system|><|user|><|assistant|><|end|>";
  const std::vector<int32_t> ids = kTokenizer.encode(all).take_or_throw();
  EXPECT_THAT(ids, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(kTokenizer.decode(ids).take_or_throw(), all);
  EXPECT_EQ(kTokenizer.end_of_document(), 3);
  EXPECT_THAT(kTokenizer.encode("a<eos>", SpecialTokens::kAsText).take_or_throw(),
              ElementsAre(33, 1, 1, 1, 1, 1))
      << "in texts to learn from they are characters";
}

TEST(RecordedTokenizer, WhatTheTextLackedIsUnknownAndReservedIdsAreNoText) {
  const std::vector<int32_t> ids = kTokenizer
                                       .encode(
                                           "ab\U0001F600"
                                           "a")
                                       .take_or_throw();
  EXPECT_THAT(ids, ElementsAre(33, 1, 1, 33));
  EXPECT_EQ(kTokenizer.decode(std::vector<int32_t>{33, 8, 31}).take_or_throw(), "a");
  EXPECT_FALSE(kTokenizer.decode(std::vector<int32_t>{35}).ok());
}

TEST(RecordedTokenizer, IsTheSameFromItsJson) {
  const std::shared_ptr<const Tokenizer> again =
      parse_tokenizer(kTokenizer.to_json(), "t.json").take_or_throw();
  EXPECT_EQ(again->to_json(), kTokenizer.to_json());
  EXPECT_EQ(again->hash(), kTokenizer.hash());
  EXPECT_EQ(again->vocabulary_size(), 35);
  EXPECT_NE(again->hash(), CharacterTokenizer({U'\n', U'a', U'\u00E9'}).hash());
}

TEST(RecordedTokenizer, RefusesWhatIsNoTokenizer) {
  const std::string json = kTokenizer.to_json();
  for (size_t size = 0; size < json.size(); ++size)
    EXPECT_FALSE(parse_tokenizer(json.substr(0, size), "cut").ok()) << size;
  const auto result = RecordedTokenizer::from_json(
      R"({"format": "fullbore.recorded_tokenizer", "version": 1, "characters": "ba"})", "t.json");
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error(), HasSubstr("t.json: not a tokenizer: "));
  EXPECT_THAT(result.error(), HasSubstr("not in code-point order"));
}

}  // namespace
}  // namespace fullbore
