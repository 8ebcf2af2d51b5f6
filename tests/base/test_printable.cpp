// What reaches a terminal: text, and of control characters their names.
#include "fullbore/base/printable.h"

#include <gtest/gtest.h>

#include "fullbore/base/svg_text.h"

namespace fullbore {
namespace {

TEST(Printable, TextStaysAsItIs) {
  const char* const text = "a b~\n\tsee caf\u00e9, \u4e2d\u6587 and \U0001F600";
  EXPECT_EQ(printable(text), text);
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, ControlCharactersBecomeText) {
  EXPECT_EQ(printable("\x1b[31mred\x1b]0;title\a"), "\\x1b[31mred\\x1b]0;title\\x07");
  EXPECT_EQ(printable(std::string_view("a\0b\r\x7f", 5)), "a\\x00b\\x0d\\x7f");
  EXPECT_EQ(printable("\u0080\u009b31m"), "\\x80\\x9b31m") << "C1: CSI in one character";
  EXPECT_EQ(printable("\u202egpj.exe\u2066"), "\\u202egpj.exe\\u2066") << "from right to left";
  // Each of its kind, the first and last of each range, and their neighbours, which are text.
  for (const char* each : {"\u200e", "\u200f", "\u061c", "\u2028", "\u202e", "\u2066", "\u2069"})
    EXPECT_EQ(printable(each).substr(0, 2), "\\u") << each;
  for (const char* each : {"\u200d", "\u2010", "\u061b", "\u2027", "\u202f", "\u206a", "\u00a0"})
    EXPECT_EQ(printable(each), each);
}

TEST(Printable, SvgHasNoMarkupOfOthers) {
  EXPECT_EQ(svg_text("<a href=\"x\">&\n\xff"), "&lt;a href=&quot;x&quot;&gt;&amp;\\n\\xff");
}

TEST(Printable, WhatIsNoUtf8IsNamed) {
  EXPECT_EQ(printable("\x9b\x33"), "\\x9b3");
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b") << "overlong";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond U+10FFFF";
  EXPECT_EQ(printable("\xe4\xb8"), "\\xe4\\xb8") << "cut";
}

TEST(Printable, ANameStaysInItsLine) { EXPECT_EQ(printable_name("a\tb\nc"), "a\\tb\\nc"); }

}  // namespace
}  // namespace fullbore
