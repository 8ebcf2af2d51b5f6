#pragma once
#include <array>

#include "workloads/chess/board.h"

namespace fullbore::chess {

/// Squares that a piece attacks, by square. Sliding pieces find the nearest piece on both halves of a line by bit
/// arithmetic, so that the tables are small enough for the first cache.
struct AttackTables {
  /// One line through a square, without the square: its halves towards lower and higher squares.
  struct Line {
    Bitboard lower = 0, upper = 0;
  };
  enum Direction { kFile, kRank, kDiagonal, kAntidiagonal };

  std::array<Bitboard, 64> knight = {}, king = {};
  std::array<std::array<Bitboard, 64>, 2> pawn = {};      ///< by Side
  std::array<std::array<Line, 4>, 64> lines = {};         ///< by square and Direction
  std::array<std::array<Bitboard, 64>, 64> between = {};  ///< strictly; empty unless on one line
  std::array<std::array<Bitboard, 64>, 64> through =
      {};  ///< the whole line of both; empty unless on one
};

extern const AttackTables kAttacks;

/// `line` as far as the nearest occupied square on either side, that square included.
/// Source: https://www.chessprogramming.org/Obstruction_Difference.
inline Bitboard line_attacks(AttackTables::Line line, Bitboard occupied) {
  const Bitboard lower = line.lower & occupied, upper = line.upper & occupied;
  // The mask from the highest lower piece upwards, carried on to the lowest upper piece.
  const Bitboard from_lower = ~Bitboard{0} << (63 - std::countl_zero(lower | 1));
  const Bitboard lowest_upper = upper & (~upper + 1);
  return (2 * lowest_upper + from_lower) & (line.lower | line.upper);
}

inline Bitboard rook_attacks(Square square, Bitboard occupied) {
  const auto& lines = kAttacks.lines[square];
  return line_attacks(lines[AttackTables::kFile], occupied) |
         line_attacks(lines[AttackTables::kRank], occupied);
}

inline Bitboard bishop_attacks(Square square, Bitboard occupied) {
  const auto& lines = kAttacks.lines[square];
  return line_attacks(lines[AttackTables::kDiagonal], occupied) |
         line_attacks(lines[AttackTables::kAntidiagonal], occupied);
}

inline Bitboard queen_attacks(Square square, Bitboard occupied) {
  return rook_attacks(square, occupied) | bishop_attacks(square, occupied);
}

/// Of any kind but the pawn.
inline Bitboard piece_attacks(PieceKind kind, Square square, Bitboard occupied) {
  switch (kind) {
    case PieceKind::kKnight: return kAttacks.knight[square];
    case PieceKind::kBishop: return bishop_attacks(square, occupied);
    case PieceKind::kRook: return rook_attacks(square, occupied);
    case PieceKind::kQueen: return queen_attacks(square, occupied);
    default: return kAttacks.king[square];
  }
}

}  // namespace fullbore::chess
