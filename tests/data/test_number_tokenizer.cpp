#include "fullbore/data/number_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(NumberTokenizer, NumbersAreTheirTokens) {
  const NumberTokenizer tokenizer(32);
  const std::vector<int32_t> ids = tokenizer.encode(" 12\n21 0 007\t").take_or_throw();
  EXPECT_THAT(ids, ElementsAre(12, 21, 0, 7));
  EXPECT_EQ(tokenizer.decode(ids).take_or_throw(), "12 21 0 7 ");
  EXPECT_THAT(tokenizer.encode("\n").take_or_throw(), IsEmpty());
}

TEST(NumberTokenizer, TakesNothingElse) {
  const NumberTokenizer tokenizer(32);
  for (const char* text : {"1 32", "1 -1", "1 2a", "1 a", "1 99999999999999999999"}) {
    std::vector<int32_t> ids;
    EXPECT_EQ(tokenizer.append_tokens(text, ids), 2U) << text;
    EXPECT_FALSE(tokenizer.encode(text).ok()) << text;
  }
}

TEST(NumberTokenizer, IsCutBehindWhiteSpaceOnly) {
  const NumberTokenizer tokenizer(32);
  EXPECT_EQ(tokenizer.last_cut("12 3"), 3U);
  EXPECT_EQ(tokenizer.last_cut("12"), 0U);
}

TEST(NumberTokenizer, WritesItself) {
  const auto again = parse_tokenizer(NumberTokenizer(8192).to_json(), "x").take_or_throw();
  EXPECT_EQ(again->vocabulary_size(), 8192);
  EXPECT_EQ(again->kind(), "numbers");
  EXPECT_THAT(parse_tokenizer(R"({"format":"fullbore.number_tokenizer","version":1})", "x").error(),
              HasSubstr("\"numbers\" is 0; 1 to"));
  EXPECT_THAT(
      parse_tokenizer(R"({"format":"fullbore.number_tokenizer","numbers":3,"version":2})", "x")
          .error(),
      HasSubstr("version 2"));
}

}  // namespace
}  // namespace fullbore
