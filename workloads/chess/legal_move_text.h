#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/chess/position.h"

namespace fullbore::chess {

/// Reads a P answer byte by byte and tells whether its moves, those behind "M:" and the one behind "B:", are legal so far
/// or may still become so. All else is free: it says nothing of the rest of the grammar.
class LegalMoveText {
 public:
  /// `is_listing`: the prompt ends in "M:", so that the answer begins with moves.
  LegalMoveText(const Position& position, bool is_listing);

  /// False: a move in it is not legal, and the object is of no use any more.
  bool take(std::string_view bytes);
  /// May the answer end here? Not amid a move, and not between "B:" and its move.
  bool may_end() const;

 private:
  enum class Part : uint8_t { before, moves, evals, best, behind };
  bool take(char byte);
  bool is_legal() const;
  bool may_become_legal() const;

  std::shared_ptr<const std::vector<std::string>> legal_;  ///< ascending
  Part part_;
  char last_ = ' ';
  std::string word_;
};

}  // namespace fullbore::chess
