#include "fullbore/data/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "fullbore/base/philox.h"
#include "fullbore/data/utf8.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<char32_t> decode(std::string_view bytes, size_t* valid = nullptr) {
  std::vector<char32_t> characters;
  const size_t taken = decode_utf8(bytes, [&](char32_t c) { characters.push_back(c); });
  if (valid) *valid = taken;
  return characters;
}

TEST(Utf8, EveryCodePointComesBack) {
  std::string text;
  std::vector<char32_t> expected;
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    append_utf8(text, c);
    expected.push_back(c);
  }
  size_t valid = 0;
  EXPECT_EQ(decode(text, &valid), expected);
  EXPECT_EQ(valid, text.size());
}

struct Malformed {
  const char* bytes;
  const char* reason;
};

// The boundary cases of Unicode's table 3-7 and of Kuhn's decoder stress test.
const Malformed kMalformed[] = {
    {"\x80", "byte 0x80 continues a character that has not begun"},
    {"\xBF", "byte 0xBF continues a character that has not begun"},
    {"\xFE", "byte 0xFE occurs in no UTF-8 text"},
    {"\xFF", "byte 0xFF occurs in no UTF-8 text"},
    {"\xC0\xAF", "overlong form of U+002F"},
    {"\xC1\xBF", "overlong form of U+007F"},
    {"\xE0\x80\xAF", "overlong form of U+002F"},
    {"\xE0\x9F\xBF", "overlong form of U+07FF"},
    {"\xF0\x80\x80\xAF", "overlong form of U+002F"},
    {"\xF0\x8F\xBF\xBF", "overlong form of U+FFFF"},
    {"\xED\xA0\x80", "U+D800 is half of a surrogate pair, no character"},
    {"\xED\xBF\xBF", "U+DFFF is half of a surrogate pair, no character"},
    {"\xF4\x90\x80\x80", "U+110000 is past the end of Unicode"},
    {"\xF7\xBF\xBF\xBF", "U+1FFFFF is past the end of Unicode"},
    {"\xF8\x88\x80\x80\x80", "byte 0xF8 occurs in no UTF-8 text"},
    {"\xE4x", "a character of 3 bytes is broken off by byte 0x78"},
    {"\xC3(", "a character of 2 bytes is broken off by byte 0x28"},
    {"\xE4\xB8", "a character of 3 bytes ends after 2"},
    {"\xF0\x9F\x98", "a character of 4 bytes ends after 3"},
    {"\xC3", "a character of 2 bytes ends after 1"},
    {"\xF5\xF0\x01\x98", "a character of 4 bytes is broken off by byte 0xF0"},
};

TEST(Utf8, MalformedSequencesAreNamedWhereTheyStart) {
  for (const auto& [bytes, reason] : kMalformed) {
    const std::string text = std::string("ab\xC3\xA9") + bytes;
    size_t valid = 0;
    EXPECT_THAT(decode(text, &valid), ElementsAre(U'a', U'b', U'\u00E9')) << reason;
    EXPECT_EQ(valid, 4U) << reason;
    EXPECT_EQ(describe_utf8_error(text, valid), reason);
  }
}

class TextFile : public ::testing::Test {
 protected:
  testing::ScratchFolder folder_;
};

TEST_F(TextFile, RefusesWhatIsNoText) {
  EXPECT_THAT(read_text(folder_ / "none").error(),
              HasSubstr("cannot open " + (folder_ / "none") + ": No such file or directory"));
  EXPECT_EQ(read_text(folder_.put("empty", "")).error(),
            (folder_ / "empty") + " is empty: text was expected");
  EXPECT_EQ(read_text(folder_.path()).error(), folder_.path() + " is a folder, not a file");
  EXPECT_THAT(read_text("").error(), HasSubstr("data.path is empty"));
  EXPECT_THAT(read_text(folder_.put("long", "123456"), 5).error(), HasSubstr("longer than 5 B"));
}

TEST_F(TextFile, RefusesWhatItMayNotRead) {
  const std::string path = folder_.put("secret", "text");
  std::filesystem::permissions(path, std::filesystem::perms::none);
  if (::access(path.c_str(), R_OK) == 0) GTEST_SKIP() << "root may read everything";
  EXPECT_THAT(read_text(path).error(), HasSubstr("Permission denied"));
}

TEST_F(TextFile, MalformedTextIsNamedByByteAndLine) {
  for (const auto& [bytes, reason] : kMalformed) {
    const std::string path = folder_.put("bad", std::string("one\ntwo\nthr\xC3\xA9") + bytes);
    const std::string message = read_text(path).error();
    EXPECT_THAT(message, HasSubstr(path + ": not UTF-8 text: " + reason + " (byte 13, line 3)"));
  }
  const std::string binary = folder_.put("binary", std::string("\x7F"
                                                               "ELF\x02\x01\x01\0\0\xFF",
                                                               10));
  EXPECT_THAT(read_text(binary).error(), HasSubstr("(byte 9, line 1)"));
}

/// The pieces of a text joined, and the error that ended them, "" for none.
std::pair<std::string, std::string> read_in_pieces(const std::string& path, size_t piece_bytes) {
  TextReader reader = TextReader::open(path, piece_bytes).take_or_throw();
  std::string joined;
  for (;;) {
    const Result<std::string_view> piece = reader.next();
    if (!piece.ok()) return {joined, piece.error()};
    if (piece.value().empty()) return {joined, ""};
    joined += piece.value();
  }
}

// A character, and what is none, may straddle two pieces. Found by fuzzing: a message that depended
// on where a piece ended.
TEST_F(TextFile, PiecesOfAnySizeGiveTheSameTextAndTheSameError) {
  PhiloxStream random(7);
  std::string text;
  const char32_t examples[] = {U'a', U'\n', U'\u00E9', U'\u4E2D', U'\U0001F600'};
  for (int i = 0; i < 50; ++i) append_utf8(text, examples[random.below(5)]);
  const std::string good = folder_.put("good", text);
  for (size_t size = 1; size < 40; ++size)
    EXPECT_EQ(read_in_pieces(good, size), std::pair(text, std::string())) << size;
  for (const auto& [bytes, reason] : kMalformed) {
    for (const char* after : {"", "more"}) {
      if (std::string_view(reason).find("ends after") != std::string_view::npos && *after) continue;
      const std::string bad = folder_.put("bad", text + bytes + after);
      const std::string error = read_text(bad).error();
      EXPECT_THAT(error, HasSubstr(reason));
      for (size_t size = 1; size < 20; ++size)
        EXPECT_EQ(read_in_pieces(bad, size), std::pair(text, error)) << size;
    }
  }
}

}  // namespace
}  // namespace fullbore
