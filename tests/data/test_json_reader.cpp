#include "fullbore/data/json_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fullbore/base/philox.h"
#include "fullbore/data/json_lines_reader.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

TEST(JsonReader, ReadsWhatItIsAskedFor) {
  JsonReader reader(
      R"( {"a": "x\n\u00e9\ud83d\ude00\/", "skip": [1, {"b": [[]]}, -0.5e+3, null], "n": -12, "t": true} )");
  std::string key;
  std::string text;
  int64_t number = 0;
  bool truth = false;
  std::string_view raw;
  ASSERT_TRUE(reader.begin_object());
  ASSERT_TRUE(reader.next_key(key) && key == "a" && reader.read_string(text));
  EXPECT_EQ(text, "x\n\u00E9\U0001F600/");
  ASSERT_TRUE(reader.next_key(key) && key == "skip" && reader.skip(raw));
  EXPECT_EQ(raw, R"([1, {"b": [[]]}, -0.5e+3, null])");
  ASSERT_TRUE(reader.next_key(key) && key == "n" && reader.read_integer(number));
  EXPECT_EQ(number, -12);
  ASSERT_TRUE(reader.next_key(key) && key == "t" && reader.read_boolean(truth));
  EXPECT_TRUE(truth);
  EXPECT_FALSE(reader.next_key(key));
  EXPECT_TRUE(reader.finish()) << reader.error();
}

TEST(JsonReader, NamesTheByteAndWhatWasExpected) {
  const struct {
    const char* json;
    const char* error;
  } cases[] = {
      {"", "byte 0: a value was expected"},
      {"  ", "byte 2: a value was expected"},
      {"{", "byte 1: a text was expected"},
      {"{\"a\" 1}", "byte 5: ':' was expected"},
      {"{\"a\": 1 \"b\": 2}", "byte 8: ',' or '}' was expected"},
      {"{\"a\": 1,}", "byte 8: a text was expected"},
      {"[1 2]", "byte 3: ',' or ']' was expected"},
      {"[1,]", "byte 3: a value was expected"},
      {"[1", "byte 2: ',' or ']' was expected"},
      {"1 2", "byte 2: nothing was expected to follow"},
      {"tru", "byte 0: a value was expected"},
      {"nul", "byte 0: a value was expected"},
      {"01", "malformed number"},
      {"-", "malformed number"},
      {"1.", "malformed number"},
      {"1e", "malformed number"},
      {"\"a", "byte 2: the text has no end"},
      {"\"\n\"", "byte 1: a control character"},
      {"\"\\x\"", "unknown escape"},
      {"\"\\u12g4\"", "four hexadecimal digits"},
      {"\"\\ud800\"", "half of a surrogate pair"},
      {"\"\\ud800\\u0041\"", "half of a surrogate pair"},
      {"\"\\udc00\"", "half of a surrogate pair"},
      {"\"ab\xC0\xAF\"", "byte 3: not UTF-8: overlong form of U+002F"},
  };
  for (const auto& [json, error] : cases) {
    JsonReader reader(json);
    EXPECT_FALSE(reader.skip() && reader.finish()) << json;
    EXPECT_THAT(reader.error(), HasSubstr(error)) << json;
    EXPECT_EQ(reader.peek(), JsonKind::kNothing);
  }
  int64_t number = 0;
  for (const char* json : {"1.0", "1e3", "9223372036854775808", "\"1\""})
    EXPECT_FALSE(JsonReader(json).read_integer(number)) << json;
  JsonReader unfinished("[1]");
  unfinished.begin_array();
  EXPECT_FALSE(unfinished.finish());
}

TEST(JsonReader, DepthIsBounded) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  const std::string good = nested(512);
  const std::string deep = nested(513);
  JsonReader reader(good);
  EXPECT_TRUE(reader.skip() && reader.finish()) << reader.error();
  JsonReader deeper(deep);
  EXPECT_FALSE(deeper.skip());
  EXPECT_THAT(deeper.error(), HasSubstr("nested deeper than 512"));
}

TEST(JsonReader, AgreesWithAnotherReaderOnWhatIsJson) {
  const std::string seeds[] = {R"({"a":[1,2.5,-3e2],"b":{"c":"\u0041\n"},"d":true})",
                               R"([null,false,"x",{"":[]},[[{}]]])", R"("\ud83d\ude00")"};
  const std::string alphabet = "{}[]\",:0123-+.eE\\untrfals \n\x80\xC3";
  PhiloxStream random(6);
  int valid = 0;
  for (int i = 0; i < 30'000; ++i) {
    std::string json = seeds[random.below(3)];
    for (uint64_t n = 1 + random.below(3); n > 0; --n) {
      const char letter = alphabet[random.below(alphabet.size())];
      const size_t at = random.below(json.size());
      random.below(2) == 0 ? json.insert(at, 1, letter) : json.replace(at, 1, 1, letter);
    }
    JsonReader reader(json);
    const bool accepted = reader.skip() && reader.finish();
    ASSERT_EQ(accepted, nlohmann::json::accept(json)) << json << "\n" << reader.error();
    valid += accepted ? 1 : 0;
  }
  EXPECT_GT(valid, 1000);
}

TEST(JsonLines, EveryFaultIsNamedByFileLineAndField) {
  JsonLinesReader reader("d.jsonl", "text");
  std::string text;
  EXPECT_TRUE(reader.append_document(R"({"id": 1, "text": "a\tb"})", 1, text).ok());
  EXPECT_TRUE(reader.append_document(" \r", 2, text).ok());
  EXPECT_TRUE(reader.append_document(R"({"text": "old", "text": ""})", 3, text).ok());
  EXPECT_EQ(text, "a\tb");
  const struct {
    const char* line;
    const char* error;
  } cases[] = {
      {R"({"text": "a")", "d.jsonl:7: not JSON: byte 12: ',' or '}' was expected"},
      {R"({"text": 3})", "d.jsonl:7: the field 'text' is a number; a text was expected"},
      {R"({"text": null})", "d.jsonl:7: the field 'text' is null; a text was expected"},
      {R"({"texts": "a", "id": 4})",
       "d.jsonl:7: there is no field 'text'. Did you mean 'texts'? The fields are texts, id; "
       "data.field chooses another"},
      {"{}",
       "d.jsonl:7: there is no field 'text'. The object is empty; data.field chooses another"},
      {"[1]", "d.jsonl:7: the line is a list; an object with the field 'text' was expected"},
      {"plain text", "d.jsonl:7: not JSON: byte 0: a value was expected"},
  };
  for (const auto& [line, error] : cases)
    EXPECT_EQ(reader.append_document(line, 7, text).error(), error) << line;
  EXPECT_EQ(text, "a\tb");
}

}  // namespace
}  // namespace fullbore
