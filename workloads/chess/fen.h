#pragma once
#include <string>
#include <string_view>

#include "workloads/chess/position.h"

namespace fullbore::chess {

/// What is wrong with a FEN, in the order in which it is looked for.
enum class FenError : uint8_t {
  kNone,
  kFields,            ///< not six fields with one space between
  kRanks,             ///< not eight ranks
  kRankWidth,         ///< a rank with more or less than eight files, or two digits in a row
  kPiece,             ///< a letter that is no piece
  kKings,             ///< not one king each
  kPawnRank,          ///< a pawn on rank 1 or 8
  kTooManyPieces,     ///< a side with more than 16 pieces or 8 pawns
  kSide,              ///< neither "w" nor "b"
  kCastling,          ///< neither "-" nor some of "KQkq"
  kCastlingSquares,   ///< a right whose king or rook is not at home
  kEnPassant,         ///< neither "-" nor a square of rank 6 (White to move) or 3
  kEnPassantSquares,  ///< no pawn that can just have passed that square
  kHalfMoves,         ///< not a number from 0 to 999999
  kFullMoves,         ///< not a number from 0 to 999999
  kKingsAdjacent,
  kOpponentInCheck,  ///< the side that is not to move is in check
};

/// Forsyth-Edwards Notation with all six fields. Any bytes may be given; never throws, never allocates, and leaves
/// `position` as it was unless kNone is returned. A full-move number 0 becomes 1, rights come in any order.
/// Source: Edwards, Portable Game Notation Specification, section 16.1.
FenError parse_fen(std::string_view text, Position& position) noexcept;

/// The field that is wrong, what was expected and what was found: "field 2 (side to move): expected w or b, found 'x'".
std::string describe_fen_error(FenError error, std::string_view text);
/// 1 to 6; 0 where the whole text or position is wrong.
int field_of(FenError error);

/// When a FEN names the square that a pawn has passed.
enum class EnPassantField : uint8_t {
  kLegal,   ///< only where a legal en passant capture exists
  kPseudo,  ///< where a pawn stands ready, pinned or not (X-FEN; Stockfish)
  kAlways,  ///< after every double step (the standard)
};

constexpr int kMaxFenLength = 128;

std::string fen_text(const Position& position, EnPassantField field = EnPassantField::kLegal);
/// The same in the first bytes of `out`, which holds kMaxFenLength; how many.
int write_fen(const Position& position, EnPassantField field, char* out) noexcept;

}  // namespace fullbore::chess
