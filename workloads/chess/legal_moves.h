#pragma once
#include <array>
#include <cstdint>

#include "workloads/chess/position.h"

namespace fullbore::chess {

/// Moves, without allocation: 15 pieces with 27 squares each, and a king, have less than 512.
class MoveList {
 public:
  MoveList() : size_(0) {}

  const Move* begin() const { return moves_.data(); }
  const Move* end() const { return moves_.data() + size_; }
  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Move operator[](int index) const { return moves_[static_cast<size_t>(index)]; }
  bool contains(Move move) const;
  void push(Move move) { moves_[static_cast<size_t>(size_++)] = move; }
  /// By the order of their UCI texts.
  void sort();

 private:
  int size_;
  union {  // left unset but for the first size_
    std::array<Move, 512> moves_;
  };
};

/// All legal moves of the side to move, in a fixed order. `position` must be one that parse_fen() accepts.
MoveList legal_moves(const Position& position);
/// Their number, without listing them.
int count_legal_moves(const Position& position);
bool has_legal_move(const Position& position);
bool is_legal(const Position& position, Move move);

/// The pawn captures onto the en passant square that are legal, as squares from which; empty without such a square.
Bitboard legal_en_passant(const Position& position);
/// Pawns of the side to move that stand beside the pawn to be captured, pinned or not.
Bitboard pseudo_legal_en_passant(const Position& position);

/// Leaves of the tree of legal moves of `depth` half-moves; 1 for depth 0. Moves of the last level are counted, not made.
/// Source: https://www.chessprogramming.org/Perft.
uint64_t perft(const Position& position, int depth);

}  // namespace fullbore::chess
