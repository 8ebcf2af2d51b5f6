#include "fullbore/data/character_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fullbore/base/philox.h"
#include "fullbore/data/text_file.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const CharacterTokenizer kTokenizer({U'\0', U'\n', U'"', U'a', U'b', U'\u00E9', U'\U0001F600'});

TEST(CharacterTokenizer, IdsAreInCodePointOrderAndDecodeToTheText) {
  const std::string text("ba\u00E9\n\U0001F600\"\0a", 12);
  const std::vector<int32_t> ids = kTokenizer.encode(text).take_or_throw();
  EXPECT_THAT(ids, ElementsAre(4, 3, 5, 1, 6, 2, 0, 3));
  EXPECT_EQ(kTokenizer.decode(ids).take_or_throw(), text);
  EXPECT_TRUE(kTokenizer.encode("").take_or_throw().empty());
}

TEST(CharacterTokenizer, UnknownCharactersAndIdsAreNamed) {
  EXPECT_EQ(kTokenizer.encode("ab\u00E9\u00E8x").error(),
            "character U+00E8 '\u00E8' at offset 3 is not among the 7 characters of the training "
            "text");
  EXPECT_THAT(kTokenizer.encode("a\x07").error(), HasSubstr("character U+0007 at offset 1"));
  EXPECT_THAT(kTokenizer.encode("a\U0010FFFF").error(), HasSubstr("character U+10FFFF"));
  EXPECT_EQ(kTokenizer.encode("a\xC0\xAF").error(),
            "not UTF-8 text: overlong form of U+002F (byte 1)");
  const std::vector<int32_t> ids = {1, 7, -1};
  EXPECT_EQ(kTokenizer.decode(ids).error(),
            "token 7 at position 1 is outside the vocabulary [0, 7)");
  EXPECT_FALSE(kTokenizer.decode(std::vector<int32_t>{-1}).ok());
}

TEST(CharacterTokenizer, IsTheSameAfterSavingAndLoading) {
  const testing::ScratchFolder folder;
  const std::string path = folder / "tokenizer.json";
  ASSERT_TRUE(save_tokenizer(kTokenizer, path).ok());
  const std::shared_ptr<const Tokenizer> loaded = load_tokenizer(path).take_or_throw();
  EXPECT_EQ(loaded->to_json(), kTokenizer.to_json());
  EXPECT_EQ(loaded->hash(), kTokenizer.hash());
  EXPECT_NE(loaded->hash(), CharacterTokenizer({U'a', U'b'}).hash());
}

TEST(CharacterTokenizer, HoldsAllOfUnicode) {
  std::vector<char32_t> all;
  for (char32_t c = 0; c <= 0x10FFFF; ++c)
    if (c < 0xD800 || c > 0xDFFF) all.push_back(c);
  const CharacterTokenizer tokenizer(all);
  const Result<CharacterTokenizer> again = CharacterTokenizer::from_json(tokenizer.to_json(), "x");
  ASSERT_TRUE(again.ok()) << again.error();
  EXPECT_EQ(again.value(), tokenizer);
}

TEST(CharacterTokenizer, RefusesWhatIsNoTokenizer) {
  const struct {
    const char* json;
    const char* reason;
  } cases[] = {
      {"", "it is no JSON object"},
      {"[1]", "it is no JSON object"},
      {"{\"format\":", "it is no JSON object"},
      {"{}", "\"format\" is not \"fullbore.character_tokenizer\""},
      {R"({"format": 3})", "\"format\" is not"},
      {R"({"format": "fullbore.character_tokenizer"})", "\"version\" is missing"},
      {R"({"format": "fullbore.character_tokenizer", "version": "1"})", "\"version\" is missing"},
      {R"({"format": "fullbore.character_tokenizer", "version": 2, "characters": "ab"})",
       "version 2 is not known; 1 is"},
      {R"({"format": "fullbore.character_tokenizer", "version": 1})", "\"characters\" is missing"},
      {R"({"format": "fullbore.character_tokenizer", "version": 1, "characters": ""})",
       "\"characters\" is missing"},
      {R"({"format": "fullbore.character_tokenizer", "version": 1, "characters": ["a"]})",
       "\"characters\" is missing"},
      {R"({"format": "fullbore.character_tokenizer", "version": 1, "characters": "ba"})",
       "not in code-point order"},
      {R"({"format": "fullbore.character_tokenizer", "version": 1, "characters": "aa"})",
       "not in code-point order"},
      {"{\"format\": \"fullbore.character_tokenizer\", \"version\": 1, \"characters\": "
       "\"\xC0\xAF\"}",
       "it is no JSON object"},
      {R"({"format": "fullbore.character_tokenizer", "version": 1, "characters": "\ud800"})",
       "it is no JSON object"},
  };
  for (const auto& [json, reason] : cases) {
    const Result<CharacterTokenizer> result = CharacterTokenizer::from_json(json, "t.json");
    ASSERT_FALSE(result.ok()) << json;
    EXPECT_THAT(result.error(), HasSubstr("t.json: not a tokenizer: ")) << json;
    EXPECT_THAT(result.error(), HasSubstr(reason)) << json;
  }
  const std::string deep = R"({"format": )" + std::string(200'000, '[');
  EXPECT_FALSE(CharacterTokenizer::from_json(deep, "deep").ok());
  EXPECT_FALSE(CharacterTokenizer::from_json(deep + std::string(200'000, ']') + "}", "deep").ok());
}

TEST(CharacterTokenizer, TruncationAndNoiseAreRefusedOrHarmless) {
  const std::string json = kTokenizer.to_json();
  for (size_t size = 0; size < json.size(); ++size)
    EXPECT_FALSE(CharacterTokenizer::from_json(json.substr(0, size), "cut").ok()) << size;
  PhiloxStream random(3);
  for (int i = 0; i < 5000; ++i) {
    std::string noisy = json;
    for (uint64_t flips = 1 + random.below(4); flips > 0; --flips)
      noisy[random.below(noisy.size())] ^= static_cast<char>(1U << random.below(8));
    const Result<CharacterTokenizer> result = CharacterTokenizer::from_json(noisy, "noisy");
    if (!result.ok()) continue;  // still a tokenizer, of other characters: then it must work
    const std::vector<int32_t> first = {0};
    const std::string text = result.value().decode(first).take_or_throw();
    EXPECT_EQ(result.value().encode(text).take_or_throw(), first);
  }
}

}  // namespace
}  // namespace fullbore
