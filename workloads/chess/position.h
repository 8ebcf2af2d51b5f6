#pragma once
#include <array>
#include <cstdint>

#include "workloads/chess/board.h"
#include "workloads/chess/move.h"

namespace fullbore::chess {

enum Castling : uint8_t {
  kWhiteShort = 1,
  kWhiteLong = 2,
  kBlackShort = 4,
  kBlackLong = 8,
};

/// What a FEN says: pieces, side to move, castling rights, en passant square and both counters. A plain value; a move
/// is unmade by keeping the value from before it.
struct Position {
  std::array<Bitboard, kPieceKinds> kinds = {};  ///< by PieceKind, of both sides
  std::array<Bitboard, 2> sides = {};            ///< by Side
  std::array<PieceKind, 64> board = {};          ///< by square; the side is in `sides`
  Side to_move = Side::kWhite;
  uint8_t castling = 0;  ///< of Castling
  /// The square behind a pawn that has just made its double step, whether it can be captured there or not.
  Square en_passant = kNoSquare;
  int32_t half_moves = 0;  ///< since the last capture or pawn move
  int32_t full_moves = 1;  ///< counts Black's moves, from 1
  /// Zobrist key of pieces, side to move and castling rights; position_key() adds en passant.
  uint64_t key = 0;

  Bitboard occupied() const { return sides[0] | sides[1]; }
  Bitboard of(Side side) const { return sides[index_of(side)]; }
  Bitboard of(PieceKind kind) const { return kinds[index_of(kind)]; }
  Bitboard of(Side side, PieceKind kind) const { return of(side) & of(kind); }
  Square king(Side side) const { return first_square(of(side, PieceKind::kKing)); }

  /// Same pieces, side, rights, en passant square and counters.
  bool operator==(const Position&) const = default;
};

/// Before the first move of a game.
const Position& start_position();

/// No pieces: put_piece() fills it.
Position empty_position();
/// `square` must be empty.
void put_piece(Position& position, Square square, Side side, PieceKind kind);
/// The key that Position::key must have. It is carried on by every move.
uint64_t computed_key(const Position& position);

/// Pieces of `by` that attack `square`, were the occupied squares `occupied`.
Bitboard attackers(const Position& position, Square square, Side by, Bitboard occupied);
/// The side to move is in check.
bool in_check(const Position& position);

/// Makes a legal move (legal_moves.h). Rights go with a king's or rook's move and with a captured rook; the en passant
/// square is set after every double step. Of a move that is not legal the result is some position or other.
void make_move(Position& position, Move move);

/// The same for positions in which the same moves can be made: key, and the file of the en passant square where a legal
/// capture exists (FIDE Laws of Chess 9.2.3). What repetitions are counted by.
uint64_t position_key(const Position& position);

}  // namespace fullbore::chess
