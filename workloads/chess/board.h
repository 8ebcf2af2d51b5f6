#pragma once
#include <bit>
#include <cstdint>

namespace fullbore::chess {

/// A square: 8 * rank + file, both from 0; a1 is 0, h1 7, h8 63.
using Square = uint8_t;
constexpr Square kNoSquare = 64;

constexpr Square square_at(int file, int rank) { return static_cast<Square>(8 * rank + file); }
constexpr int file_of(Square square) { return square & 7; }
constexpr int rank_of(Square square) { return square >> 3; }

/// A set of squares: bit i is square i.
using Bitboard = uint64_t;

constexpr Bitboard bit_of(int square) { return Bitboard{1} << square; }
constexpr Square first_square(Bitboard squares) {
  return static_cast<Square>(std::countr_zero(squares));
}
/// Removes the lowest square of a set that is not empty.
constexpr Square take_square(Bitboard& squares) {
  const Square square = first_square(squares);
  squares &= squares - 1;
  return square;
}

constexpr Bitboard kFileA = 0x0101010101010101;
constexpr Bitboard kFileH = kFileA << 7;
constexpr Bitboard kRank1 = 0xff;
constexpr Bitboard kRank8 = kRank1 << 56;
/// a1, c1, ..., b2, ..., h8.
constexpr Bitboard kDarkSquares = 0xaa55aa55aa55aa55;
constexpr Bitboard rank_mask(int rank) { return kRank1 << (8 * rank); }

enum class Side : uint8_t { kWhite, kBlack };
constexpr Side opponent(Side side) { return side == Side::kWhite ? Side::kBlack : Side::kWhite; }
constexpr int index_of(Side side) { return static_cast<int>(side); }

enum class PieceKind : uint8_t { kPawn, kKnight, kBishop, kRook, kQueen, kKing, kNone };
constexpr int kPieceKinds = 6;
constexpr int index_of(PieceKind kind) { return static_cast<int>(kind); }

}  // namespace fullbore::chess
