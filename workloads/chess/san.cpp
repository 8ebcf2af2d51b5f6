#include "workloads/chess/san.h"

#include "workloads/chess/legal_moves.h"

namespace fullbore::chess {
namespace {

constexpr std::string_view kPieces = "PNBRQK";

// What a text says of a move; -1 or kNone where it says nothing. Without a letter it is a pawn's, unless both its
// squares are told.
struct SanParts {
  PieceKind kind = PieceKind::kPawn;
  int from_file = -1, from_rank = -1;
  Square to = kNoSquare;
  PieceKind promotion = PieceKind::kNone;
};

void drop_suffix(std::string_view& text, std::string_view letters) {
  while (!text.empty() && letters.find(text.back()) != std::string_view::npos)
    text.remove_suffix(1);
}

PieceKind kind_of(char letter, std::string_view letters) {
  const size_t index = letters.find(letter);
  return index == std::string_view::npos ? PieceKind::kNone : static_cast<PieceKind>(index);
}

// "=Q", "Q", "(Q)", "/Q" behind a square.
PieceKind take_promotion(std::string_view& text) {
  std::string_view rest = text;
  const bool in_brackets = rest.ends_with(')');
  if (in_brackets) rest.remove_suffix(1);
  if (rest.empty()) return PieceKind::kNone;
  PieceKind kind = kind_of(rest.back(), "PNBRQ");
  if (kind == PieceKind::kNone) kind = kind_of(rest.back(), ".n.rq");  // not b, which is a file
  if (kind == PieceKind::kNone || kind == PieceKind::kPawn) return PieceKind::kNone;
  rest.remove_suffix(1);
  if (in_brackets != rest.ends_with('(')) return PieceKind::kNone;
  if (in_brackets || rest.ends_with('=') || rest.ends_with('/')) rest.remove_suffix(1);
  text = rest;
  return kind;
}

bool parse_parts(std::string_view text, SanParts& parts) {
  for (const std::string_view passing : {"e.p.", "ep"})
    if (text.size() > 4 && text.ends_with(passing)) text.remove_suffix(passing.size());
  drop_suffix(text, " ");
  parts.promotion = take_promotion(text);
  if (text.size() < 2) return false;
  parts.to = parse_square(text.substr(text.size() - 2));
  if (parts.to == kNoSquare) return false;
  text.remove_suffix(2);
  if (!text.empty() && std::string_view("x:-").find(text.back()) != std::string_view::npos)
    text.remove_suffix(1);
  if (!text.empty() && kPieces.find(text[0]) != std::string_view::npos) {
    parts.kind = kind_of(text[0], kPieces);
    text.remove_prefix(1);
  }
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'h') {
    parts.from_file = text[0] - 'a';
    text.remove_prefix(1);
  }
  if (!text.empty() && text[0] >= '1' && text[0] <= '8') {
    parts.from_rank = text[0] - '1';
    text.remove_prefix(1);
  }
  // "e1f1" as UCI has it: any piece.
  if (parts.kind == PieceKind::kPawn && parts.from_file >= 0 && parts.from_rank >= 0)
    parts.kind = PieceKind::kNone;
  return text.empty();
}

bool is_castling(const Position& position, Move move) {
  return position.board[move.from] == PieceKind::kKing &&
         (move.to == move.from + 2 || move.to + 2 == move.from);
}

bool agrees(const Position& position, Move move, const SanParts& parts) {
  return move.to == parts.to && move.promotion == parts.promotion &&
         (parts.kind == PieceKind::kNone || position.board[move.from] == parts.kind) &&
         (parts.from_file < 0 || file_of(move.from) == parts.from_file) &&
         (parts.from_rank < 0 || rank_of(move.from) == parts.from_rank);
}

bool is_capture(const Position& position, Move move) {
  return position.board[move.to] != PieceKind::kNone ||
         (position.board[move.from] == PieceKind::kPawn && file_of(move.from) != file_of(move.to));
}

// What tells a piece from others of its kind that can go there: nothing, its file, its rank, or both.
std::string origin_text(const Position& position, Move move) {
  bool others = false, same_file = false, same_rank = false;
  for (const Move other : legal_moves(position)) {
    if (other.to != move.to || other.from == move.from ||
        position.board[other.from] != position.board[move.from])
      continue;
    others = true;
    same_file |= file_of(other.from) == file_of(move.from);
    same_rank |= rank_of(other.from) == rank_of(move.from);
  }
  const std::string square = square_text(move.from);
  if (!others) return {};
  if (!same_file) return square.substr(0, 1);
  return same_rank ? square : square.substr(1);
}

}  // namespace

SanError parse_san(const Position& position, std::string_view text, Move& move) noexcept {
  drop_suffix(text, "+#!?");
  SanParts parts;
  int castling = 0;
  if (text == "O-O" || text == "0-0" || text == "o-o")
    castling = 2;
  else if (text == "O-O-O" || text == "0-0-0" || text == "o-o-o")
    castling = -2;
  else if (!parse_parts(text, parts))
    return SanError::kMalformed;
  int found = 0;
  Move last;
  for (const Move each : legal_moves(position)) {
    const bool meant = castling != 0
                           ? is_castling(position, each) && each.to == each.from + castling
                           : agrees(position, each, parts);
    if (!meant) continue;
    last = each;
    ++found;
  }
  if (found == 0) return SanError::kIllegal;
  if (found > 1) return SanError::kAmbiguous;
  move = last;
  return SanError::kNone;
}

std::string san_text(const Position& position, Move move) {
  std::string text;
  const PieceKind kind = position.board[move.from];
  if (is_castling(position, move)) {
    text = move.to > move.from ? "O-O" : "O-O-O";
  } else if (kind == PieceKind::kPawn) {
    if (is_capture(position, move)) text = square_text(move.from).substr(0, 1) + "x";
    text += square_text(move.to);
    if (move.promotion != PieceKind::kNone)
      text += {'=', kPieces[static_cast<size_t>(move.promotion)]};
  } else {
    text = kPieces[static_cast<size_t>(kind)] + origin_text(position, move);
    if (is_capture(position, move)) text += 'x';
    text += square_text(move.to);
  }
  Position after = position;
  make_move(after, move);
  if (in_check(after)) text += has_legal_move(after) ? '+' : '#';
  return text;
}

const char* san_error_name(SanError error) {
  switch (error) {
    case SanError::kMalformed: return "malformed";
    case SanError::kIllegal: return "not legal";
    case SanError::kAmbiguous: return "ambiguous";
    case SanError::kNone: break;
  }
  return "right";
}

}  // namespace fullbore::chess
