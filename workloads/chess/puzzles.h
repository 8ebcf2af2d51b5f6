#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "workloads/chess/pgn_reader.h"

namespace fullbore::chess {

/// Moves for positions, one text each: whatever plays chess here, many boards at once. A text that is no legal move in UCI
/// notation is an illegal move.
using MoveProposer = std::function<std::vector<std::string>(std::span<const Position>)>;

/// A position and the line that solves it: the side to move's moves at 0, 2, ..., the answers between.
struct Puzzle {
  Position position;
  std::vector<Move> line;
  std::string name;  ///< for people: the tags Event and Site, or where it stands
};

/// A game with a FEN tag and at least a move is a puzzle; others are none, and so are games with a problem.
std::optional<Puzzle> puzzle_of(const PgnGame& game);

struct PuzzleScore {
  int64_t puzzles = 0;
  int64_t first_move = 0;  ///< puzzles whose first move was found
  int64_t solved = 0;      ///< all moves
  int64_t moves = 0;  ///< moves that were asked for: a puzzle ends with the first that is wrong
  int64_t illegal_moves = 0;  ///< of those
};

/// Plays all puzzles side by side, one batch of positions a move. Any move that mates is right.
PuzzleScore score_puzzles(std::span<const Puzzle> puzzles, const MoveProposer& propose);

}  // namespace fullbore::chess
