#include "workloads/chess/board_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fullbore/base/svg_text.h"
#include "workloads/chess/fen.h"
#include "workloads/chess/piece_shapes.h"
#include "workloads/chess/position_text.h"

namespace fullbore::chess {
namespace {

constexpr double kSquare = 45, kMargin = 22, kBoard = 8 * kSquare, kCaption = 26;
constexpr double kWidth = kBoard + 2 * kMargin, kHeight = kBoard + 2 * kMargin + kCaption;
constexpr PieceKind kKinds[] = {PieceKind::kPawn, PieceKind::kKnight, PieceKind::kBishop,
                                PieceKind::kRook, PieceKind::kQueen,  PieceKind::kKing};

// Each piece once, to be used by its letter.
std::string piece_symbols() {
  std::string svg = "<defs>\n";
  for (const Side side : {Side::kWhite, Side::kBlack})
    for (const PieceKind kind : kKinds) {
      const bool white = side == Side::kWhite;
      const char letter = (white ? "PNBRQK" : "pnbrqk")[index_of(kind)];
      svg += fmt::format(
          "<g id=\"{}\" stroke-width=\"4\" stroke-linejoin=\"round\" stroke-linecap=\"round\">"
          "<path d=\"{}\" fill=\"{}\" stroke=\"#111\"/><path d=\"{}\" fill=\"none\" "
          "stroke=\"{}\"/></g>\n",
          white ? fmt::format("white-{}", letter) : fmt::format("black-{}", letter),
          piece_outline(kind), white ? "#fff" : "#333", piece_details(kind),
          white ? "#111" : "#ddd");
    }
  return svg + "</defs>\n";
}

class BoardSvg {
 public:
  explicit BoardSvg(const BoardDrawing& drawing) : drawing_(drawing) {}

  std::string draw(double left, double top) {
    const Position& position = drawing_.position;
    svg_ = fmt::format("<g transform=\"translate({:.1f} {:.1f})\">\n<title>{}</title>\n", left, top,
                       fen_text(position));
    svg_ +=
        fmt::format("<rect x=\"{0}\" y=\"{0}\" width=\"{1}\" height=\"{1}\" fill=\"#e8d9bd\"/>\n",
                    kMargin, kBoard);
    for (int square = 0; square < 64; ++square)
      if ((kDarkSquares & bit_of(square)) != 0) shade(static_cast<Square>(square), "#b08d64");
    if (in_check(position)) shade(position.king(position.to_move), "#e2603f");
    for (int i = 0; i < 8; ++i) names(i);
    for (Bitboard rest = position.occupied(); rest != 0;) piece(take_square(rest));
    for (const BoardArrow& each : drawing_.arrows) arrow(each);
    svg_ +=
        fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"{}\" stroke=\"#111\"/>\n",
                    kMargin + kBoard + 11,
                    position.to_move == drawing_.below ? kMargin + kBoard - 11 : kMargin + 11,
                    position.to_move == Side::kWhite ? "#fff" : "#333");
    text(kWidth / 2, kHeight - 12, svg_text(drawing_.caption), 14);
    return svg_ + "</g>\n";
  }

 private:
  // The middle of a square.
  double x_of(Square square) const {
    const int file = drawing_.below == Side::kWhite ? file_of(square) : 7 - file_of(square);
    return kMargin + (file + 0.5) * kSquare;
  }
  double y_of(Square square) const {
    const int rank = drawing_.below == Side::kWhite ? 7 - rank_of(square) : rank_of(square);
    return kMargin + (rank + 0.5) * kSquare;
  }
  void text(double x, double y, const std::string& words, int size) {
    svg_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" font-size=\"{}\">{}</text>\n", x, y,
        size, words);
  }
  void shade(Square square, const char* colour) {
    svg_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n",
        x_of(square) - kSquare / 2, y_of(square) - kSquare / 2, kSquare, kSquare, colour);
  }
  void names(int i) {
    text(x_of(square_at(i, 0)), kMargin + kBoard + 15, std::string(1, static_cast<char>('a' + i)),
         12);
    text(kMargin / 2, y_of(square_at(0, i)) + 4, std::to_string(i + 1), 12);
  }
  void piece(Square square) {
    const char letter = piece_letter(drawing_.position, square);
    const bool white = letter < 'a';
    svg_ += fmt::format("<use href=\"#{}-{}\" transform=\"translate({:.1f} {:.1f}) scale({})\"/>\n",
                        white ? "white" : "black", letter, x_of(square) - kSquare / 2,
                        y_of(square) - kSquare / 2, kSquare / 100);
  }
  void arrow(const BoardArrow& arrow) {
    const double x = x_of(arrow.move.from), y = y_of(arrow.move.from);
    const double dx = x_of(arrow.move.to) - x, dy = y_of(arrow.move.to) - y;
    const double length = std::hypot(dx, dy);
    if (length == 0) return;
    constexpr double kHead = 14, kShaft = 4;
    svg_ += fmt::format(
        "<path transform=\"translate({:.1f} {:.1f}) rotate({:.1f})\" d=\"M8 "
        "{:.1f}H{:.1f}v-6L{:.1f} "
        "0L{:.1f} {:.1f}v-6H8z\" fill=\"{}\" fill-opacity=\"0.75\"/>\n",
        x, y, std::atan2(dy, dx) * 180 / 3.14159265358979, -kShaft, length - kHead, length,
        length - kHead, kShaft + 6, svg_text(arrow.colour));
  }

  const BoardDrawing& drawing_;
  std::string svg_;
};

}  // namespace

std::string boards_svg(std::span<const BoardDrawing> boards, int columns) {
  const int count = static_cast<int>(boards.size());
  const int across = std::clamp(columns, 1, std::max(1, count));
  const int rows = (count + across - 1) / across;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"system-ui, sans-serif\" fill=\"#222\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      across * kWidth, rows * kHeight);
  svg += piece_symbols();
  for (int i = 0; i < count; ++i) {
    const int row = i / across;
    svg +=
        BoardSvg(boards[static_cast<size_t>(i)]).draw((i - row * across) * kWidth, row * kHeight);
  }
  return svg + "</svg>\n";
}

}  // namespace fullbore::chess
