#include <gtest/gtest.h>

#include "workloads/chess/fen.h"
#include "workloads/chess/legal_move_text.h"

namespace fullbore::chess {
namespace {

bool takes(const Position& position, bool is_listing, std::string_view text) {
  return LegalMoveText(position, is_listing).take(text);
}

bool may_end(const Position& position, std::string_view text) {
  LegalMoveText read(position, true);
  return read.take(text) && read.may_end();
}

TEST(LegalMoveText, MovesAreLegalOrMayBecomeSo) {
  const Position start = start_position();
  for (const char* text : {"", " ", "  e2e4 g1f3\tE: 0.1 x B: d2d4", " e2", " E",
                           "E:", " E: e2e5 zz", " E: B: e2e4 anything B: e2e5"})
    EXPECT_TRUE(takes(start, true, text)) << text;
  for (const char* text : {" e2e5", " e3", "x", " e2 ", " e2e4q", " e2e4E:", " E ", " EB",
                           " B:", " E: B: e2e5", " E: B: E:", " E: B: e2 ", " E:B:x", "\xff"})
    EXPECT_FALSE(takes(start, true, text)) << text;
  // A prompt that ends before the padding: all is free up to the label.
  EXPECT_TRUE(takes(start, false, "   e2e5 M M: e2e4"));
  EXPECT_FALSE(takes(start, false, "   M: e2e5"));
}

TEST(LegalMoveText, PromotionsAreWhole) {
  Position position;
  ASSERT_EQ(parse_fen("8/P6k/8/8/8/8/8/K7 w - - 0 1", position), FenError::kNone);
  EXPECT_TRUE(takes(position, true, " a7a8q a7a8n E:"));
  EXPECT_FALSE(takes(position, true, " a7a8 "));
  EXPECT_FALSE(takes(position, true, " a7a8k"));
}

TEST(LegalMoveText, EndsBehindWholeMoves) {
  const Position start = start_position();
  for (const char* text : {"", " ", " e2e4", " e2e4 ", " E: 1", " E: B: e2e4", " E: B: e2e4 x"})
    EXPECT_TRUE(may_end(start, text)) << text;
  for (const char* text : {" e2", " E", " E: B:", " E: B: ", " E: B: e2e"})
    EXPECT_FALSE(may_end(start, text)) << text;
}

// Copies go on by themselves: each token is tried on one.
TEST(LegalMoveText, CopiesAreIndependent) {
  LegalMoveText text(start_position(), true);
  ASSERT_TRUE(text.take(" e2"));
  LegalMoveText copy = text;
  EXPECT_FALSE(copy.take("e5"));
  EXPECT_TRUE(text.take("e4"));
}

}  // namespace
}  // namespace fullbore::chess
