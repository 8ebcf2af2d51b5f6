#include "fullbore/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fullbore/base/excerpt.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

std::string repeated(std::string_view piece, size_t times) {
  std::string text;
  for (size_t i = 0; i < times; ++i) text += piece;
  return text;
}

/// Takes everything, and tells how far it came.
class Counter : public nlohmann::json_sax<nlohmann::json> {
 public:
  int events = 0;
  bool null() override { return ++events > 0; }
  bool boolean(bool) override { return ++events > 0; }
  bool number_integer(int64_t) override { return ++events > 0; }
  bool number_unsigned(uint64_t) override { return ++events > 0; }
  bool number_float(double, const std::string&) override { return ++events > 0; }
  bool string(std::string&) override { return ++events > 0; }
  bool binary(binary_t&) override { return ++events > 0; }
  bool start_object(size_t) override { return ++events > 0; }
  bool key(std::string&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t) override { return ++events > 0; }
  bool end_array() override { return true; }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }
};

TEST(Json, IsReadWithItsKeysInEitherOrder) {
  const std::string text = R"({"b": [1, -2, 3.5], "a": {"c": "x\"]}"}, "d": null})";
  EXPECT_EQ(parse_json(text).value()["a"]["c"], "x\"]}");
  EXPECT_EQ(parse_ordered_json(text).value().begin().key(), "b");
}

TEST(Json, NestingStopsAtTheLimitWhateverIsNested) {
  for (const auto& [open, close] : {std::pair{"[", "]"}, std::pair{"{\"a\":", "}"}}) {
    const auto nested = [&](size_t depth) {
      return repeated(open, depth) + (*open == '[' ? "" : "0") + repeated(close, depth);
    };
    EXPECT_TRUE(parse_json(nested(64)).ok());
    for (const size_t depth : {size_t{65}, size_t{80'000}}) {
      EXPECT_THAT(parse_json(nested(depth)).error(), HasSubstr("nested deeper than 64")) << depth;
      EXPECT_THAT(parse_ordered_json(nested(depth)).error(), HasSubstr("nested deeper than 64"));
      Counter counter;
      EXPECT_THAT(read_json_events(nested(depth), counter).error(), HasSubstr("deeper than 64"));
      EXPECT_EQ(counter.events, 0) << "nothing is read of what is refused";
    }
  }
  EXPECT_TRUE(parse_json("\"" + repeated("[", 100) + "\"").ok())
      << "brackets of a text nest nothing";
  EXPECT_TRUE(parse_json("[" + repeated("[[]],", 1000) + "[]]").ok()) << "side by side is not deep";
  EXPECT_THAT(parse_json(repeated("[", 80'000)).error(), HasSubstr("byte 64: lists and objects"));
}

TEST(Json, LengthAndValuesAreLimited) {
  JsonLimits limits;
  limits.bytes = 10;
  EXPECT_TRUE(parse_json("[1, 2, 3] ", limits).ok());
  EXPECT_EQ(parse_json("[1, 2, 3]  ", limits).error(), "11 bytes; at most 10 are read");
  limits = {};
  limits.values = 4;
  EXPECT_TRUE(parse_json("[1, 2, 3]", limits).ok());
  EXPECT_EQ(parse_json("[1,\n 2, 3, 4]", limits).error(), "line 2, byte 9: more than 4 values");
  EXPECT_THAT(parse_json("[" + repeated("[],", 1'000'000) + "0]").error(),
              HasSubstr("more than 1000000 values"));
}

TEST(Json, FailuresTellThePlaceInFewPlainWords) {
  EXPECT_EQ(parse_json("{\"a\": 1,\n \"b\": x}").error(),
            "line 2, byte 15: malformed JSON after '{\"a\": 1,\\x0a \"b\": ' at 'x}'");
  EXPECT_EQ(parse_json("[1, 2").error(), "line 1, byte 5: the JSON text ends too early");
  EXPECT_THAT(parse_json("").error(), HasSubstr("ends too early"));
  EXPECT_THAT(parse_json("1e999").error(), HasSubstr("too large"));
  EXPECT_THAT(parse_json(std::string("{}\0x", 4)).error(), HasSubstr("byte 2: a zero byte"));
  EXPECT_THAT(parse_json("\"\xff\xfe\"").error(), HasSubstr("malformed JSON"));
  const std::string long_word(1 << 20, 'x');
  for (const std::string& text : {long_word, "\"" + long_word, "[\"\x1b[2J" + long_word + "\"]"}) {
    const std::string error = parse_json(text).error();
    EXPECT_LT(error.size(), 300U);
    EXPECT_EQ(error.find('\x1b'), std::string::npos);
  }
}

TEST(Json, ValuesInMessagesAreShort) {
  EXPECT_EQ(json_excerpt("two"), "\"two\"");
  EXPECT_EQ(json_excerpt({1, 2, 3}), "[1,2,3]");
  EXPECT_EQ(json_excerpt({1, {2, 3}}), "a list of 2");
  EXPECT_EQ(json_excerpt({{"a", {{"b", 1}}}}), "an object of 1");
  EXPECT_EQ(json_excerpt(std::string(1 << 20, 'x')).size(), 123U);
}

TEST(Excerpt, IsCutAtACharacterAndHasNoControls) {
  EXPECT_EQ(excerpt("plain text"), "plain text");
  EXPECT_EQ(excerpt("aä\x1b[1m\x7f\x80 \xc2\x9b.", 60), "aä\\x1b[1m\\x7f\\x80 \\xc2\\x9b.");
  EXPECT_EQ(excerpt("ääää", 5), "ää...");
  EXPECT_EQ(excerpt("abc", 3), "abc");
  EXPECT_EQ(excerpt("ab\xc3", 9), "ab\\xc3");
}

}  // namespace
}  // namespace fullbore
