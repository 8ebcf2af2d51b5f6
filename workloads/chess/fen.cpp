#include "workloads/chess/fen.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "fullbore/base/excerpt.h"
#include "workloads/chess/attacks.h"
#include "workloads/chess/legal_moves.h"

namespace fullbore::chess {
namespace {

constexpr std::string_view kLetters = "PNBRQKpnbrqk";
constexpr std::string_view kRights = "KQkq";
constexpr int32_t kMostMoves = 999'999;

FenError parse_board(std::string_view text, Position& position) {
  int rank = 7, file = 0;
  bool after_digit = false;
  for (const char letter : text) {
    if (letter == '/') {
      if (file != 8) return FenError::kRankWidth;
      if (--rank < 0) return FenError::kRanks;
      file = 0;
      after_digit = false;
    } else if (letter >= '1' && letter <= '8') {
      file += letter - '0';
      if (file > 8 || after_digit) return FenError::kRankWidth;
      after_digit = true;
    } else if (letter == '0' || letter == '9') {
      return FenError::kRankWidth;
    } else {
      const size_t kind = kLetters.find(letter);
      if (kind == std::string_view::npos) return FenError::kPiece;
      if (file > 7) return FenError::kRankWidth;
      put_piece(position, square_at(file, rank), kind < 6 ? Side::kWhite : Side::kBlack,
                static_cast<PieceKind>(kind % 6));
      ++file;
      after_digit = false;
    }
  }
  if (rank != 0) return FenError::kRanks;
  return file == 8 ? FenError::kNone : FenError::kRankWidth;
}

FenError check_pieces(const Position& position) {
  for (const Side side : {Side::kWhite, Side::kBlack})
    if (std::popcount(position.of(side, PieceKind::kKing)) != 1) return FenError::kKings;
  if ((position.of(PieceKind::kPawn) & (kRank1 | kRank8)) != 0) return FenError::kPawnRank;
  for (const Side side : {Side::kWhite, Side::kBlack})
    if (std::popcount(position.of(side)) > 16 ||
        std::popcount(position.of(side, PieceKind::kPawn)) > 8)
      return FenError::kTooManyPieces;
  return FenError::kNone;
}

FenError parse_castling(std::string_view text, Position& position) {
  if (text == "-") return FenError::kNone;
  if (text.empty()) return FenError::kCastling;
  for (const char letter : text) {
    const size_t right = kRights.find(letter);
    if (right == std::string_view::npos) return FenError::kCastling;
    const auto bit = static_cast<uint8_t>(1 << right);
    if ((position.castling & bit) != 0) return FenError::kCastling;
    position.castling |= bit;
  }
  for (int right = 0; right < 4; ++right) {
    if ((position.castling >> right & 1) == 0) continue;
    const Side side = right < 2 ? Side::kWhite : Side::kBlack;
    const int rank = side == Side::kWhite ? 0 : 7;
    const Bitboard rook = bit_of(square_at(right % 2 == 0 ? 7 : 0, rank));
    if (position.king(side) != square_at(4, rank) ||
        (position.of(side, PieceKind::kRook) & rook) == 0)
      return FenError::kCastlingSquares;
  }
  return FenError::kNone;
}

FenError parse_en_passant(std::string_view text, Position& position) {
  if (text == "-") return FenError::kNone;
  const Square square = parse_square(text);
  const bool white = position.to_move == Side::kWhite;
  if (square == kNoSquare || rank_of(square) != (white ? 5 : 2)) return FenError::kEnPassant;
  const int back = white ? 8 : -8;  // towards where the pawn came from
  const Bitboard pawns = position.of(opponent(position.to_move), PieceKind::kPawn);
  if ((pawns & bit_of(square - back)) == 0 ||
      (position.occupied() & (bit_of(square) | bit_of(square + back))) != 0)
    return FenError::kEnPassantSquares;
  position.en_passant = square;
  return FenError::kNone;
}

bool parse_number(std::string_view text, int32_t& number) {
  const char* const end = text.data() + text.size();
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && stopped == end && number <= kMostMoves;
}

// False unless there are six, none of them empty.
bool split_fields(std::string_view text, std::array<std::string_view, 6>& fields) {
  for (size_t i = 0; i < 6; ++i) {
    const size_t space = i < 5 ? text.find(' ') : text.size();
    if (space == std::string_view::npos || space == 0) return false;
    fields[i] = text.substr(0, space);
    text.remove_prefix(i < 5 ? space + 1 : space);
  }
  return fields[5].find(' ') == std::string_view::npos;
}

FenError parse_fields(const std::array<std::string_view, 6>& fields, Position& position) {
  FenError error = parse_board(fields[0], position);
  if (error == FenError::kNone) error = check_pieces(position);
  if (error != FenError::kNone) return error;
  if (fields[1] != "w" && fields[1] != "b") return FenError::kSide;
  position.to_move = fields[1] == "w" ? Side::kWhite : Side::kBlack;
  error = parse_castling(fields[2], position);
  if (error == FenError::kNone) error = parse_en_passant(fields[3], position);
  if (error != FenError::kNone) return error;
  if (!parse_number(fields[4], position.half_moves)) return FenError::kHalfMoves;
  if (!parse_number(fields[5], position.full_moves)) return FenError::kFullMoves;
  if (position.full_moves == 0) position.full_moves = 1;
  const Side waiting = opponent(position.to_move);
  const Square king = position.king(waiting);
  if ((kAttacks.king[king] & position.of(PieceKind::kKing)) != 0) return FenError::kKingsAdjacent;
  if (attackers(position, king, position.to_move, position.occupied()) != 0)
    return FenError::kOpponentInCheck;
  return FenError::kNone;
}

const char* expectation(FenError error) {
  switch (error) {
    case FenError::kFields: return "six fields with one space between";
    case FenError::kRanks: return "eight ranks with / between";
    case FenError::kRankWidth: return "eight files in every rank, digits 1 to 8 not side by side";
    case FenError::kPiece: return "letters of PNBRQKpnbrqk and digits";
    case FenError::kKings: return "one king each";
    case FenError::kPawnRank: return "no pawn on rank 1 or 8";
    case FenError::kTooManyPieces: return "at most 16 pieces and 8 pawns a side";
    case FenError::kSide: return "w or b";
    case FenError::kCastling: return "- or some of KQkq, each once";
    case FenError::kCastlingSquares: return "king and rook at home for every right";
    case FenError::kEnPassant: return "- or a square of rank 6 if White moves, of rank 3 if Black";
    case FenError::kEnPassantSquares: return "a square that a pawn has just passed, or -";
    case FenError::kHalfMoves:
    case FenError::kFullMoves: return "a number from 0 to 999999";
    case FenError::kKingsAdjacent: return "kings that are not adjacent";
    case FenError::kOpponentInCheck: return "the side that is not to move not in check";
    case FenError::kNone: break;
  }
  return "";
}

}  // namespace

FenError parse_fen(std::string_view text, Position& position) noexcept {
  std::array<std::string_view, 6> fields;
  if (!split_fields(text, fields)) return FenError::kFields;
  Position found = empty_position();
  const FenError error = parse_fields(fields, found);
  if (error != FenError::kNone) return error;
  found.key = computed_key(found);
  position = found;
  return FenError::kNone;
}

int field_of(FenError error) {
  switch (error) {
    case FenError::kNone:
    case FenError::kFields:
    case FenError::kKingsAdjacent:
    case FenError::kOpponentInCheck: return 0;
    case FenError::kSide: return 2;
    case FenError::kCastling:
    case FenError::kCastlingSquares: return 3;
    case FenError::kEnPassant:
    case FenError::kEnPassantSquares: return 4;
    case FenError::kHalfMoves: return 5;
    case FenError::kFullMoves: return 6;
    default: return 1;
  }
}

std::string describe_fen_error(FenError error, std::string_view text) {
  static constexpr const char* kNames[] = {
      "", "pieces", "side to move", "castling rights", "en passant", "half-moves", "full-moves"};
  const int field = field_of(error);
  std::array<std::string_view, 6> fields;
  if (field == 0 || !split_fields(text, fields))
    return fmt::format("expected {}, found '{}'", expectation(error), excerpt(text, 100));
  return fmt::format("field {} ({}): expected {}, found '{}'", field, kNames[field],
                     expectation(error), excerpt(fields[static_cast<size_t>(field - 1)]));
}

int write_fen(const Position& position, EnPassantField field, char* out) noexcept {
  char* at = out;
  for (int rank = 7; rank >= 0; --rank) {
    int empty = 0;
    for (int file = 0; file < 8; ++file) {
      const Square square = square_at(file, rank);
      const PieceKind kind = position.board[square];
      if (kind == PieceKind::kNone) {
        ++empty;
        continue;
      }
      if (empty != 0) *at++ = static_cast<char>('0' + empty);
      empty = 0;
      const bool white = (position.of(Side::kWhite) & bit_of(square)) != 0;
      *at++ = kLetters[static_cast<size_t>(index_of(kind) + (white ? 0 : 6))];
    }
    if (empty != 0) *at++ = static_cast<char>('0' + empty);
    if (rank > 0) *at++ = '/';
  }
  *at++ = ' ';
  *at++ = position.to_move == Side::kWhite ? 'w' : 'b';
  *at++ = ' ';
  if (position.castling == 0) *at++ = '-';
  for (size_t right = 0; right < 4; ++right)
    if ((position.castling >> right & 1) != 0) *at++ = kRights[right];
  *at++ = ' ';
  const bool named = position.en_passant != kNoSquare &&
                     (field == EnPassantField::kAlways ||
                      (field == EnPassantField::kPseudo ? pseudo_legal_en_passant(position)
                                                        : legal_en_passant(position)) != 0);
  if (named) {
    *at++ = static_cast<char>('a' + file_of(position.en_passant));
    *at++ = static_cast<char>('1' + rank_of(position.en_passant));
  } else {
    *at++ = '-';
  }
  for (const int32_t number : {position.half_moves, position.full_moves}) {
    *at++ = ' ';
    at = std::to_chars(at, out + kMaxFenLength, number).ptr;
  }
  return static_cast<int>(at - out);
}

std::string fen_text(const Position& position, EnPassantField field) {
  char text[kMaxFenLength];
  return {text, static_cast<size_t>(write_fen(position, field, text))};
}

}  // namespace fullbore::chess
