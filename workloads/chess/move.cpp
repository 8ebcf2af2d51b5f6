#include "workloads/chess/move.h"

namespace fullbore::chess {
namespace {

constexpr std::string_view kPromotions = "qrbn";
constexpr PieceKind kPromotionKinds[] = {PieceKind::kQueen, PieceKind::kRook, PieceKind::kBishop,
                                         PieceKind::kKnight};

}  // namespace

Square parse_square(std::string_view text) noexcept {
  if (text.size() != 2 || text[0] < 'a' || text[0] > 'h' || text[1] < '1' || text[1] > '8')
    return kNoSquare;
  return square_at(text[0] - 'a', text[1] - '1');
}

std::string square_text(Square square) {
  return {static_cast<char>('a' + file_of(square)), static_cast<char>('1' + rank_of(square))};
}

std::optional<Move> parse_uci_move(std::string_view text) noexcept {
  if (text.size() != 4 && text.size() != 5) return {};
  Move move{parse_square(text.substr(0, 2)), parse_square(text.substr(2, 2))};
  if (move.from == kNoSquare || move.to == kNoSquare) return {};
  if (text.size() == 5) {
    const size_t kind = kPromotions.find(text[4]);
    if (kind == std::string_view::npos) return {};
    move.promotion = kPromotionKinds[kind];
  }
  return move;
}

int write_uci_move(Move move, char* out) noexcept {
  out[0] = static_cast<char>('a' + file_of(move.from));
  out[1] = static_cast<char>('1' + rank_of(move.from));
  out[2] = static_cast<char>('a' + file_of(move.to));
  out[3] = static_cast<char>('1' + rank_of(move.to));
  if (move.promotion == PieceKind::kNone) return 4;
  out[4] = "pnbrqk"[index_of(move.promotion)];
  return 5;
}

std::string uci_text(Move move) {
  char text[5];
  return {text, static_cast<size_t>(write_uci_move(move, text))};
}

}  // namespace fullbore::chess
