#include "workloads/chess/attacks.h"

#include <cstddef>

namespace fullbore::chess {
namespace {

constexpr bool on_board(int file, int rank) {
  return file >= 0 && file < 8 && rank >= 0 && rank < 8;
}

// From `square` by steps to the edge, without `square`.
constexpr Bitboard ray(int square, int file_step, int rank_step) {
  Bitboard found = 0;
  int file = square & 7, rank = square >> 3;
  while (on_board(file += file_step, rank += rank_step)) found |= bit_of(8 * rank + file);
  return found;
}

constexpr Bitboard jump(int square, int file_step, int rank_step) {
  const int file = (square & 7) + file_step, rank = (square >> 3) + rank_step;
  return on_board(file, rank) ? bit_of(8 * rank + file) : 0;
}

constexpr AttackTables make_tables() {
  AttackTables tables;
  // Steps towards higher squares, by Direction.
  constexpr int kSteps[4][2] = {{0, 1}, {1, 0}, {1, 1}, {-1, 1}};
  for (int square = 0; square < 64; ++square) {
    const auto at = static_cast<size_t>(square);
    for (const int sign : {-1, 1}) {
      for (const int other : {-1, 1}) {
        tables.knight[at] |= jump(square, sign, 2 * other) | jump(square, 2 * sign, other);
        tables.king[at] |= jump(square, sign, other);
      }
      tables.king[at] |= jump(square, sign, 0) | jump(square, 0, sign);
      tables.pawn[0][at] |= jump(square, sign, 1);
      tables.pawn[1][at] |= jump(square, sign, -1);
    }
    for (size_t direction = 0; direction < 4; ++direction) {
      const int file_step = kSteps[direction][0], rank_step = kSteps[direction][1];
      const Bitboard lower = ray(square, -file_step, -rank_step);
      const Bitboard upper = ray(square, file_step, rank_step);
      tables.lines[at][direction] = {lower, upper};
      for (Bitboard rest = lower | upper; rest != 0;) {
        const Square target = take_square(rest);
        const int sign = (upper & bit_of(target)) != 0 ? 1 : -1;
        tables.through[at][target] = lower | upper | bit_of(square);
        tables.between[at][target] = ray(square, sign * file_step, sign * rank_step) &
                                     ray(target, -sign * file_step, -sign * rank_step);
      }
    }
  }
  return tables;
}

}  // namespace

constexpr AttackTables kAttacks = make_tables();

}  // namespace fullbore::chess
