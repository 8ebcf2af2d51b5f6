#include "fullbore/train/text_stream.h"

#include <gtest/gtest.h>

namespace fullbore {
namespace {

/// What is shown when the bytes come in pieces of `size`.
std::string shown(std::string_view bytes, size_t size, const std::vector<std::string>& stops = {}) {
  TextStream stream(stops);
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += size) text += stream.push(bytes.substr(at, size));
  return text + stream.finish();
}

TEST(TextStream, ShowsCompleteCharactersAtOnce) {
  TextStream stream({});
  EXPECT_EQ(stream.push("ab"), "ab");
  EXPECT_EQ(stream.push("\xC3"), "");
  EXPECT_EQ(stream.push("\xA9x"), "\u00E9x");
  EXPECT_EQ(stream.push("\xF0\x9F"), "");
  EXPECT_EQ(stream.push("\x98"), "");
  EXPECT_EQ(stream.push("\x80"), "\U0001F600");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, IsTheSameHoweverTheBytesCome) {
  const std::string bytes =
      "a\u00E9\u20AC\U0001F600 z\xFF y\xC3(\xE2\x82 \xED\xA0\x80 \xF4\x90\x80\x80.";
  const std::string whole = shown(bytes, bytes.size());
  for (size_t size = 1; size < bytes.size(); ++size) EXPECT_EQ(shown(bytes, size), whole) << size;
}

TEST(TextStream, ReplacesWhatIsNoUtf8) {
  const std::string r = "\uFFFD";
  EXPECT_EQ(shown("a\xFF"
                  "b",
                  1),
            "a" + r + "b");
  EXPECT_EQ(shown("\xC3(", 1), r + "(");
  EXPECT_EQ(shown("\xC0\xAF", 1), r + r) << "an overlong form";
  EXPECT_EQ(shown("\xED\xA0\x80", 1), r + r + r) << "a surrogate";
  EXPECT_EQ(shown("x\xF0\x9F\x98", 1), "x" + r) << "cut short at the end";
}

TEST(TextStream, EndsBeforeTheFirstStop) {
  EXPECT_EQ(shown("one. two. three", 1, {". t"}), "one");
  EXPECT_EQ(shown("one. two. three", 15, {"three", "two"}), "one. ");
  EXPECT_EQ(shown("one", 1, {"x", ""}), "one");
  EXPECT_EQ(shown("aab", 1, {"ab"}), "a");
  EXPECT_EQ(shown("abab", 1, {"abac"}), "abab") << "a beginning that is no stop is shown at last";
  EXPECT_EQ(shown("na\u00EFve", 1, {"\u00EF"}), "na");
}

TEST(TextStream, HoldsBackWhatMayBeAStop) {
  TextStream stream({"END", "."});
  EXPECT_EQ(stream.push("the E"), "the ");
  EXPECT_FALSE(stream.stopped());
  EXPECT_EQ(stream.push("N"), "");
  EXPECT_EQ(stream.push("T"), "ENT");
  EXPECT_EQ(stream.push("ENEND and more"), "EN");
  EXPECT_TRUE(stream.stopped());
  EXPECT_EQ(stream.push("nothing"), "");
  EXPECT_EQ(stream.finish(), "");
}

}  // namespace
}  // namespace fullbore
