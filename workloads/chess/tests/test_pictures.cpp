#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/chess/board_picture.h"
#include "workloads/chess/fen.h"
#include "workloads/chess/position_text.h"

namespace fullbore::chess {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

int64_t count_of(const std::string& text, const std::string& part) {
  int64_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(BoardPicture, HasEveryPieceWhereItStands) {
  BoardDrawing white{start_position()};
  white.caption = "<script>alert(1)</script>";
  white.arrows = {{*parse_uci_move("e2e4")}};
  BoardDrawing black = white;
  black.below = Side::kBlack;
  const std::string svg = boards_svg({{white, black}}, 2);
  EXPECT_EQ(count_of(svg, "<use "), 64);
  EXPECT_EQ(count_of(svg, "href=\"#white-P\""), 16);
  EXPECT_EQ(count_of(svg, "<title>rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"), 2);
  EXPECT_THAT(svg, HasSubstr("width=\"808\" height=\"430\""));
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  // a1 is below on the left for White, above on the right for Black.
  const std::string scale = " scale(0.45)\"/>";
  EXPECT_THAT(svg, HasSubstr("href=\"#white-R\" transform=\"translate(22.0 337.0)" + scale));
  EXPECT_THAT(svg, HasSubstr("href=\"#white-R\" transform=\"translate(337.0 22.0)" + scale));
  EXPECT_THAT(svg, HasSubstr("rotate(-90.0)"));
  EXPECT_THAT(svg, HasSubstr("rotate(90.0)"));
  EXPECT_EQ(count_of(svg, "#e2603f"), 0) << "nobody is in check";
  EXPECT_THAT(boards_svg({}), HasSubstr("</svg>"));
}

TEST(BoardPicture, AsText) {
  Position position;
  ASSERT_EQ(parse_fen("4k3/8/8/8/8/8/8/R3K2r w - - 0 1", position), FenError::kNone);
  EXPECT_THAT(board_text(position), HasSubstr("1  R . . . K . . r\n   a b c d e f g h\n"));
  EXPECT_EQ(count_of(boards_svg({{{position}}}), "#e2603f"), 1) << "the king of e1 is in check";
}

}  // namespace
}  // namespace fullbore::chess
